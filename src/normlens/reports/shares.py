"""Per-head numbers brought together: means over heads, shares of the whole, and which heads are the extremes.

Room: small sums over arrays with holes. No words, no drawing.

A hole (NaN) is a head that a layer does not have, or a category that no token fell into. Means go around the first and
keep the second.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from normlens.studies.results import Categories, Dispersion

NULL = 1e-6  # singular values below this part of the largest are 0 up to rounding


def mean_over(values: Float[np.ndarray, "*rest last"]) -> Float[np.ndarray, "*rest"]:
    """Mean over the last axis of what is there; NaN where nothing is."""
    there = np.isfinite(values)
    counts = there.sum(axis=-1)
    sums = np.where(there, values, 0.0).sum(axis=-1, dtype=np.float64)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def present(found: Categories) -> list[int]:
    """The categories some token fell into."""
    return [index for index, tokens in enumerate(found.tokens) if tokens > 0]


def weight_shares(found: Categories) -> Float[np.ndarray, "category layer"]:
    """Share of α, mean over heads. The categories add up to 1 in every layer."""
    return mean_over(found.weights)


def norm_shares(found: Categories) -> Float[np.ndarray, "category layer"]:
    """Share of what is moved: ‖αf‖ of a category over that of all, means over heads. Adds up to 1 in every layer."""
    norms = mean_over(found.norms)
    total = np.where(np.isfinite(norms), norms, 0.0).sum(axis=0)
    return np.where(total > 0, norms / np.where(total > 0, total, 1.0), np.nan)


def extremes(values: Float[np.ndarray, "*cell"]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Where the largest and the smallest number stand (the first of equals); None when no number is defined."""
    there = np.isfinite(values)
    if not there.any():
        return None
    high, low = np.where(there, values, -np.inf).argmax(), np.where(there, values, np.inf).argmin()
    return tuple(map(int, np.unravel_index(high, values.shape))), tuple(map(int, np.unravel_index(low, values.shape)))


def middle_head(variation: Float[np.ndarray, " head"], usable: Bool[np.ndarray, " head"]) -> int | None:
    """The head of median CV (the lower one of two, the first of equals), so that one head can stand for its layer."""
    heads = [head for head in np.argsort(variation, kind="stable") if usable[head] and np.isfinite(variation[head])]
    heads = heads or list(np.flatnonzero(usable))
    return int(heads[(len(heads) - 1) // 2]) if heads else None


def stretch(values: Float[np.ndarray, " value"]) -> tuple[float, float, float]:
    """Largest singular value, smallest that is not 0, and their ratio; NaN where there is none."""
    there = values[np.isfinite(values)]
    there = there[there > NULL * there.max(initial=0.0)]
    if not there.size:
        return (np.nan, np.nan, np.nan)
    return float(there.max()), float(there.min()), float(there.max() / there.min())


def drawn_heads(found: Dispersion) -> list[tuple[int, int]]:
    """(layer index, head) of the curve drawn for each layer: its head of median CV among those with singular values."""
    if found.singular is None:
        return []
    usable = np.asarray(np.isfinite(found.singular).any(axis=-1))
    chosen = [middle_head(found.transformed.variation[row], usable[row]) for row in range(len(found.layers))]
    return [(row, head) for row, head in enumerate(chosen) if head is not None]
