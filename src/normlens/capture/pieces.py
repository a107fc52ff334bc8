"""Put the products that reached one output matrix together into one attention block.

Room: index arithmetic on what the tap collected.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from normlens.capture.layout import Layout, LayoutError, read_layout
from normlens.capture.operations import Product, Projection
from normlens.capture.record import Attended


@dataclass(slots=True, eq=False)
class Piece:
    """One product α·v on its way to an output matrix."""

    order: int
    where: str  # module path, "" when nobody keeps track
    start: int  # its first serial number
    size: int
    product: Product | None  # dropped once the block is complete, so that nothing outlives its layer
    out: str | None = None  # the output matrix that took it
    fate: str | None = None  # what happened to it instead


def layouts_of(pieces: tuple[Piece, ...], serial: Tensor, projection: Projection) -> tuple[Layout, ...]:
    """Where each product lies in what an output matrix reads, off the serial numbers that arrived there."""
    rows = projection.rows(serial)
    if bool((rows < 0).any()):
        raise LayoutError("rows that no attention computed are mixed into its output")
    layouts = tuple(_layout(piece, rows) for piece in pieces)
    if any(not torch.equal(layout.channels, layouts[0].channels) for layout in layouts):
        raise LayoutError("outputs of several attentions stand side by side in one row")
    return layouts


def assemble(
    pieces: tuple[Piece, ...], layouts: tuple[Layout, ...], projection: Projection, result: Tensor, *, out: str
) -> Attended:
    """The block whose output matrix just ran. Windows cut out of one sequence come back as one block."""
    rows, channels = projection.out_rows(result), layouts[0].channels
    parts = [_part(piece, layout) for piece, layout in zip(pieces, layouts, strict=True)]
    outputs = [_pick(rows, layout.rows) for layout in layouts]
    weights, values = parts[0] if len(parts) == 1 else _joined(*zip(*parts, strict=True))
    return Attended(
        order=pieces[0].order,
        where=pieces[0].where,
        out=out,
        weights=weights,
        values=values,
        out_weight=_pick(projection.weight, channels),
        out_bias=projection.bias,
        output=outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1),
    )


def _layout(piece: Piece, rows: Tensor) -> Layout:
    assert piece.product is not None
    tgt, head_dim = piece.product.weights.shape[1], piece.product.values.shape[2]
    mine = ((rows[:, 0] >= piece.start) & (rows[:, 0] < piece.start + piece.size)).nonzero().squeeze(1)
    if not len(mine):
        raise LayoutError("part of its output never reaches the output matrix")
    layout = read_layout(rows[mine], start=piece.start, tgt=tgt, head_dim=head_dim)
    return Layout(layout.lead, mine[layout.rows], layout.tgt, layout.channels)


def _part(piece: Piece, layout: Layout) -> tuple[Tensor, Tensor]:
    assert piece.product is not None
    weights, values = _pick(piece.product.weights, layout.lead), _pick(piece.product.values, layout.lead)
    if not _in_order(layout.tgt[0], weights.shape[2]) or not bool((layout.tgt == layout.tgt[0]).all()):
        index = layout.tgt[:, None, :, None].expand(-1, weights.shape[1], -1, weights.shape[3])
        weights = weights.gather(2, index)
    return weights, values


def _pick(tensor: Tensor, index: Tensor) -> Tensor:
    """`tensor[index]`, as a view when the index only counts up."""
    if _in_order(index.flatten(), len(tensor)):
        return tensor.unflatten(0, index.shape)
    return tensor[index]


def _in_order(index: Tensor, count: int) -> bool:
    return len(index) == count and bool((index == torch.arange(count, device=index.device)).all())


def _joined(weights: tuple[Tensor, ...], values: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """Windows of one sequence as one block: nothing is looked at outside the own window."""
    if len({(w.shape[0], w.shape[1]) for w in weights}) > 1:
        raise LayoutError("windows of different batch or head counts share one output matrix")
    batch, head = weights[0].shape[:2]
    whole = weights[0].new_zeros(batch, head, sum(w.shape[2] for w in weights), sum(w.shape[3] for w in weights))
    top = left = 0
    for part in weights:
        whole[:, :, top : top + part.shape[2], left : left + part.shape[3]] = part
        top, left = top + part.shape[2], left + part.shape[3]
    return whole, torch.cat(values, dim=2)
