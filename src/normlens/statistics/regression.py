"""Least squares over a stream: y ≈ [x, 1] B, from sums of products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

RIDGE = 1e-6  # added to the diagonal, as a share of its mean: for directions that no x has


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """Σ x̃ᵀx̃ and Σ x̃ᵀy with x̃ = [x, 1], and Σ y² of every coordinate. `a + b` is the stream a then b."""

    inputs: Float[np.ndarray, "input input"]
    both: Float[np.ndarray, "input output"]
    squares: Float[np.ndarray, " output"]

    @staticmethod
    def of(x: Float[np.ndarray, "n x"], y: Float[np.ndarray, "n output"]) -> Regression:
        """The rows of x beside those of y."""
        x, y = np.column_stack([x, np.ones(len(x))]).astype(np.float64), y.astype(np.float64)
        return Regression(x.T @ x, x.T @ y, np.square(y).sum(axis=0))

    def __add__(self, other: Regression) -> Regression:
        return Regression(self.inputs + other.inputs, self.both + other.both, self.squares + other.squares)

    @property
    def rows(self) -> int:
        """How many rows there were."""
        return round(float(self.inputs[-1, -1]))

    def map(self, outputs: slice = slice(None), *, ridge: float = RIDGE) -> Float[np.ndarray, "input output"]:
        """B for some of the outputs; the last row is the constant. The ridge leaves the constant alone."""
        diagonal = np.full(len(self.inputs), ridge * np.trace(self.inputs[:-1, :-1]) / max(len(self.inputs) - 1, 1))
        diagonal[-1] = 0.0
        return np.linalg.solve(self.inputs + np.diag(diagonal), self.both[:, outputs])

    def fit(self, found: Float[np.ndarray, "input output"], outputs: slice = slice(None)) -> Fit:
        """How well a map, such as that of another stream, gives the y of this stream."""
        both = float((found * self.both[:, outputs]).sum())  # Σ y·ŷ
        guessed = float((found * (self.inputs @ found)).sum())  # Σ ŷ²
        whole = float(self.squares[outputs].sum())
        spread = whole - float(np.square(self.both[-1, outputs]).sum()) / max(self.rows, 1)
        error = max(whole - 2 * both + guessed, 0.0)
        return Fit(
            1 - error / spread if spread > 0 else float("nan"),
            both / np.sqrt(whole * guessed) if whole * guessed > 0 else float("nan"),
        )


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a map gives what was there."""

    r2: float  # 1 - Σ‖y - ŷ‖² / Σ‖y - mean y‖²
    cosine: float  # Σ y·ŷ / √(Σ‖y‖² Σ‖ŷ‖²): of all rows as one long vector
