"""How far a score can be trusted: intervals by bootstrap, and a paired test between two aligners.

bootstrap   sentences drawn again with replacement, as many as there are; percentiles of the scores so got
compare     approximate randomisation (Noreen, 1989): were the two aligners alike, swapping their links in any
            sentence would change nothing, so the difference is held against those after random swaps. Two-sided,
            p = (1 + swaps that differ at least as much) / (1 + swaps). The interval of the difference is a paired
            bootstrap: both aligners on the same drawn sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from normlens.alignment.score import ScoreError, Tally

BLOCK = 1 << 22  # numbers drawn at once


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a score lies in the middle `level` of all resamples. NaN when some resample had nothing to score."""

    low: float
    high: float
    level: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """One interval per score, from the same resamples."""

    aer: Interval
    precision: Interval
    recall: Interval


@dataclass(frozen=True, slots=True)
class Comparison:
    """AER of one aligner less that of another, on the same sentences: below 0, the first is better."""

    difference: float
    interval: Interval
    p: float  # two-sided, never 0


def bootstrap(per_sentence: Tally, *, samples: int = 1000, seed: int = 0, level: float = 0.95) -> Intervals:
    """Intervals of AER, precision and recall over sentences like these."""
    _check(len(per_sentence.rows), samples, level)
    links, sure, sure_hits, possible_hits = np.concatenate(
        [drawn @ per_sentence.rows for drawn in _draws(len(per_sentence.rows), samples, seed)]
    ).T
    return Intervals(
        aer=_interval(_aer(links, sure, sure_hits + possible_hits), level),
        precision=_interval(_share(possible_hits, links), level),
        recall=_interval(_share(sure_hits, sure), level),
    )


def compare(
    a: Tally, b: Tally, *, samples: int = 1000, swaps: int = 10_000, seed: int = 0, level: float = 0.95
) -> Comparison:
    """Whether two aligners differ in AER by more than chance."""
    _check(len(a.rows), min(samples, swaps), level)
    if a.rows.shape != b.rows.shape or (a.rows[:, 1] != b.rows[:, 1]).any():
        raise ScoreError(
            f"Two aligners were scored on different gold: {len(a.rows)} and {len(b.rows)} sentences, "
            f"{a.total.sure} and {b.total.sure} sure links.",
            do="score both on the same sentences, in the same order.",
        )
    difference = a.total.aer - b.total.aer
    one, other = (np.stack([t.rows[:, 0], t.rows[:, 1], t.rows[:, 2] + t.rows[:, 3]], 1).astype(float) for t in (a, b))
    drawn = [_aer(*(weights @ one).T) - _aer(*(weights @ other).T) for weights in _draws(len(one), samples, seed)]
    gap = (other - one)[(one != other).any(axis=1)]
    extreme = 0
    random = np.random.default_rng([seed, 1])
    for size in _blocks(len(gap), swaps):
        moved = random.integers(0, 2, (size, len(gap))).astype(float) @ gap
        swapped = _aer(*(one.sum(axis=0) + moved).T) - _aer(*(other.sum(axis=0) - moved).T)
        extreme += int((~(np.abs(swapped) < abs(difference) - 1e-12)).sum())
    return Comparison(difference, _interval(np.concatenate(drawn), level), (1 + extreme) / (1 + swaps))


def _draws(sentences: int, samples: int, seed: int) -> Iterator[Float[np.ndarray, "sample sentence"]]:
    """How often each sentence is drawn in each resample, in blocks."""
    random = np.random.default_rng([seed, 0])
    for size in _blocks(sentences, samples):
        yield random.multinomial(sentences, np.full(sentences, 1 / sentences), size).astype(float)


def _blocks(width: int, total: int) -> Iterator[int]:
    size = max(1, BLOCK // max(width, 1))
    yield from (min(size, total - start) for start in range(0, total, size))


def _aer(
    links: Float[np.ndarray, " sample"], sure: Float[np.ndarray, " sample"], hits: Float[np.ndarray, " sample"]
) -> Float[np.ndarray, " sample"]:
    return 1 - _share(hits, links + sure)


def _share(part: Shaped[np.ndarray, " sample"], whole: Shaped[np.ndarray, " sample"]) -> Float[np.ndarray, " sample"]:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def _interval(scores: Float[np.ndarray, " sample"], level: float) -> Interval:
    if np.isnan(scores).any():
        return Interval(float("nan"), float("nan"), level)
    low, high = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level)


def _check(sentences: int, samples: int, level: float) -> None:
    if not sentences or samples < 1 or not 0 < level < 1:
        raise ScoreError(
            f"Nothing can be drawn: {sentences} sentences, {samples} resamples, level {level}.",
            do="give at least one sentence and one resample, and a level between 0 and 1, such as 0.95.",
        )
