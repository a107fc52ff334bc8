"""Intervals of 95 % over texts, from statistics that add: of a mean, and of a difference of two ratios of sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import t as student

from normlens.statistics import Moments
from normlens.studies.sums import padded

LEVEL = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """A value of every head with the ends of its interval; NaN where there are too few texts."""

    mean: Float[np.ndarray, "*cell"]
    low: Float[np.ndarray, "*cell"]
    high: Float[np.ndarray, "*cell"]

    def __getitem__(self, cells: Any) -> Interval:
        return Interval(self.mean[cells], self.low[cells], self.high[cells])

    @property
    def clear(self) -> Bool[np.ndarray, "*cell"]:
        """Whether the interval excludes 0."""
        return (np.nan_to_num(self.low) > 0) | (np.nan_to_num(self.high) < 0)


def total(moments: Moments) -> Float[np.ndarray, "*cell"]:
    """The sum of a stream."""
    return moments.mean * moments.count


def of_mean(moments: Moments) -> Interval:
    """The mean over texts, by Student's t."""
    texts = moments.count
    mean = np.where(texts > 0, moments.mean, np.nan)
    half = _quantile(texts) * np.sqrt(moments.squares / np.maximum(texts * (texts - 1), 1))
    return Interval(mean, mean - half, mean + half)


def of_ratios(
    sums: Float[np.ndarray, "head unit"], products: Float[np.ndarray, "head unit unit"], texts: int
) -> Interval:
    """Σa/Σn − Σb/Σm, where a text adds the units (a, n, b, m): the linearised error, with `texts` as the sample size.

    `products` are the sums over texts of u uᵀ. A ratio that rests on few texts needs `texts` to say so.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        first, second = sums[:, 0] / sums[:, 1], sums[:, 2] / sums[:, 3]
        slopes = np.stack([1 / sums[:, 1], -first / sums[:, 1], -1 / sums[:, 3], second / sums[:, 3]], axis=1)
        variance = np.einsum("hu,huv,hv->h", slopes, products, slopes) * texts / max(texts - 1, 1)
    mean = np.where(np.isfinite(first - second), first - second, np.nan)
    half = _quantile(np.array(texts)) * np.sqrt(np.maximum(variance, 0))
    return Interval(mean, mean - half, mean + half)


def stacked(layers: list[Interval]) -> Interval:
    """Those of every layer as one."""
    return Interval(*(padded([getattr(layer, name) for layer in layers]) for name in ("mean", "low", "high")))


def _quantile(texts: Int[np.ndarray, "*cell"]) -> Float[np.ndarray, "*cell"]:
    return np.where(texts > 1, student.ppf((1 + LEVEL) / 2, np.maximum(texts - 1, 1)), np.nan)
