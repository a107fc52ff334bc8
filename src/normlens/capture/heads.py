"""Several products that one output matrix reads, as the heads of one block.

Products side by side in a row are heads of their own; where they have the same weights, their values stand side by
side in one head. Products that are added are heads of their own too; where they have the same values, as in
differential attention, their weights are one combined weight, which may be negative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from normlens.capture.compare import tolerance
from normlens.capture.factors import GATE, apart
from normlens.capture.layout import LayoutError
from normlens.capture.record import Attended, Axis


def together(terms: Sequence[Sequence[Attended]]) -> Attended:
    """One block out of those of each term of a sum, and of each place in a row."""
    every = [block for blocks in terms for block in blocks]
    first = every[0]
    for other in every[1:]:
        if not (_same(first.tgt, other.tgt) and _same(first.src, other.src) and _equal(first.output, other.output)):
            raise LayoutError("outputs of attentions over other positions are added or stand side by side")
    whole = _reduce([_reduce(blocks, _beside) for blocks in terms], _added)
    scales, gates = (None, None) if whole.gates is None else apart(whole.gates)
    reason = whole.no_transformed or (None if gates is None else GATE)
    return replace(whole, scales=scales, gates=gates, no_transformed=reason)


def _reduce(blocks: Sequence[Attended], join: Callable[[Attended, Attended], Attended]) -> Attended:
    whole = blocks[0]
    for block in blocks[1:]:
        whole = join(whole, block)
    return whole


def _beside(left: Attended, right: Attended) -> Attended:
    """The same weights: wider values of the same heads; else more heads."""
    if not _equal(left.weights, right.weights):
        return _more_heads(left, right)
    gates = None if left.gates is None else torch.cat([left.gates, _gates(right)], dim=3)
    return replace(
        left,
        values=torch.cat([left.values, right.values], dim=3),
        out_weight=torch.cat([left.out_weight, right.out_weight], dim=1),
        gates=gates,
    )


def _added(left: Attended, right: Attended) -> Attended:
    """The same values, scaled: one combined weight; else more heads."""
    ratio = None
    if _equal(left.values, right.values) and left.out_weight.shape == right.out_weight.shape:
        of_matrix = _ratio(left.out_weight.flatten(1), right.out_weight.flatten(1))
        of_gates = _ratio(_gates(left), _gates(right))
        ratio = None if of_matrix is None or of_gates is None else of_matrix[:, None] * of_gates
    if ratio is None:
        return _more_heads(left, right)
    weights = left.weights.double() + ratio[..., None] * right.weights.double()
    return replace(left, weights=weights.to(left.weights), scores=None)


def _more_heads(left: Attended, right: Attended) -> Attended:
    if left.values.shape[3] != right.values.shape[3]:
        raise LayoutError("heads of different widths share one output matrix")
    scaled = left.gates is not None or right.gates is not None
    return replace(
        left,
        weights=torch.cat([left.weights, right.weights], dim=1),
        values=torch.cat([left.values, right.values], dim=1),
        out_weight=torch.cat([left.out_weight, right.out_weight]),
        gates=torch.cat([_gates(left), _gates(right)], dim=1) if scaled else None,
        scores=None,
    )


def _gates(block: Attended) -> Tensor:
    if block.gates is not None:
        return block.gates
    tgt, head_dim = block.weights.shape[2], block.values.shape[3]
    return block.weights.new_ones(1).expand(*block.weights.shape[:2], tgt, head_dim)


def _ratio(left: Tensor, right: Tensor) -> Tensor | None:
    """What one is multiplied by to be the other, a number for each row; None when there is none."""
    a, b = left.double(), right.double()
    at = a.abs().argmax(dim=-1, keepdim=True)
    ratio = (b.gather(-1, at) / a.gather(-1, at)).nan_to_num(0.0, 0.0, 0.0)
    gap = (ratio * a - b).abs().amax(dim=-1)
    return ratio[..., 0] if bool((gap <= tolerance(left.dtype) * b.abs().amax(dim=-1)).all()) else None


def _equal(left: Tensor, right: Tensor) -> bool:
    return left.shape == right.shape and torch.equal(left, right)


def _same(left: Axis, right: Axis) -> bool:
    unknown = left.codes is None or right.codes is None
    alike = left.codes is right.codes if unknown else _equal(left.codes, right.codes)  # pyright: ignore
    return alike and left.names == right.names and left.count == right.count and left.reason == right.reason
