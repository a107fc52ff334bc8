"""What a comparison of aligners on one gold set measured, and which of them are best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from normlens.alignment.aligner import Aligner
from normlens.alignment.gold import Gold
from normlens.alignment.maps import ROWS, Maps, Measure, Position, Reading
from normlens.alignment.score import Tally
from normlens.signature import Signature
from normlens.statistics import Ranks

Group = Literal["one direction", "gradients", "both directions", "statistical"]
MEASURES: tuple[Measure, ...] = ("weights", "norms")


@dataclass(frozen=True, slots=True)
class Method:
    """An aligner and its score."""

    group: Group
    name: str
    tally: Tally | None  # None: the mean of several errors, of which there are no counts
    aer: float
    needs_gold: bool = False  # its layer or head was chosen by its own score
    chosen: bool = False  # it is what `align` does by default

    @staticmethod
    def of(group: Group, name: str, tally: Tally, *, needs_gold: bool = False, chosen: bool = False) -> Method:
        return Method(group, name, tally, tally.total.aer, needs_gold, chosen)


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """One model, every reading scored. Links are (source, target) of the gold, in whichever direction it translates."""

    name: str
    tallies: dict[Reading, Tally]
    norms: Float[np.ndarray, "layer head"]  # mean ‖α f(x)‖
    layers: tuple[int, ...]
    signature: Signature

    def aer(self, measure: Measure, position: Position, layer: int, head: int | None = None) -> float:
        return self.tallies[Reading(measure, position, layer, head)].total.aer

    def best(self, measure: Measure, position: Position) -> Reading:
        """The layer with the lowest error, which only gold can show."""
        readings = (Reading(measure, position, layer) for layer in self.layers)
        return min(readings, key=lambda reading: self.tallies[reading].total.aer)

    def best_layer(self, measure: Measure) -> Reading:
        """The layer with the lowest error, under AWI or AWO."""
        readings = (self.best(measure, position) for position in ROWS)
        return min(readings, key=lambda reading: self.tallies[reading].total.aer)

    def best_head(self, measure: Measure, position: Position) -> Reading:
        readings = [r for r in self.tallies if r.head is not None and (r.measure, r.position) == (measure, position)]
        return min(readings, key=lambda reading: self.tallies[reading].total.aer)

    def mean(self, measure: Measure, position: Position) -> float:
        """Mean error over the layers."""
        return float(np.mean([self.aer(measure, position, layer) for layer in self.layers]))

    @property
    def largest_norm(self) -> int:
        """The layer with the largest mean norm, which needs no gold."""
        return self.layers[int(self.norms.sum(axis=1).argmax())]

    def head_errors(self, position: Position, measure: Measure = "norms") -> Float[np.ndarray, "layer head"]:
        """AER of every head alone."""
        heads = range(self.norms.shape[1])
        return np.array([[self.aer(measure, position, layer, head) for head in heads] for layer in self.layers])

    def norm_rho(self, position: Position) -> float:
        """Spearman's ρ between the error of a head, read by norms, and its mean norm; NaN when either is constant."""
        return Ranks.of(self.head_errors(position).ravel(), self.norms.ravel()).rho


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """One sentence pair: its words, the gold, and the maps of each layer of the first model."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    gold: Gold
    maps: Maps


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Everything that was measured on one gold set."""

    methods: tuple[Method, ...]
    forward: Direction
    backward: Direction | None
    aligner: Aligner  # what `align` does by default
    examples: tuple[Example, ...]
    sentences: int

    @property
    def chosen(self) -> Method:
        """The score of the default aligner."""
        return next(method for method in self.methods if method.chosen)

    @property
    def shown(self) -> int:
        """The layer that figures show first: one that the aligner reads under AWI, or that of the largest norm."""
        read = [reading.layer for reading in self.aligner.forward.readings if reading.position == "input"]
        return read[0] if read else self.forward.largest_norm

    @property
    def directions(self) -> dict[str, Direction]:
        """The models by direction."""
        forward = {"forward": self.forward}
        return forward if self.backward is None else forward | {"backward": self.backward}

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(method.group for method in self.methods))

    @property
    def sure_links(self) -> int:
        """The sure links of the gold."""
        return next((method.tally.total.sure for method in self.methods if method.tally is not None), 0)

    def lowest(self, group: str | None = None) -> list[Method]:
        """The aligners with the lowest error, of one group or of all."""
        return lowest(method for method in self.methods if group in (None, method.group))


def lowest(methods: Iterable[Method]) -> list[Method]:
    """Those with the lowest error. Means of errors are no aligners and are left out."""
    aligners = [method for method in methods if method.tally is not None]
    least = min((method.aer for method in aligners), default=0.0)
    return [method for method in aligners if method.aer <= least + 1e-12]
