"""From one attention block of a forward pass to the fields a user asked for.

Room: capture meets algebra. Norms are taken in single precision or better, whatever the model runs in.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from normlens import algebra
from normlens.capture import Attended, relative_error
from normlens.lens.block import SRC, TGT


def measure(attended: Attended, fields: Collection[str], heads: Sequence[int] | None) -> dict[str, Tensor]:
    """The fields of one block. Nothing of size (head, tgt, src, model) exists at any time."""
    weights, values, out_weight = _at_least_single(attended.weights, attended.values, attended.out_weight)
    if heads is not None:
        index = torch.tensor(heads, device=weights.device)
        weights, values, out_weight = weights[:, index], values[:, index], out_weight[index]
    kept: dict[str, Tensor] = {}
    if "weights" in fields:
        kept["weights"] = weights
    if {"transformed_norms", "weighted_norms", "summed_norms"} & set(fields):
        pairs = algebra.gram(values, out_weight) if "summed_norms" in fields else None
        norms = algebra.lengths(values, out_weight) if pairs is None else algebra.transformed_norms(pairs)
        if "transformed_norms" in fields:
            kept["transformed_norms"] = norms.to(weights.dtype)
        if "weighted_norms" in fields and not {"weights", "transformed_norms"} <= set(fields):
            kept["weighted_norms"] = algebra.weighted_norms(weights, norms).to(weights.dtype)
        if pairs is not None:
            kept["summed_norms"] = algebra.summed_norms(weights, pairs, values, out_weight)
    if "transformed" in fields:
        kept["transformed"] = algebra.transformed(values, out_weight)
    if "head_outputs" in fields:
        kept["head_outputs"] = algebra.transformed(torch.matmul(weights, values), out_weight)
    return kept


def pass_error(attended: Attended) -> float:
    """How far the parts of this pass are from its output, relative, for one random mixture of its queries."""
    weights, values, out_weight = _at_least_single(attended.weights, attended.values, attended.out_weight)
    queries = torch.randn(weights.shape[2], generator=torch.Generator().manual_seed(0)).to(weights)
    bias = None if attended.out_bias is None else attended.out_bias.to(weights)
    parts = algebra.rebuilt(queries, weights, values, out_weight, bias)
    whole = torch.matmul(queries, attended.output.to(weights))
    return relative_error(parts, whole)


def without_padding(
    kept: dict[str, Tensor], tgt: Bool[Tensor, "batch tgt"] | None, src: Bool[Tensor, "batch src"] | None
) -> dict[str, Tensor]:
    """Real positions first, in their order, and 0 where a shorter sequence has ended."""
    moved = dict(kept)
    for axes, real in ((TGT, tgt), (SRC, src)):
        if real is None:
            continue
        order = torch.argsort(~real, dim=1, stable=True)
        in_place = bool((order == torch.arange(real.shape[1], device=order.device)).all())
        there = real.gather(1, order)
        for name, tensor in moved.items():
            axis = axes.get(name)
            if axis is None or (len(tensor), tensor.shape[axis]) != real.shape:
                continue
            shape = [len(real) if i == 0 else real.shape[1] if i == axis else 1 for i in range(tensor.ndim)]
            if not in_place:
                tensor = tensor.gather(axis, order.view(shape).expand(tensor.shape))
            moved[name] = tensor * there.view(shape)
    return moved


def _at_least_single(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(t if t.dtype in (torch.float32, torch.float64) else t.float() for t in tensors)
