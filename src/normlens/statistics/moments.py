"""Count, mean, spread and range of a stream of numbers, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """One stream per cell. `a + b` is the stream a then b; a cell may have seen nothing yet."""

    count: Int[np.ndarray, "*cell"]
    mean: Float[np.ndarray, "*cell"]
    squares: Float[np.ndarray, "*cell"]  # Σ (x - mean)²
    low: Float[np.ndarray, "*cell"]
    high: Float[np.ndarray, "*cell"]

    @staticmethod
    def of(values: Float[np.ndarray, " n *cell"], present: Bool[np.ndarray, " n *cell"] | None = None) -> Moments:
        """The numbers along the first axis; `present` says which of them there are."""
        values = values.astype(np.float64)
        there = np.ones(values.shape, bool) if present is None else present
        count = there.sum(axis=0)
        mean = np.where(there, values, 0).sum(axis=0) / np.maximum(count, 1)
        squares = np.where(there, (values - mean) ** 2, 0).sum(axis=0)
        low = np.where(there, values, np.inf).min(axis=0, initial=np.inf)
        high = np.where(there, values, -np.inf).max(axis=0, initial=-np.inf)
        return Moments(count, mean, squares, low, high)

    @staticmethod
    def grouped(values: Float[np.ndarray, " n"], cells: Int[np.ndarray, " n"], size: int) -> Moments:
        """Number i belongs to cell `cells[i]`, one of `size`."""
        values = values.astype(np.float64)
        count = np.bincount(cells, minlength=size)
        mean = np.bincount(cells, values, minlength=size) / np.maximum(count, 1)
        squares = np.bincount(cells, (values - mean[cells]) ** 2, minlength=size).astype(np.float64)  # also of nothing
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(low, cells, values)
        np.maximum.at(high, cells, values)
        return Moments(count, mean, squares, low, high)

    def __add__(self, other: Moments) -> Moments:
        count = self.count + other.count
        gap, share = other.mean - self.mean, other.count / np.maximum(count, 1)
        return Moments(
            count=count,
            mean=self.mean + gap * share,
            squares=self.squares + other.squares + gap**2 * self.count * share,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
        )

    @property
    def deviation(self) -> Float[np.ndarray, "*cell"]:
        """Standard deviation of the numbers seen, as of a whole population."""
        return np.sqrt(self.squares / np.maximum(self.count, 1))
