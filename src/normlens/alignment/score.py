"""How good links are against gold: alignment error rate, precision and recall, as counts that add.

With A the links found, S the sure and P ⊇ S the possible links of the gold (Och and Ney, 2003),

    AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)        precision = |A ∩ P| / |A|        recall = |A ∩ S| / |S|

counts are summed over the corpus before dividing. A link that is only possible is never missed and never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from normlens.alignment.gold import Gold
from normlens.alignment.links import Alignment, Links, reverse
from normlens.errors import NormlensError


class ScoreError(NormlensError):
    """Links that cannot be scored."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What AER is made of. `a + b` are the counts of both sets of sentences."""

    links: int  # |A|
    sure: int  # |S|
    sure_hits: int  # |A ∩ S|
    possible_hits: int  # |A ∩ P|
    sentences: int

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.links + other.links,
            self.sure + other.sure,
            self.sure_hits + other.sure_hits,
            self.possible_hits + other.possible_hits,
            self.sentences + other.sentences,
        )

    @property
    def aer(self) -> float:
        """Alignment error rate, from 0 to 1. Refused when there is neither a link found nor a sure one."""
        if not self.links + self.sure:
            raise ScoreError(
                f"Nothing to score: no links were found and the gold has no sure ones, in {self.sentences} sentences.",
                do="give sentences with sure links.",
            )
        return 1 - (self.sure_hits + self.possible_hits) / (self.links + self.sure)

    @property
    def precision(self) -> float:
        """The share of the links found that are at least possible. NaN when none were found."""
        return self.possible_hits / self.links if self.links else float("nan")

    @property
    def recall(self) -> float:
        """The share of the sure links that were found. NaN when the gold has none."""
        return self.sure_hits / self.sure if self.sure else float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts kept apart by sentence, to resample sentences."""

    rows: Int[np.ndarray, "sentence 4"]  # links, sure, sure_hits, possible_hits

    @property
    def total(self) -> Counts:
        links, sure, sure_hits, possible_hits = self.rows.sum(axis=0, dtype=np.int64).tolist()
        return Counts(links, sure, sure_hits, possible_hits, len(self.rows))


def score(alignments: Iterable[Alignment | Links], golds: Sequence[Gold]) -> Counts:
    """The counts of a corpus, alignment by alignment beside its gold.

    >>> score([frozenset({(0, 0), (1, 2)})], [Gold(frozenset({(0, 0)}), frozenset({(1, 2)}))]).aer
    0.0
    """
    return tally(alignments, golds).total


def tally(alignments: Iterable[Alignment | Links], golds: Sequence[Gold]) -> Tally:
    """The counts of each sentence."""
    hard = [one.hard if isinstance(one, Alignment) else one for one in alignments]
    if len(hard) != len(golds):
        raise ScoreError(
            f"{len(hard)} alignments and {len(golds)} gold sentences: sentence "
            f"{min(len(hard), len(golds)) + 1} has no partner.",
            cause="blank lines left out of one file, or an alignment cut short.",
            do="give one line per sentence pair on both sides, blank where there are no links.",
        )
    counted = [
        (len(links), len(gold.sure), len(links & gold.sure), len(links & gold.possible))
        for links, gold in zip(hard, golds, strict=True)
    ]
    return Tally(np.array(counted, dtype=np.int32).reshape(-1, 4))


MARGIN = 0.1  # of AER, far beyond what chance gives
OTHERWISE: dict[str, Callable[[Links], Links]] = {
    "the other way round (reverse)": reverse,
    "one word earlier (first)": lambda links: _moved(links, -1),
    "one word later (first)": lambda links: _moved(links, 1),
}


def numbering_doubts(alignments: Sequence[Alignment], golds: Sequence[Gold]) -> list[str]:
    """What to check where links fit the gold far better reversed, or counted from another number: no error shows it."""
    hard = [one.hard for one in alignments]
    aer = score(hard, golds).aer
    others = {name: score([change(links) for links in hard], golds).aer for name, change in OTHERWISE.items()}
    return [
        f"AER {100 * aer:.1f} % would be {100 * other:.1f} % with every link read {name}: check both files."
        for name, other in others.items()
        if other < aer - MARGIN
    ]


def _moved(links: Links, by: int) -> Links:
    return frozenset((source + by, target + by) for source, target in links)
