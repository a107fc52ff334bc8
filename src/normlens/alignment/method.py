"""One aligner in a comparison.

Room: a name and its score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from normlens.alignment.score import Tally

Group = Literal["one direction", "gradients", "both directions", "statistical"]


@dataclass(frozen=True, slots=True)
class Method:
    """One row: an aligner and what it scored."""

    group: Group
    name: str
    tally: Tally | None  # None: the mean of several errors, of which there are no counts
    aer: float
    needs_gold: bool = False  # its layer or head was chosen by its own score
    chosen: bool = False  # it is what `align` does by itself

    @staticmethod
    def of(group: Group, name: str, counted: Tally, *, needs_gold: bool = False, chosen: bool = False) -> Method:
        return Method(group, name, counted, counted.total.aer, needs_gold, chosen)
