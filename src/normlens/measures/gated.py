"""The quantities of a block whose queries gate each coordinate of the values before the output matrix."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from normlens import algebra


def with_gates(
    name: str,
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
    gates: Float[Tensor, "batch head tgt head_dim"],
) -> Tensor:
    """One quantity by its name, computed with the gates."""
    if name == "weighted_norms":
        return algebra.gated.weighted_norms(weights, values, out_weight, gates)
    if name == "summed_norms":
        return algebra.gated.summed_norms(weights, values, out_weight, gates)
    vectors = algebra.head_vectors(weights, values) * gates
    return algebra.transformed(vectors, out_weight) if name == "head_outputs" else vectors
