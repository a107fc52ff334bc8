"""Every way to read alignments off a model, scored against gold: the paper's Table 3 and Figures 7 and 8, on your data.

Room: reading, scoring, collecting. No files, no pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from normlens.alignment.choice import cross_layers, mean_norms
from normlens.alignment.extract import strongest
from normlens.alignment.gold import Gold
from normlens.alignment.links import NONE, Alignment
from normlens.alignment.score import Tally, tally
from normlens.alignment.soft import Measure, Position, Reading
from normlens.alignment.stream import Maps, Pair, each_map
from normlens.lens import Lens
from normlens.signature import Signature


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """One model, every reading of it scored. Links are (source, target) of the gold, whichever way the model runs."""

    name: str
    tallies: dict[Reading, Tally]
    norms: Float[np.ndarray, "layer head"]  # mean ‖α f(x)‖
    layers: tuple[int, ...]
    signature: Signature

    def aer(self, measure: Measure, position: Position, layer: int, head: int | None = None) -> float:
        return self.tallies[Reading(measure, position, layer, head)].total.aer

    def best(self, measure: Measure, position: Position) -> Reading:
        """The layer with the lowest error, which only gold can tell."""
        return min(
            (Reading(measure, position, layer) for layer in self.layers), key=lambda r: self.tallies[r].total.aer
        )

    def mean(self, measure: Measure, position: Position) -> float:
        """Mean error over the layers."""
        return float(np.mean([self.aer(measure, position, layer) for layer in self.layers]))

    @property
    def largest_norm(self) -> int:
        """The layer with the largest mean norm, which needs no gold."""
        return self.layers[int(self.norms.sum(axis=1).argmax())]


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """One sentence pair: its words, the gold, and what each layer of the first model says."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    gold: Gold
    maps: Maps


def direction(
    lens: Lens,
    pairs: Sequence[Pair],
    golds: Sequence[Gold],
    *,
    backward: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Direction:
    """Score every layer and head of a model, weights and norms, AWI and AWO; all from one pass."""
    swapped = [(target, source) for source, target in pairs] if backward else list(pairs)
    norms = mean_norms(lens, swapped)
    layers = tuple(cross_layers(lens))
    readings = [
        Reading(measure, position, layer, head)
        for measure in ("weights", "norms")
        for position in ("input", "output")
        for layer in layers
        for head in (None, *range(norms.shape[1]))
    ]
    found: dict[Reading, list[Alignment]] = {reading: [] for reading in readings}
    for done, maps in enumerate(each_map(lens, swapped, readings), 1):
        for reading, alignments in found.items():
            links = NONE if maps is None else strongest(maps[reading])
            alignments.append(links.reversed() if backward else links)
        progress(done, len(swapped))
    tallies = {reading: tally(alignments, golds) for reading, alignments in found.items()}
    return Direction(lens.subject.name, tallies, norms, layers, lens.signature)


def examples(lens: Lens, pairs: Sequence[Pair], golds: Sequence[Gold], chosen: Iterable[int]) -> list[Example]:
    """Maps of a few sentence pairs, all layers, for pictures."""
    readings = [Reading(measure, "input", layer) for measure in ("weights", "norms") for layer in cross_layers(lens)]
    numbers = list(chosen)
    return [
        Example(tuple(pairs[number][0]), tuple(pairs[number][1]), golds[number], maps)
        for number, maps in zip(numbers, each_map(lens, [pairs[n] for n in numbers], readings), strict=True)
        if maps is not None
    ]
