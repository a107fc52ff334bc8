"""How much attention lengthens a vector when it comes from one token alone: the expansion rate of a block.

f of all heads together, b_O included, is affine: y = x M + b, M = Σ_h W_V[h] W_O[h], b = Σ_h b_V[h] W_O[h] + b_O. With
a 1 put behind every vector it is a matrix of size (d + 1), whose expansion rate is ‖f̃‖_F / √(d + 1) (Kobayashi et al.
2021, section 4.4): the root of the mean of its squared singular values.

The authors' code puts b_O into the last column of W̃_O instead of its last row; "authors" repeats that.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Variant = Literal["affine", "authors"]


def expansion_rate(
    value_weight: Float[Tensor, "head model head_dim"],
    value_bias: Float[Tensor, "head head_dim"] | None,
    out_weight: Float[Tensor, "head head_dim out"],
    out_bias: Float[Tensor, " out"] | None,
    *,
    variant: Variant = "affine",
) -> float:
    """‖f̃‖_F / √(d + 1) of all heads summed, in double precision."""
    columns = value_weight.double().transpose(0, 1).flatten(1)  # (model, head·head_dim)
    rows = out_weight.double().flatten(0, 1)
    inner = columns.new_zeros(columns.shape[1]) if value_bias is None else value_bias.double().flatten()
    outer = rows.new_zeros(rows.shape[1]) if out_bias is None else out_bias.double()
    squares = (columns @ rows).square().sum()
    if variant == "affine":
        squares = squares + (inner @ rows + outer).square().sum() + 1
    else:
        if outer.shape != inner.shape:
            raise ValueError("the variant of the authors needs heads that are together as wide as the model")
        squares = squares + (columns @ outer).square().sum() + (inner @ rows).square().sum() + (inner @ outer + 1) ** 2
    return float(torch.sqrt(squares / (columns.shape[0] + 1)))
