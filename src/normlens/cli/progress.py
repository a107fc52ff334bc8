"""How far a run over a corpus has come, on standard error: a bar where somebody watches, else a plain line at times.

Room: counts to characters. Knows no study.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from tqdm import tqdm

SHORT = 30.0  # seconds between two plain lines, at least; a run that is over before is silent
LONG = 300.0  # seconds after which there is a line even if not a tenth was done


class Progress:
    """Called with the items of an earlier run first, then with those of every batch, and always with the total."""

    def __init__(self, *, resumed: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self.resumed, self.clock = resumed, clock
        self.bar: tqdm[Any] | None = None
        self.begun = self.done = self.told = 0  # items: before this run, until now, when a line was last written
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
        waited, tenth = self.clock() - self.last, 10 * (self.done - self.told) >= total
        if self.bar.disable and self.done < total and waited >= SHORT and (tenth or waited >= LONG):
            self._tell(total)

    def _begin(self, total: int) -> None:
        self.begun = self.told = self.done
        self.started = self.last = self.clock()
        if self.resumed:
            print(f"normlens: {_taken_over(self.done, total)}", file=sys.stderr)
        self.bar = tqdm(total=total, unit="item", initial=self.done, disable=None, file=sys.stderr, leave=False)

    def _tell(self, total: int) -> None:
        self.last, self.told = self.clock(), self.done
        rate = (self.done - self.begun) / (self.last - self.started)
        left = tqdm.format_interval((total - self.done) / rate)
        print(f"normlens: {self.done:,} of {total:,} items, {rate:.2g} a second, {left} left", file=sys.stderr)


def _taken_over(items: int, total: int) -> str:
    if not items:
        return "nothing was saved before, so the run begins at the start"
    if items == total:
        return f"all {total:,} items were done before; none is run again"
    return f"{items:,} of {total:,} items were done before; going on from there"
