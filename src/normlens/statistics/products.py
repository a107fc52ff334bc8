"""The directions of a stream of vectors, cell by cell: their second moment, and how many directions it has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Σ w·v vᵀ of the vectors of each cell, not centred. `a + b` is the stream a then b."""

    sums: Float[np.ndarray, "cell coordinate coordinate"]

    @staticmethod
    def grouped(
        vectors: Float[np.ndarray, "n coordinate"],
        weights: Float[np.ndarray, " n"],
        cells: Int[np.ndarray, " n"],
        size: int,
    ) -> Products:
        """Vector i, with a weight of at least 0, belongs to cell `cells[i]`, one of `size`."""
        vectors = vectors.astype(np.float64)
        sums = np.zeros((size, vectors.shape[1], vectors.shape[1]))
        for cell in np.unique(cells):
            mine = vectors[cells == cell]
            sums[cell] = (mine * weights[cells == cell, None]).T @ mine
        return Products(sums)

    def __add__(self, other: Products) -> Products:
        return Products(self.sums + other.sums)

    @property
    def rank(self) -> Float[np.ndarray, " cell"]:
        """Participation ratio (Σλ)²/Σλ² of the eigenvalues: n for n directions of equal size, NaN for no vector."""
        total = np.trace(self.sums, axis1=1, axis2=2)[:, None, None]
        shares = np.divide(self.sums, total, out=np.full(self.sums.shape, np.nan), where=total > 0)
        return 1 / np.square(shares).sum(axis=(1, 2))
