"""Which squares of norms single precision can hold.

The square of a norm below 1e-23 is 0 in single precision, and that of a norm above 1e19 is infinite, though the norm
itself can be written. The checks read small tensors; where they fail, the squares are computed in double precision,
which holds the square of every product of three single-precision numbers.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

SMALLEST, LARGEST = 1e-28, 1e30  # sums of squares in between lose no digits in single precision


def within(squares: Tensor) -> bool:
    """Whether single precision holds all these squares with all their digits."""
    least, most = squares.aminmax()
    return least.item() >= SMALLEST and most.item() <= LARGEST


def held(
    squares: Float[Tensor, "batch head src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
) -> bool:
    """Whether these ‖f_h(x_j)‖² are right: in range, or 0 because the vector or the matrix is 0."""
    if squares.dtype == torch.float64 or within(squares):
        return True
    something = values.any(dim=-1) & out_weight.flatten(1).any(dim=1)[:, None]
    return within(squares.where(something, 1.0))


def lost_rows(
    squares: Float[Tensor, "batch tgt src"],
    weights: Float[Tensor, "batch head tgt src"],
    pairs: Float[Tensor, "head head2 batch src"],
) -> Bool[Tensor, " tgt"] | None:
    """The queries with a Σ_h ‖α_h f_h‖² out of range though some α_h and some f_h are not 0; None if there are none."""
    if squares.dtype == torch.float64 or within(squares):
        return None
    largest = weights.amax(dim=1)
    if weights.amin() < 0:
        largest = torch.maximum(largest, weights.amin(dim=1).neg_())
    longest = pairs.diagonal(dim1=0, dim2=1).amax(dim=-1)
    if longest.amin() == 0:
        largest *= longest.sign().unsqueeze(-2)
    allowed = torch.rsub(largest, SMALLEST, alpha=1e38)  # below 0 unless there is nothing to add up
    squares = torch.maximum(squares, allowed)
    return None if within(squares) else ~((squares >= SMALLEST) & (squares <= LARGEST)).all(dim=-1).all(dim=0)
