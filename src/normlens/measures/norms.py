"""How the quantities of Kobayashi et al. (2020), and those beside them, are computed, in single precision or better.

`gram` and `norms` are worked out once for a block; nothing of size (head, tgt, src, model) exists at any time.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from normlens import algebra


def transformed_norms(
    weights: Float[Tensor, "batch head tgt src"], norms: Float[Tensor, "batch head src"]
) -> Float[Tensor, "batch head src"]:
    """‖f(x)‖, in the precision of α."""
    return norms.to(weights.dtype)


weighted_norms, summed_norms, transformed = algebra.weighted_norms, algebra.summed_norms, algebra.transformed
head_vectors, similarity = algebra.head_vectors, algebra.similarity
coordinates, transformed_sums = algebra.coordinates, algebra.transformed_sums
effective_weights = algebra.effective_weights


MASKED = -5000.0  # a score below is that of a mask: those in use add −10,000 or less


def visible(
    weights: Float[Tensor, "batch head tgt src"], scores: Float[Tensor, "batch head tgt src"]
) -> Float[Tensor, "batch tgt src"]:
    """1 where some head may attend, whatever weight it gives: a weight can be too small for a number and be 0."""
    return (scores.amax(dim=1) > MASKED).to(weights)


def lost_mass(weights: Float[Tensor, "batch head tgt src"]) -> Float[Tensor, "batch head tgt"]:
    """1 − Σ_j α_ij."""
    return 1 - weights.sum(dim=-1)


def value_sums(values: Float[Tensor, "batch head src head_dim"]) -> Float[Tensor, "batch head src"]:
    """‖v(x)‖₁, the sum of the absolute values of a value vector."""
    return values.abs().sum(dim=-1)


def head_outputs(
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
) -> Float[Tensor, "batch head tgt model"]:
    """Σ_j α f(x_j), what each head adds to the output."""
    return algebra.transformed(torch.matmul(weights, values), out_weight)


def stage_norms(sent: algebra.Sent, summed: Tensor, stage: algebra.Stage) -> Float[Tensor, "batch tgt src"]:
    """‖F[i,j]‖ at a point of the layer before any feed-forward block; ‖Σ_h αf‖ serves where directions are the same."""
    return algebra.norms(stage, sent, summed=summed)


def mixing_attention(sent: algebra.Sent) -> Float[Tensor, "batch tgt"]:
    """Of the attention alone."""
    return algebra.mixing(None, sent)


def mixing(sent: algebra.Sent, stage: algebra.Stage) -> Float[Tensor, "batch tgt"]:
    """At a point of the layer before any feed-forward block."""
    return algebra.mixing(stage, sent)


def output_norms(sent: algebra.Sent, stage: algebra.Stage) -> Float[Tensor, "batch tgt src"]:
    """‖F[i,j]‖ with feed-forward blocks; a gate is taken as it was."""
    return algebra.output_norms(stage, sent, rule="gate")


def output_norms_both(sent: algebra.Sent, stage: algebra.Stage) -> Float[Tensor, "batch tgt src"]:
    """The same; a gated product is shared out by halves."""
    return algebra.output_norms(stage, sent, rule="both")


def mixing_output(sent: algebra.Sent, stage: algebra.Stage) -> Float[Tensor, "batch tgt"]:
    """With feed-forward blocks; a gate is taken as it was."""
    return algebra.output_mixing(stage, sent, rule="gate")


def alti(sent: algebra.Sent, stage: algebra.Stage) -> Float[Tensor, "batch tgt src"]:
    """Shares by proximity, after the norm behind the residual where there is one."""
    return algebra.alti(stage, sent)


def route_shares(sent: algebra.Sent, stage: algebra.Stage) -> Float[Tensor, "batch head tgt src"]:
    """Shares by proximity of every key in every head."""
    return algebra.route_shares(stage, sent)


feedforward_share = algebra.feedforward_share


def value_zeroing(sent: algebra.Sent, stage: algebra.Stage) -> Float[Tensor, "batch tgt src"]:
    """Shares by how far the layer ends elsewhere without the values of a key."""
    return algebra.value_zeroing(sent, stage.again)


def own_state(stage: algebra.Stage) -> Float[Tensor, "batch tgt model"]:
    """What each token has of its own: at the residual, the input of the layer."""
    return stage.own


def state(stage: algebra.Stage) -> Float[Tensor, "batch tgt model"]:
    """The state without what feed-forward blocks add."""
    return stage.whole


def full_state(stage: algebra.Stage) -> Float[Tensor, "batch tgt model"]:
    """The state with what feed-forward blocks add."""
    return stage.full()
