"""How alike the vectors are that a head writes for two queries, after Halevi et al. (2025).

z_i = Σ_j α_ij v(x_j)      similarity_ij = z_i · z_j
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def head_vectors(
    weights: Float[Tensor, "batch head tgt src"], values: Float[Tensor, "batch head src head_dim"]
) -> Float[Tensor, "batch head tgt head_dim"]:
    """z_i, what a head writes for a query before the output matrix."""
    return torch.matmul(weights, values)


def similarity(vectors: Float[Tensor, "batch head tgt size"]) -> Float[Tensor, "batch head tgt tgt"]:
    """The scalar product of the vectors of every two queries of a head."""
    return torch.matmul(vectors, vectors.mT)
