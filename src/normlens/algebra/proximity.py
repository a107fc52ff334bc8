"""Two other readings of the same parts: how near a part is to the whole, and what of the weights can matter at all.

ALTI        c_ij = max(0, ‖y_i‖₁ - ‖y_i - F_ij‖₁), rows to 1
routes      the same at each sum of a layer: over all keys of all heads and the residual; over feed-forward and residual
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
        near.append(_near(parts, whole))
    shares = _shares(torch.cat(near, dim=1))
    return shares if stage.one_side else shares[..., :-1]


def route_shares(stage: Stage, sent: Sent) -> Float[Tensor, "batch head tgt src"]:
    """How much nearer each key brings the sum through each head, as shares; the rest is the residual's."""
    batch, heads, tgt, src = sent.weights.shape
    transformed = sent.transformed()
    near = []
    for some in sent.blocks(heads * sent.out_weight.shape[-1]):
        parts = sent.head_vectors(some, transformed).flatten(2, 3)
        for step in stage.steps:
            parts = step.of(some)(parts)
        parts = torch.cat([parts, stage.own[:, some, None]], dim=2)
        near.append(_near(parts, stage.whole[:, some, None]))
    shares = _shares(torch.cat(near, dim=1))[..., :-1]
    return shares.view(batch, tgt, heads, src).transpose(1, 2).contiguous()


def feedforward_share(attended: Stage, added: Stage) -> Float[Tensor, "batch tgt"]:
    """How much nearer the feed-forward block brings the sum of both, beside what the residual carries past it.

    A block that runs beside the attention is among what each token adds of its own.
    """
    whole, carried = added.full(), added.whole if added.layers else attended.whole
    return _shares(_near(torch.stack([whole - carried, carried], dim=2), whole[:, :, None]))[..., 0]


def _near(
    parts: Float[Tensor, "batch query part model"], whole: Float[Tensor, "batch query 1 model"]
) -> Float[Tensor, "batch query part"]:
    """max(0, ‖y‖₁ - ‖y - F‖₁); the parts are written over."""
    return (whole.abs().sum(dim=-1) - parts.sub_(whole).abs_().sum(dim=-1)).clamp_min_(0)


def _shares(near: Float[Tensor, "*rows part"]) -> Float[Tensor, "*rows part"]:
    return near / near.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(near.dtype).tiny)


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
