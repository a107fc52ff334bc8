"""Put the products that reached one output matrix together into one attention block, positions in their order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from normlens.capture.factors import NORM, Scaling, laid_out
from normlens.capture.layout import Layout, LayoutError, read_layout
from normlens.capture.operations import Product, Projection
from normlens.capture.positions import VIRTUAL, Field, Positions
from normlens.capture.record import Attended, Axis, Seen


@dataclass(frozen=True, slots=True, eq=False)
class Owners:
    """Whose positions the rows and columns of a product are."""

    queries: Field | None
    keys: Field | None
    tgt: tuple[str, ...]  # the inputs the queries come from
    src: tuple[str, ...]  # the inputs the values come from
    among_tokens: bool = True  # not a softmax over words, classes, memory slots, or things of one and the same token


NOBODY = Owners(None, None, (), ())


@dataclass(slots=True, eq=False)
class Piece:
    """One product α·v on its way to an output matrix."""

    order: int
    where: str  # module path, "" when nobody keeps track
    start: int  # its first serial number
    size: int
    product: Product | None  # dropped once the block is complete, so that nothing outlives its layer
    seen: Seen
    owners: Owners = NOBODY
    out: str | None = None  # the output matrix that took it; "" when it is no parameter
    fate: str | None = None  # what happened to it instead
    read: str | None = None  # the call that read its numbers and gave back none that can be followed


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The products that fill the same channels of what an output matrix reads."""

    pieces: tuple[Piece, ...]
    layouts: tuple[Layout, ...]
    projection: Projection
    scaling: Scaling | None


def layouts_of(
    pieces: tuple[Piece, ...], serial: Tensor, projection: Projection
) -> list[tuple[tuple[Piece, ...], tuple[Layout, ...]]]:
    """Where each product lies in what an output matrix reads, off the serial numbers that arrived there.

    Products that stand side by side in a row are apart.
    """
    rows = projection.rows(serial)
    if bool((rows < 0).any()):
        raise LayoutError("rows that no attention computed are mixed into its output")
    starts = torch.tensor(sorted(piece.start for piece in pieces), device=rows.device)
    owners = torch.searchsorted(starts, rows[0].contiguous(), right=True)
    found = []
    for owner in torch.unique(owners):
        channels = (owners == owner).nonzero().squeeze(1)
        columns = rows[:, channels]
        here = tuple(piece for piece in pieces if bool(_of(piece, columns).any()))
        layouts = tuple(_layout(piece, columns) for piece in here)
        if any(not torch.equal(layout.channels, layouts[0].channels) for layout in layouts):
            raise LayoutError("outputs of several attentions stand side by side in one row")
        found.append((here, tuple(replace(layout, channels=channels[layout.channels]) for layout in layouts)))
    return found


def assemble(part: Part, result: Tensor, positions: Positions, *, out: str) -> Attended:
    """The block whose output matrix just ran. Windows cut out of one sequence come back as one block."""
    pieces, layouts, projection = part.pieces, part.layouts, part.projection
    added = 0 if projection.added is None else projection.added
    rows, channels = projection.out_rows(result if projection.added is None else result - added), layouts[0].channels
    parts = [_part(piece, layout) for piece, layout in zip(pieces, layouts, strict=True)]
    outputs = [_pick(rows, layout.rows) for layout in layouts]
    weights, values = parts[0] if len(parts) == 1 else _joined(*zip(*parts, strict=True))
    output = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1)
    scores = _scores(pieces, layouts)
    gates = None if part.scaling is None else torch.cat([laid_out(part.scaling.cells, one) for one in layouts], dim=2)
    tgt, src, order = axes_of(pieces, layouts, positions)
    if order.queries is not None:
        index = order.queries
        weights = weights.gather(2, index[:, None, :, None].expand(weights.shape))
        output = output.gather(1, index[:, :, None].expand(output.shape))
        scores = None if scores is None else scores.gather(2, index[:, None, :, None].expand(scores.shape))
        gates = None if gates is None else gates.gather(2, index[:, None, :, None].expand(gates.shape))
    if order.keys is not None:
        weights = weights.gather(3, order.keys[:, :, None, :].expand(weights.shape))
        values = values.gather(2, order.keys[..., None].expand(values.shape))
        scores = None if scores is None else scores.gather(3, order.keys[:, :, None, :].expand(scores.shape))
    return Attended(
        order=pieces[0].order,
        where=pieces[0].where,
        out=out,
        weights=weights,
        values=values,
        out_weight=_pick(projection.weight, channels),
        out_bias=projection.bias,
        output=output,
        scores=scores,
        gates=gates,
        no_transformed=NORM if part.scaling is not None and part.scaling.is_normed else None,
        tgt=tgt,
        src=src,
    )


