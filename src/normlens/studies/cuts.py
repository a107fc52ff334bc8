"""Cuts of a text and how good they are: P_k, WindowDiff and the F1 of boundaries.

A text is a row of units: its words, or single characters of scripts written without spaces. A cut after unit u is the
number u + 1; the two ends of the text are no cuts. P_k (Beeferman et al. 1999) slides a window of k units and counts
how often text and reference disagree on whether its ends are in one segment; WindowDiff (Pevzner and Hearst 2002)
counts how often they disagree on the number of cuts inside. k is half the mean length of the reference's segments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

_ALONE = "\u3001-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01\uff0c\uff1b\uff1f"
_UNITS = re.compile(rf"[{_ALONE}]|[^\s{_ALONE}]+")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
LEVEL = 0.95


def units(text: str) -> Int[np.ndarray, "unit end"]:
    """Where each word begins and ends, in characters.

    >>> units("Ein Wort.").tolist()
    [[0, 3], [4, 9]]
    """
    return np.array([match.span() for match in _UNITS.finditer(text)], np.int64).reshape(-1, 2)


def joined(segments: Sequence[str]) -> tuple[str, list[int]]:
    """Segments as one text, with a space between them, and its cuts in units."""
    parts = [" ".join(segment.split()) for segment in segments]
    parts = [part for part in parts if part]
    return " ".join(parts), np.cumsum([len(units(part)) for part in parts])[:-1].tolist()


def punctuated(text: str) -> list[int]:
    """Cuts after every word that ends in . ! ? or …, closing marks included: the baseline that knows no model."""
    spans = units(text)
    ends = [at + 1 for at, (start, end) in enumerate(spans) if _SENTENCE_END.search(text[start:end])]
    return [cut for cut in ends if cut < len(spans)]


def at_random(count: int, size: int, random: np.random.Generator) -> list[int]:
    """So many cuts of a text of `size` units, anywhere."""
    return sorted((1 + random.choice(size - 1, min(count, size - 1), replace=False)).tolist()) if size > 1 else []


@dataclass(frozen=True, slots=True)
class CutScores:
    """How one text was cut against a reference. P_k and WindowDiff are errors: less is better."""

    p_k: float
    window_diff: float
    precision: float
    recall: float
    f1: float
    cuts: int | float  # how many; a mean for random ones


def scored(cuts: Sequence[int], reference: Sequence[int], size: int) -> CutScores:
    """The scores of cuts of a text of `size` units; NaN where a text is too short for a window."""
    both = len(set(cuts) & set(reference))
    precision = both / len(cuts) if cuts else float("nan")
    recall = both / len(reference) if reference else float("nan")
    wrong = len(cuts) + len(reference)
    f1 = 2 * both / wrong if wrong else 1.0
    window = max(2, round(size / (len(reference) + 1) / 2))
    if size <= window:
        return CutScores(float("nan"), float("nan"), precision, recall, f1, len(cuts))
    ours, theirs = (_within(part, size, window) for part in (cuts, reference))
    p_k = float(((ours > 0) != (theirs > 0)).mean())
    return CutScores(p_k, float((ours != theirs).mean()), precision, recall, f1, len(cuts))


def interval(values: Float[np.ndarray, " text"], *, seed: int = 0, draws: int = 1000) -> tuple[float, float, float]:
    """The mean over texts, and a bootstrap interval of 95 %; NaN for the interval of a single text."""
    there = values[np.isfinite(values)]
    if not len(there):
        return float("nan"), float("nan"), float("nan")
    if len(there) == 1:
        return float(there[0]), float("nan"), float("nan")
    random = np.random.default_rng(seed)
    means = there[random.integers(0, len(there), (draws, len(there)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(there.mean()), float(low), float(high)


def _within(cuts: Sequence[int], size: int, window: int) -> Int[np.ndarray, " place"]:
    """How many cuts lie between unit i and unit i + window, for every i."""
    before = np.zeros(size + 1, np.int64)  # before[u]: cuts at u or earlier
    before[list(cuts)] = 1
    before = np.cumsum(before)
    return before[window:size] - before[: size - window]
