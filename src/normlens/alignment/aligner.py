"""From soft maps to links: which words belong together, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from normlens.alignment.links import Alignment, symmetrised
from normlens.alignment.maps import ROWS, Maps, Position, Reading
from normlens.exhibits import listing
from normlens.lens import Lens
from normlens.signature import Signature

Combine = Literal["soft", "intersection", "union", "grow-diag", "grow-diag-final-and"]
Place = tuple[Position, int]  # whose rows, and the layer
Places = tuple[Place, ...]
TINY = 1e-30  # a row that gets nothing stays nothing


def strongest(soft: Float[np.ndarray, "tgt_word src_word"]) -> Alignment:
    """The source word that contributes most to each target word; none where what is no word (the last column) does.

    The confidence of a link is its share of the row. Ties go to the first word.
    """
    winner = soft.argmax(axis=1)
    total = soft.sum(axis=1)
    return Alignment.of(
        {
            (int(source), target): float(soft[target, source] / total[target])
            for target, source in enumerate(winner)
            if source < soft.shape[1] - 1 and total[target] > 0
        }
    )


def averaged(
    maps: Sequence[Float[np.ndarray, "tgt_word src_word"]], weights: Sequence[float] = ()
) -> Float[np.ndarray, "tgt_word src_word"]:
    """Mean of several maps, rows brought to 1 first so that none counts by its size; one map stays as it is."""
    return maps[0] if len(maps) == 1 else _mean(maps, weights)


def shares(
    maps: Sequence[Float[np.ndarray, "tgt_word src_word"]], weights: Sequence[float] = ()
) -> Float[np.ndarray, "tgt_word src"]:
    """Mean of several maps, each without its last column and with rows that add up to 1."""
    return _mean([soft[:, :-1] for soft in maps], weights)


def both(
    forward: Float[np.ndarray, "tgt_word src_word"], backward: Float[np.ndarray, "src_word tgt_word"]
) -> Float[np.ndarray, "tgt_word src_word"]:
    """Geometric mean of the shares of two directions: high only where both models agree."""
    return np.sqrt(forward * backward.T)


def mutual(
    agreed: Float[np.ndarray, "tgt_word src_word"], *, second_link: float = 1.0, min_confidence: float = 0.0
) -> Alignment:
    """Pairs of words that are each other's strongest, with the value as confidence; below `min_confidence` none.

    With `second_link` below 1, links are also those that are the strongest of one word only, if they have at least
    `second_link` times the strength of the other word's strongest: so one word can have several partners.
    """
    rows, columns = agreed.argmax(axis=1), agreed.argmax(axis=0)
    row_best, column_best = agreed.max(axis=1, initial=0), agreed.max(axis=0, initial=0)
    cells = {(int(source), target) for target, source in enumerate(rows) if columns[source] == target}
    if second_link < 1:
        cells |= {(int(s), t) for t, s in enumerate(rows) if agreed[t, s] >= second_link * column_best[s]}
        cells |= {(s, int(t)) for s, t in enumerate(columns) if agreed[t, s] >= second_link * row_best[t]}
    return Alignment.of({(s, t): float(agreed[t, s]) for s, t in cells if agreed[t, s] > min_confidence})


def _mean(maps: Sequence[Float[np.ndarray, "row column"]], weights: Sequence[float]) -> Float[np.ndarray, "row column"]:
    rows = [soft / np.maximum(soft.sum(axis=1, keepdims=True), TINY) for soft in maps]
    return np.average(rows, axis=0, weights=weights if sum(weights) else None)


@dataclass(frozen=True, slots=True)
class ModelLayers:
    """The layers of one model whose maps are read; their mean is taken."""

    lens: Lens
    readings: tuple[Reading, ...]
    why: str  # these layers were chosen
    weights: tuple[float, ...] = ()  # how much each reading counts; none: alike

    def links(self, maps: Maps) -> Alignment:
        """The links of this direction alone."""
        return strongest(averaged([maps[reading] for reading in self.readings], self.weights))

    def shares(self, maps: Maps) -> Float[np.ndarray, "tgt_word src_word"]:
        """The share of each source word in each target word: rows add up to 1."""
        return shares([maps[reading] for reading in self.readings], self.weights)

    def __str__(self) -> str:
        """using layers 1 (AWI) and 2 (AWO) of M, where both directions agree most."""
        return f"using {self.spelled} of {self.lens.subject.name}, {self.why}"

    @property
    def spelled(self) -> str:
        """The layers in words, and the head if it is one."""
        head = self.readings[0].head
        return spelled(tuple((reading.position, reading.layer) for reading in self.readings)) + (
            "" if head is None else f", head {head},"
        )

    @property
    def where(self) -> str:
        """The layers for a signature, whose rows they are, and the head if it is one."""
        head = self.readings[0].head
        places = named(tuple((reading.position, reading.layer) for reading in self.readings), self.weights)
        return places if head is None else f"{places} H{head}"


@dataclass(frozen=True, slots=True)
class Aligner:
    """The layers chosen in each direction, and how their maps become links."""

    forward: ModelLayers
    backward: ModelLayers | None
    combine: Combine
    min_confidence: float  # links of less confidence are left out
    second_link: float  # see `mutual`
    words: str = "whitespace"  # how text was split into words, which is what links count

    def links(self, forward: Maps, backward: Maps | None) -> Alignment:
        """The links of one sentence pair."""
        if self.backward is None or backward is None:
            return self.forward.links(forward).above(self.min_confidence)
        if self.combine != "soft":
            links = symmetrised(self.forward.links(forward), self.backward.links(backward).reversed(), self.combine)
            return links.above(self.min_confidence)
        agreed = both(self.forward.shares(forward), self.backward.shares(backward))
        return mutual(agreed, second_link=self.second_link, min_confidence=self.min_confidence)

    @property
    def directions(self) -> list[ModelLayers]:
        """One, or both."""
        return [self.forward] if self.backward is None else [self.forward, self.backward]

    @property
    def signature(self) -> Signature:
        """What makes these links reproducible."""
        directions, first = self.directions, self.forward.readings[0]
        return Signature(
            (
                *(("model", f"{one.lens.subject.name}@{one.lens.subject.revision}") for one in directions),
                *(("layer", one.where) for one in directions),
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
                *self.forward.lens.signature.facts[-1:],
            )
        )


def named(places: Places, weights: Sequence[float] = ()) -> str:
    """AWI L0+L1; AWI L1 & AWO L2; 0.75 AWI L1 & 0.25 AWO L2."""
    parts = []
    for position, name in ROWS.items():
        own = [number for number, place in enumerate(places) if place[0] == position]
        mixed = sum(weights) and len(own) < len(places)
        share = f"{sum(weights[number] for number in own) / sum(weights):.2f} " if mixed else ""
        parts += [f"{share}{name} {'+'.join(f'L{places[number][1]}' for number in own)}"] if own else []
    return " & ".join(parts)


def spelled(places: Places) -> str:
    """layer 1 (AWI); layers 0 and 1 (AWI); layers 1 (AWI) and 2 (AWO)."""
    runs = {name: [str(layer) for position, layer in places if position == rows] for rows, name in ROWS.items()}
    listed = [f"{listing(layers)} ({name})" for name, layers in runs.items() if layers]
    return f"{'layer' if len(places) == 1 else 'layers'} {' and '.join(listed)}"
