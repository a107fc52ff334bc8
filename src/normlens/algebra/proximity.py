"""Two other readings of the same parts: how near a part is to the whole, and what of the weights can matter at all.

ALTI        c_ij = max(0, ‖y_i‖₁ - ‖y_i - F_ij‖₁), rows to 1
effective   A U Uᵀ with U an orthonormal basis of the columns of f(X): what is left out changes no output
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from normlens.algebra import attention
from normlens.algebra.parts import Sent, Stage, vectors


def alti(stage: Stage, sent: Sent) -> Float[Tensor, "batch tgt src"]:
    """How much nearer each key's part brings the whole, as shares; where keys are other tokens, the rest is its own."""
    transformed = sent.transformed()
    near = []
    for some in sent.blocks(sent.out_weight.shape[-1]):
        whole, parts = stage.whole[:, some, None], vectors(stage, sent, transformed, some)
        if not stage.one_side:
            parts = torch.cat([parts, stage.own[:, some, None]], dim=2)
        size = whole.abs().sum(dim=-1)
        near.append((size - parts.sub_(whole).abs_().sum(dim=-1)).clamp_min_(0))
    found = torch.cat(near, dim=1)
    shares = found / found.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(found.dtype).tiny)
    return shares if stage.one_side else shares[..., :-1]


def effective_weights(
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
) -> Float[Tensor, "batch head tgt src"]:
    """The attention weights without what f(x) of the keys cancels: other weights with the same output."""
    vectors_of_keys = attention.coordinates(values.double(), out_weight.double())
    basis, sizes, _ = torch.linalg.svd(vectors_of_keys, full_matrices=False)
    least = sizes[..., :1] * max(vectors_of_keys.shape[-2:]) * torch.finfo(values.dtype).eps
    basis = basis * (sizes > least)[..., None, :]
    return (weights.double() @ basis @ basis.mT).to(weights.dtype)
