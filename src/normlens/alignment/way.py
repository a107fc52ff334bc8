"""How sentence pairs are aligned: which maps of which models are read, and how two directions become one.

Room: maps of words in, links out; everything that decides them is in the signature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from normlens.alignment.choice import named
from normlens.alignment.extract import averaged, both, mutual, shares, strongest
from normlens.alignment.links import Alignment, symmetrised
from normlens.alignment.soft import Reading
from normlens.alignment.stream import Maps
from normlens.lens import Lens
from normlens.signature import Signature

Combine = Literal["soft", "intersection", "union", "grow-diag", "grow-diag-final-and"]


@dataclass(frozen=True, slots=True)
class Way:
    """How one model is read: the mean of these readings."""

    lens: Lens
    readings: tuple[Reading, ...]
    why: str  # these layers
    weights: tuple[float, ...] = ()  # how much each reading counts; none: alike

    def links(self, maps: Maps) -> Alignment:
        """The links of this direction alone."""
        return strongest(averaged([maps[reading] for reading in self.readings], self.weights))

    def shares(self, maps: Maps) -> Float[np.ndarray, "tgt_word src_word"]:
        """What each target word takes from each source word, rows added up to 1."""
        return shares([maps[reading] for reading in self.readings], self.weights)

    def __str__(self) -> str:
        return f"{self.where} of {self.lens.subject.name}: {self.why}"

    @property
    def where(self) -> str:
        """The layers, whose rows they are, and the head if it is one."""
        head = self.readings[0].head
        places = named(tuple((reading.position, reading.layer) for reading in self.readings), self.weights)
        return places if head is None else f"{places} H{head}"


@dataclass(frozen=True, slots=True)
class Plan:
    """One way, or two and what makes them one."""

    forward: Way
    backward: Way | None
    combine: Combine
    min_confidence: float  # links of less confidence are left out
    second_link: float  # see extract.mutual
    words: str = "whitespace"  # how text was split into words, which is what links count

    def links(self, forward: Maps, backward: Maps | None) -> Alignment:
        """The links of one sentence pair."""
        if self.backward is None or backward is None:
            return self.forward.links(forward).above(self.min_confidence)
        if self.combine != "soft":
            found = symmetrised(self.forward.links(forward), self.backward.links(backward).reversed(), self.combine)
            return found.above(self.min_confidence)
        agreed = both(self.forward.shares(forward), self.backward.shares(backward))
        return mutual(agreed, second_link=self.second_link, min_confidence=self.min_confidence)

    @property
    def signature(self) -> Signature:
        """What makes these links reproducible."""
        ways = [way for way in (self.forward, self.backward) if way is not None]
        first = ways[0].readings[0]
        return Signature(
            (
                *(("model", f"{way.lens.subject.name}@{way.lens.subject.revision}") for way in ways),
                *(("layer", way.where) for way in ways),
                ("measure", "‖Σαf‖" if first.measure == "norms" and first.head is None else first.measure),
                ("pieces", "sum×mean"),
                ("words", self.words),
                ("links", "argmax" if self.backward is None else self.combine),
                *((("min_confidence", f"{self.min_confidence:g}"),) if self.min_confidence else ()),
                *(
                    (("second_link", f"{self.second_link:g}"),)
                    if self.backward is not None and self.combine == "soft"
                    else ()
                ),
                *ways[0].lens.signature.facts[-1:],
            )
        )