def rows_of(part: Part, result: Tensor, positions: Positions) -> Tensor | None:
    """Which row of what the output matrix wrote each position of the block is; None where its rows are no rows."""
    count = result.numel() // max(1, result.shape[-1])
    numbers = torch.arange(count, device=result.device).view(*result.shape[:-1], 1).expand(result.shape)
    numbered = part.projection.out_rows(numbers)
    if numbered.shape != (count, result.shape[-1]) or bool((numbered != numbered[:, :1]).any()):
        return None
    rows = torch.cat([numbered[:, 0][layout.rows] for layout in part.layouts], dim=1)
    order = axes_of(part.pieces, part.layouts, positions)[2]
    return rows if order.queries is None else rows.gather(1, order.queries)


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Where each position of an input stands in what the model computed; None when it is in its place."""

    queries: Tensor | None  # (batch, tgt)
    keys: Tensor | None  # (batch, head, src)


def axes_of(pieces: tuple[Piece, ...], layouts: tuple[Layout, ...], positions: Positions) -> tuple[Axis, Axis, Order]:
    """Whose positions the axes of a block have, and how to bring them into their order."""
    forms = tuple(None if piece.product is None else piece.product.form for piece in pieces)
    key = ("axes", tuple((p.owners.queries, p.owners.keys, p.owners.tgt, p.owners.src) for p in pieces), forms, layouts)
    return positions.remembered(key, lambda: _axes(pieces, layouts, positions))


def _axes(pieces: tuple[Piece, ...], layouts: tuple[Layout, ...], positions: Positions) -> tuple[Axis, Axis, Order]:
    queries, keys = [], []
    tgt = src = 0
    for piece, layout in zip(pieces, layouts, strict=True):
        assert piece.product is not None
        asked, answered = piece.owners.queries, piece.owners.keys
        rows = None if asked is None else piece.product.queries(asked.codes)[layout.lead]
        if rows is not None:
            at = layout.tgt[:, None, :].expand(-1, rows.shape[1], -1)
            rows = rows.gather(2, at)
        queries.append(rows)
        keys.append(None if answered is None else piece.product.keys(answered.codes)[layout.lead])
        tgt, src = tgt + layout.tgt.shape[1], src + piece.product.values.shape[1]
    tgt_codes, src_codes = (
        None if any(code is None for code in codes) else torch.cat(codes, dim=2)  # pyright: ignore
        for codes in (queries, keys)
    )
    reasons: list[str | None] = [None, None]
    if tgt_codes is not None and not bool((tgt_codes == tgt_codes[:, :1]).all()):
        of_weights = all(piece.owners.tgt == (VIRTUAL,) for piece in pieces)
        tgt_codes, reasons[0] = None, None if of_weights else "differ from head to head"
    by_query = None if tgt_codes is None else positions.order(tgt_codes[:, 0])
    by_key = None if src_codes is None else positions.order(src_codes)
    if by_query is not None and (by_key is None or not bool((by_key == by_query[:, None]).all())):
        tgt_codes, by_query, reasons[0] = None, None, "stand in another order than its keys"
    if tgt_codes is not None:
        tgt_codes = tgt_codes[:, 0] if by_query is None else tgt_codes[:, 0].gather(1, by_query)
    if src_codes is not None:
        src_codes = src_codes if by_key is None else src_codes.gather(2, by_key)
        if bool((src_codes == src_codes[:, :1]).all()):
            src_codes = src_codes[:, 0]
        else:
            src_codes, by_key, reasons[1] = None, None, "differ from head to head"
    names = (
        tuple(dict.fromkeys(name for piece in pieces for name in getattr(piece.owners, side)))
        for side in ("tgt", "src")
    )
    axes = (
        Axis(name, count, codes, positions.streams, reason)
        for name, count, codes, reason in zip(names, (tgt, src), (tgt_codes, src_codes), reasons, strict=True)
    )
    return (*axes, Order(by_query, by_key))  # pyright: ignore


def _layout(piece: Piece, rows: Tensor) -> Layout:
    assert piece.product is not None
    tgt, head_dim = piece.product.weights.shape[1], piece.product.values.shape[2]
    mine = _of(piece, rows[:, 0]).nonzero().squeeze(1)
    if not len(mine):
        raise LayoutError("its cells are mixed with those of another attention")
    layout = read_layout(rows[mine], start=piece.start, tgt=tgt, head_dim=head_dim)
    return Layout(layout.lead, mine[layout.rows], layout.tgt, layout.channels)


def _of(piece: Piece, serial: Tensor) -> Tensor:
    return (serial >= piece.start) & (serial < piece.start + piece.size)


def _part(piece: Piece, layout: Layout) -> tuple[Tensor, Tensor]:
    assert piece.product is not None
    return _by_head(piece.product.weights, layout), _pick(piece.product.values, layout.lead)


def _scores(pieces: tuple[Piece, ...], layouts: tuple[Layout, ...]) -> Tensor | None:
    """What the softmax got, as the weights are laid out; None for several windows, or where it cannot be told."""
    product = pieces[0].product if len(pieces) == 1 else None
    return None if product is None or product.scores is None else _by_head(product.scores, layouts[0])


def _by_head(maps: Tensor, layout: Layout) -> Tensor:
    maps = _pick(maps, layout.lead)
    if not _in_order(layout.tgt[0], maps.shape[2]) or not bool((layout.tgt == layout.tgt[0]).all()):
        maps = maps.gather(2, layout.tgt[:, None, :, None].expand(-1, maps.shape[1], -1, maps.shape[3]))
    return maps


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
