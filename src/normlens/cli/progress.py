"""Progress on standard error: a bar in a terminal, else a plain line now and then; and lines written as they come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from normlens.errors import NormlensError, first_line
from normlens.nmt import Update, Validation

SHORT = 30.0  # seconds between two plain lines, at least; a run that is over before is silent
LONG = 300.0  # seconds after which there is a line even if not a tenth was done


class LinesError(NormlensError):
    """A file that lines cannot be written to."""


class Progress:
    """Called with the items of an earlier run first, then with those of every batch, and always with the total."""

    def __init__(self, *, resumed: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self.resumed, self.clock = resumed, clock
        self.bar: tqdm[Any] | None = None
        self.begun = self.done = self.written = 0  # items: before this run, until now, at the last plain line
        self.started = self.last = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def __call__(self, items: int, total: int) -> None:
        self.done += items
        if self.bar is None:
            self._begin(total)
            return
        self.bar.update(items)
        waited, tenth = self.clock() - self.last, 10 * (self.done - self.written) >= total
        if self.bar.disable and self.done < total and waited >= SHORT and (tenth or waited >= LONG):
            self._write(total)

    def _begin(self, total: int) -> None:
        self.begun = self.written = self.done
        self.started = self.last = self.clock()
        if self.resumed:
            print(f"normlens: {_resumed(self.done, total)}", file=sys.stderr)
        self.bar = tqdm(total=total, unit="item", initial=self.done, disable=None, file=sys.stderr, leave=False)

    def _write(self, total: int) -> None:
        self.last, self.written = self.clock(), self.done
        rate = (self.done - self.begun) / (self.last - self.started)
        left = tqdm.format_interval((total - self.done) / rate)
        print(f"normlens: {self.done:,} of {total:,} items, {rate:.2g} a second, {left} left", file=sys.stderr)


class TrainingProgress:
    """Loss, target subwords a second and the time left of a training, and a line on standard output per validation."""

    def __init__(self) -> None:
        self.bar: tqdm[Any] | None = None
        self.update = self.saved = self.tokens = 0
        self.seconds = 0.0
        self.last = time.monotonic()

    def __enter__(self) -> TrainingProgress:
        return self

    def __exit__(self, _: object, stopped: BaseException | None, *__: object) -> None:
        if self.bar is not None:
            self.bar.close()
        if isinstance(stopped, KeyboardInterrupt) and self.update:
            saved = f"{self.saved:,} of them are saved" if self.saved else "none is saved yet"
            stopped.add_note(f"  {self.update:,} updates were made, and {saved}.")
            stopped.add_note("  Do: run the same command with --resume to continue.")

    def noted(self, line: str) -> None:
        """A note about the text or the training."""
        print(line, file=sys.stderr)

    def updated(self, step: Update) -> None:
        """An update was made."""
        now = time.monotonic()
        if self.bar is None:
            before = step.update - 1
            self.bar = tqdm(
                total=step.updates, initial=before, unit="update", disable=None, file=sys.stderr, leave=False
            )
            self.saved = before
        else:
            self.tokens, self.seconds = self.tokens + step.tokens, self.seconds + now - self.last
        self.update, self.last = step.update, now
        rate = f"{self.tokens / self.seconds:,.0f} tokens/s" if self.seconds else ""
        self.bar.set_postfix_str(f"loss {step.loss:.3f} {rate}", refresh=False)
        self.bar.update()

    def validated(self, validation: Validation) -> None:
        """The model was validated and saved."""
        tqdm.write(
            f"update {validation.update:>7,}  {validation.minutes:7.1f} min  train loss {validation.train_loss:.3f}  "
            f"valid loss {validation.valid_loss:.3f}  BLEU {validation.bleu:.2f}",
            file=sys.stdout,
        )
        sys.stdout.flush()
        self.saved, self.last = validation.update, time.monotonic()


def write_lines(lines: Iterable[str], path: Path, *, after: int = 0, total: int | None = None) -> None:
    """Write lines as they come, so that an interruption loses none; the file keeps its first `after` lines."""
    try:
        out = path.open("a" if after else "w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise LinesError(
            f"'{path}' cannot be written.",
            got=first_line(error),
            cause="its folder does not exist, or you may not write there.",
            do="give another file with --out.",
        ) from error
    with out:
        for line in tqdm(lines, initial=after, total=total, unit="line", disable=None, file=sys.stderr, leave=False):
            out.write(line + "\n")


def _resumed(items: int, total: int) -> str:
    if not items:
        return "no items were saved; starting at the first"
    if items == total:
        return f"all {total:,} items are already done"
    return f"{items:,} of {total:,} items are already done; continuing with the rest"
