"""What a training looks like in a terminal: a bar for the updates, a line for every validation."""

from __future__ import annotations

import sys
import time
from typing import Any

from tqdm import tqdm

from normlens.nmt import Update, Validation


class Bar:
    """Loss, target subwords a second and the time left on standard error; nothing when that is not a terminal."""

    def __init__(self) -> None:
        self.bar: tqdm[Any] | None = None
        self.update = self.saved = self.tokens = 0
        self.seconds = 0.0
        self.last = time.monotonic()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()
        if kind is KeyboardInterrupt and self.update:
            saved = f"all before update {self.saved + 1:,} is saved" if self.saved else "nothing is saved yet"
            print(
                f"normlens: stopped after update {self.update:,}; {saved}.\n"
                "  Do: the same command with --resume goes on from there.",
                file=sys.stderr,
            )

    def told(self, line: str) -> None:
        """A note about the text or the training."""
        print(line, file=sys.stderr)

    def updated(self, one: Update) -> None:
        """One update was made."""
        now = time.monotonic()
        if self.bar is None:
            self.bar = tqdm(
                total=one.updates, initial=one.update - 1, unit="update", disable=None, file=sys.stderr, leave=False
            )
            self.saved = one.update - 1
        else:
            self.tokens, self.seconds = self.tokens + one.tokens, self.seconds + now - self.last
        self.update, self.last = one.update, now
        rate = f"{self.tokens / self.seconds:,.0f} tokens/s" if self.seconds else ""
        self.bar.set_postfix_str(f"loss {one.loss:.3f} {rate}", refresh=False)
        self.bar.update()

    def validated(self, look: Validation) -> None:
        """The model was validated and saved."""
        tqdm.write(
            f"update {look.update:>7,}  {look.minutes:7.1f} min  train loss {look.train_loss:.3f}  "
            f"valid loss {look.valid_loss:.3f}  BLEU {look.bleu:.2f}",
            file=sys.stdout,
        )
        sys.stdout.flush()
        self.saved, self.last = look.update, time.monotonic()
