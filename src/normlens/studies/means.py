"""Means and extremes of arrays with holes. A hole (NaN) is a head that a layer does not have, or a mean of nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import spearmanr


def mean_over(values: Float[np.ndarray, "*rest last"]) -> Float[np.ndarray, "*rest"]:
    """Mean over the last axis of what is there; NaN where nothing is."""
    there = np.isfinite(values)
    counts = there.sum(axis=-1)
    sums = np.where(there, values, 0.0).sum(axis=-1, dtype=np.float64)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def extremes(values: Float[np.ndarray, "*cell"]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Where the largest and the smallest number are (the first of equals); None when no number is defined."""
    there = np.isfinite(values)
    if not there.any():
        return None
    high, low = np.where(there, values, -np.inf).argmax(), np.where(there, values, np.inf).argmin()
    return tuple(map(int, np.unravel_index(high, values.shape))), tuple(map(int, np.unravel_index(low, values.shape)))


def spearman(left: Float[np.ndarray, "*cell"], right: Float[np.ndarray, "*cell"]) -> float:
    """Spearman's ρ over the cells that both have; NaN where it is not defined."""
    there = np.isfinite(left) & np.isfinite(right)
    if there.sum() < 3 or np.ptp(left[there]) == 0 or np.ptp(right[there]) == 0:
        return float("nan")
    found: Any = spearmanr(left[there], right[there])
    return float(found.statistic)
