"""A uniform sample of a stream, of bounded size.

Every row comes with a random priority and the smallest are kept, so samples merge in any order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """At most `size` rows, those of smallest priority."""

    size: int
    priority: Float[np.ndarray, " row"]  # ascending
    rows: Float[np.ndarray, "row column"]

    @staticmethod
    def of(
        rows: Shaped[np.ndarray, "row column"], *, size: int, random: np.random.Generator, ceiling: float = 1.0
    ) -> Sample:
        """Rows drawn from a stream; with a `ceiling` they are those whose priority came out below it."""
        return Sample(size, ceiling * random.random(len(rows)), rows.astype(np.float64))._cut()

    @staticmethod
    def largest(rows: Shaped[np.ndarray, "row column"], by: Float[np.ndarray, " row"], *, size: int) -> Sample:
        """No chance: the rows for which `by` is largest, the largest first."""
        return Sample(size, -by.astype(np.float64), rows.astype(np.float64))._cut()

    def __add__(self, other: Sample) -> Sample:
        priority = np.concatenate([self.priority, other.priority])
        return Sample(self.size, priority, np.concatenate([self.rows, other.rows]))._cut()

    def _cut(self) -> Sample:
        smallest = np.argsort(self.priority, kind="stable")[: self.size]
        return Sample(self.size, self.priority[smallest], self.rows[smallest])
