"""How f_h stretches space: its singular values, seen as a linear map.

f_h(x) = (x W_V + b_V) W_O is affine. With a 1 put behind every vector, x̃ = [x, 1], it is a matrix,

    f̃ = W̃_V W̃_O        W̃_V = [[W_V, 0], [b_V, 1]]        W̃_O = [[W_O, 0], [0, 1]]

(Kobayashi et al. 2020, appendix A; b_O belongs to no head and stays out). f̃ is model-sized, but its rank is at most
head_dim + 1: with W̃_V = Q R and W̃_Oᵀ = P S its singular values are those of R Sᵀ, and all others are 0.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

CHUNK = 1 << 23  # numbers of one extended matrix held at a time: 64 megabytes in double precision


def singular_values(
    value_weight: Float[Tensor, "head model head_dim"],
    value_bias: Float[Tensor, "head head_dim"] | None,
    out_weight: Float[Tensor, "head head_dim out"],
) -> Float[Tensor, "head value"]:
    """The head_dim + 1 singular values of f̃_h that need not be 0, largest first, in double precision."""
    head, model, head_dim = value_weight.shape
    bias = value_weight.new_zeros(head, head_dim) if value_bias is None else value_bias
    step = max(1, CHUNK // ((max(model, out_weight.shape[2]) + 1) * (head_dim + 1)))
    chunks = zip(value_weight.split(step), bias.split(step), out_weight.split(step), strict=True)
    return torch.cat([_singular_values(*heads) for heads in chunks])


def _singular_values(value_weight: Tensor, value_bias: Tensor, out_weight: Tensor) -> Tensor:
    nothing = torch.zeros_like(value_bias)
    left = _triangle(_extended(value_weight, value_bias))
    right = _triangle(_extended(out_weight.mT, nothing))
    found = torch.linalg.svdvals(left @ right.mT)
    return functional.pad(found, (0, left.shape[2] - found.shape[1]))  # fewer than that where model < head_dim


def _extended(weight: Float[Tensor, "head row head_dim"], last: Float[Tensor, "head head_dim"]) -> Tensor:
    """[[weight, 0], [last, 1]]: W̃_V, and, its last row empty, W̃_Oᵀ."""
    below = torch.cat([weight, last.unsqueeze(1)], dim=1).double()
    one = torch.zeros_like(below[..., :1])
    one[:, -1] = 1.0
    return torch.cat([below, one], dim=2)


def _triangle(matrix: Tensor) -> Tensor:
    """R of its QR decomposition."""
    return torch.linalg.qr(matrix, mode="r").R
