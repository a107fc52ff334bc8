"""What several parts of the report ask of a comparison: which is best, what needs no gold, is it chance.

Room: scores to scores. No words, no drawing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from normlens.alignment.method import Method
from normlens.alignment.resample import Comparison, Interval, bootstrap, compare
from normlens.alignment.soft import ROWS, Measure, Position, Reading
from normlens.alignment.study import Direction
from normlens.alignment.table import Compared
from normlens.statistics import Ranks

MEASURES: tuple[Measure, ...] = ("weights", "norms")
SAMPLES = 1000  # resamples behind an interval


@dataclass(frozen=True, slots=True)
class Scored:
    """One aligner, how far its error can be trusted, and whether its group has none lower."""

    method: Method
    interval: Interval | None  # None: there are no counts, or some resample had nothing to score
    best: bool


def scored(compared: Compared, samples: int = SAMPLES) -> list[Scored]:
    """Every aligner, in the order of the comparison."""
    return [
        Scored(method, _interval(method, samples), any(method is one for one in lowest(compared.methods, method.group)))
        for method in compared.methods
    ]


def groups(compared: Compared) -> list[str]:
    """The groups there are, in order."""
    return list(dict.fromkeys(method.group for method in compared.methods))


def lowest(methods: Iterable[Method], group: str | None = None) -> list[Method]:
    """Those with the least error, of one group or of all. Means of errors are no aligners and stay out."""
    able = [one for one in methods if one.tally is not None and group in (None, one.group)]
    least = min((one.aer for one in able), default=0.0)
    return [one for one in able if one.aer <= least + 1e-12]


def directions(compared: Compared) -> dict[str, Direction]:
    """The models that were read, by the way in which they translate."""
    one_way = {"forward": compared.forward}
    return one_way if compared.backward is None else one_way | {"backward": compared.backward}


def best_layer(found: Direction, measure: Measure) -> Reading:
    """The layer with the least error, whichever way its rows are read."""
    return min((found.best(measure, position) for position in ROWS), key=lambda one: found.tallies[one].total.aer)


def tested(one: Method, other: Method) -> Comparison | None:
    """Whether two aligners differ by more than chance; None without counts."""
    return None if one.tally is None or other.tally is None else compare(one.tally, other.tally)


def head_errors(found: Direction, position: Position, measure: Measure = "norms") -> Float[np.ndarray, "layer head"]:
    """AER of every head alone."""
    heads = range(found.norms.shape[1])
    return np.array([[found.aer(measure, position, layer, head) for head in heads] for layer in found.layers])


def rank_correlation(found: Direction, position: Position) -> float:
    """Spearman's ρ between the error of a head, read by norms, and its mean norm; NaN when either is constant."""
    return Ranks.of(head_errors(found, position).ravel(), found.norms.ravel()).rho


def gold_links(methods: Sequence[Method]) -> int:
    """The sure links of the gold."""
    return next((one.tally.total.sure for one in methods if one.tally is not None), 0)


def _interval(method: Method, samples: int) -> Interval | None:
    if method.tally is None:
        return None
    found = bootstrap(method.tally, samples=samples).aer
    return found if np.isfinite(found.low) else None
