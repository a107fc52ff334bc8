"""Where the panels of one example stand, and how large its words are.

Room: inches and points. Draws nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from normlens.alignment.study import Example
from normlens.reports.alignment.sheet import long
from normlens.views.plots.paint import label
from normlens.views.plots.style import WIDTH

END = "</s>"
MOST = 16  # letters of a word
LONGEST = 80  # words of a sentence that is drawn
LETTERS = 8.0  # points
CELL = 0.22  # inches, at most
READABLE = ((3, 0.125), (2, 0.095))  # so many panels in a line need cells of so many inches
GAP, NARROW = 0.16, 1.95  # inches between panels; a panel with its gap is never less than the second


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the three panels of one example stand, in inches."""

    cell: float
    across: int  # panels in a line
    pitch: float  # from one panel to the next
    rows: float  # room for target words
    columns: float  # room for source words

    @staticmethod
    def of(example: Example) -> Layout:
        """Three panels in a line where the words stay readable; else two and one; else one below the other."""
        words = len(example.source) + 1
        rows, columns = (long(shown(side), LETTERS) + 0.08 for side in (example.target, (*example.source, END)))
        fitting = [(across, (WIDTH - rows - across * GAP) / (across * words), least) for across, least in READABLE]
        across, cell = next(
            ((across, cell) for across, cell, least in fitting if cell >= least), (1, (WIDTH - rows - GAP) / words)
        )
        cell = min(CELL, cell)
        return Layout(cell, across, max(cell * words + GAP, NARROW), rows, columns * min(1.0, points(cell) / LETTERS))


def shown(words: Sequence[str]) -> list[str]:
    """Words as they can be drawn."""
    return [label(word, MOST) for word in words]


def points(cell: float) -> float:
    """The size of letters that fit beside cells of so many inches."""
    return min(LETTERS, cell * 72 * 0.97)
