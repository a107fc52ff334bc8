"""What one attention block did in one forward pass, before any algebra.

Room: plain records. No torch modes, no models, no norms.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Attended:
    """One attention block as the model ran it: its weights, its values, its output matrix and what came out.

    Σ_h Σ_j weights[h,i,j] · values[h,j] · out_weight[h]  +  out_bias  =  output[i]
    """

    order: int  # it ran after those with a smaller number
    where: str  # module path of the attention, "" when nobody keeps track
    out: str  # name of the output matrix W_O, as in model.named_parameters(); "" when it is no parameter
    weights: Float[Tensor, "batch head tgt src"]  # α, what multiplied the values
    values: Float[Tensor, "batch head src head_dim"]  # v_h(x_j)
    out_weight: Float[Tensor, "head head_dim model"]  # W_O, one slice per head
    out_bias: Float[Tensor, " model"] | None  # b_O, owned by no token
    output: Float[Tensor, "batch tgt model"]  # what the model itself computed


@dataclass(frozen=True, slots=True)
class Refused:
    """An attention that was seen but cannot be split exactly, and why."""

    order: int
    where: str  # module path of the attention, "" when nobody keeps track
    reason: str
