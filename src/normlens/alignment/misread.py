"""Links that were read the wrong way round, or one word off: no error shows them, only a score far too bad.

Room: a second look at links that were scored. Knows no file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from normlens.alignment.gold import Gold
from normlens.alignment.links import Alignment, Links, reverse
from normlens.alignment.score import score

MARGIN = 0.1  # of AER, far beyond what chance gives
READINGS: dict[str, Callable[[Links], Links]] = {
    "the other way round (reverse)": reverse,
    "one word earlier (first)": lambda links: _moved(links, -1),
    "one word later (first)": lambda links: _moved(links, 1),
}


def misread(alignments: Sequence[Alignment], golds: Sequence[Gold]) -> list[str]:
    """What to check, in words; nothing when the links fit the gold best as they were read."""
    found = [one.hard for one in alignments]
    aer = score(found, golds).aer
    others = {said: score([read(links) for links in found], golds).aer for said, read in READINGS.items()}
    return [
        f"AER {100 * aer:.1f} % would be {100 * other:.1f} % with every link read {said}: check both files."
        for said, other in others.items()
        if other < aer - MARGIN
    ]


def _moved(links: Links, by: int) -> Links:
    return frozenset((source + by, target + by) for source, target in links)
