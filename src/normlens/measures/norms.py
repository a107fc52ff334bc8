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


MASKED = -5000.0  # a score below is that of a mask: those in use add −10,000 or less


def visible(
    weights: Float[Tensor, "batch head tgt src"], scores: Float[Tensor, "batch head tgt src"]
) -> Float[Tensor, "batch tgt src"]:
    """1 where some head may attend, whatever weight it gives: a weight can be too small for a number and be 0."""
    return (scores.amax(dim=1) > MASKED).to(weights)


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


def stage_norms(
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
    *more: Tensor | algebra.Stage,
) -> Float[Tensor, "batch tgt src"]:
    """‖F[i,j]‖ at a point of the layer before any feed-forward block; ‖Σ_h αf‖ serves where directions are the same."""
    summed, stage = more
    assert isinstance(summed, Tensor)
    assert isinstance(stage, algebra.Stage)
    return algebra.norms(stage, weights, values, out_weight, summed=summed)


def mixing_attention(weights: Tensor, values: Tensor, out_weight: Tensor) -> Float[Tensor, "batch tgt"]:
    """Of the attention alone."""
    return algebra.mixing(None, weights, values, out_weight)


def mixing(weights: Tensor, values: Tensor, out_weight: Tensor, stage: algebra.Stage) -> Float[Tensor, "batch tgt"]:
    """At a point of the layer before any feed-forward block."""
    return algebra.mixing(stage, weights, values, out_weight)


def output_norms(weights: Tensor, values: Tensor, out_weight: Tensor, stage: algebra.Stage) -> Tensor:
    """‖F[i,j]‖ at the end of the layer; a gate is taken as it was."""
    return algebra.output_norms(stage, weights, values, out_weight, rule="gate")


def output_norms_both(weights: Tensor, values: Tensor, out_weight: Tensor, stage: algebra.Stage) -> Tensor:
    """The same; a gated product is shared out by halves."""
    return algebra.output_norms(stage, weights, values, out_weight, rule="both")


def mixing_output(weights: Tensor, values: Tensor, out_weight: Tensor, stage: algebra.Stage) -> Tensor:
    """At the end of the layer; a gate is taken as it was."""
    return algebra.output_mixing(stage, weights, values, out_weight, rule="gate")


def own_state(stage: algebra.Stage) -> Float[Tensor, "batch tgt model"]:
    """What each token has of its own: at the residual, the input of the layer."""
    return stage.own


def state(stage: algebra.Stage) -> Float[Tensor, "batch tgt model"]:
    """The state without what feed-forward blocks add."""
    return stage.whole


def full_state(stage: algebra.Stage) -> Float[Tensor, "batch tgt model"]:
    """The state with what feed-forward blocks add."""
    return stage.full()
