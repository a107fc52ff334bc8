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


def assemble(
    pieces: tuple[Piece, ...], serial: Tensor, projection: Projection, result: Tensor, *, out: str
) -> Attended:
    """The block whose output matrix just read `serial`. Windows cut out of one sequence come back as one block."""
    rows, out_rows = projection.rows(serial), projection.out_rows(result)
    if bool((rows < 0).any()):
        raise LayoutError("rows that no attention computed are mixed into its output")
    parts = [_part(piece, rows) for piece in pieces]
    channels = parts[0][0].channels
    if any(not torch.equal(layout.channels, channels) for layout, _, _ in parts):
        raise LayoutError("outputs of several attentions stand side by side in one row")
    output = torch.cat([out_rows[layout.rows] for layout, _, _ in parts], dim=1) if len(parts) > 1 else None
    layout, weights, values = parts[0]
    if output is not None:
        weights, values = _joined([w for _, w, _ in parts], [v for _, _, v in parts])
    return Attended(
        order=pieces[0].order,
        where=pieces[0].where,
        out=out,
        weights=weights,
        values=values,
        out_weight=_pick(projection.weight, channels.flatten()).unflatten(0, channels.shape),
        out_bias=projection.bias,
        output=_pick(out_rows, layout.rows.flatten()).unflatten(0, layout.rows.shape) if output is None else output,
    )


def _part(piece: Piece, rows: Tensor) -> tuple[Layout, Tensor, Tensor]:
    assert piece.product is not None
    weights, values = piece.product.weights, piece.product.values
    mine = (rows[:, 0] >= piece.start) & (rows[:, 0] < piece.start + piece.size)
    index = mine.nonzero().squeeze(1)
    if not len(index):
        raise LayoutError("part of its output never reaches the output matrix")
    layout = read_layout(rows[index], start=piece.start, tgt=weights.shape[1], head_dim=values.shape[2])
    layout = Layout(layout.lead, index[layout.rows], layout.tgt, layout.channels)
    lead = layout.lead.flatten()
    picked = _pick(weights, lead).unflatten(0, layout.lead.shape)
    if layout.tgt.shape[1] != weights.shape[1] or bool((layout.tgt != torch.arange(weights.shape[1])).any()):
        picked = picked.gather(2, layout.tgt[:, None, :, None].expand(-1, picked.shape[1], -1, picked.shape[3]))
    return layout, picked, _pick(values, lead).unflatten(0, layout.lead.shape)


def _pick(tensor: Tensor, index: Tensor) -> Tensor:
    """`tensor[index]`, as a view when the index changes nothing."""
    if len(index) == len(tensor) and bool((index == torch.arange(len(index), device=index.device)).all()):
        return tensor
    return tensor[index]


def _joined(weights: list[Tensor], values: list[Tensor]) -> tuple[Tensor, Tensor]:
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
