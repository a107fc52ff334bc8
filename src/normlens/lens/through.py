"""Maps through the network, from the maps of single layers: which tokens a position is made of after all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from normlens import algebra
from normlens.lens.block import Block
from normlens.lens.chains import chain, side_of
from normlens.lens.network_map import MapError, NetworkMap
from normlens.measures import QUANTITIES, WITH_RESIDUAL
from normlens.models import Side

if TYPE_CHECKING:
    from normlens.lens.trace import Trace

HALF = 0.5  # the share of the residual beside a map that knows nothing of it
RAW = {"globenc": "encoder_norms"}  # products of norms as they are


def rollout(
    trace: Trace, by: str, kind: str | None, layers: int | Sequence[int] | None, residual: float | None
) -> NetworkMap:
    """The product of the maps of all layers; of an encoder-decoder, of both its sides."""
    if residual is not None and not 0 <= residual <= 1:
        raise MapError("residual must be from 0 to 1.", got=residual)
    kinds = list(dict.fromkeys(wire.kind for wire in trace.wires)) or [block.kind for block in trace.blocks]
    if kind is None and {"encoder", "decoder", "cross"} <= set(kinds):
        return _of_both_sides(trace, by, layers, residual)
    kind = kind or next((one for one in ("self", *kinds) if one in kinds), "self")
    blocks = chain(trace, kind, layers)
    products = algebra.rollout([transition(block, by, residual) for block in blocks])
    numbers = tuple(block.layer for block in blocks)
    sides = side_of(trace, blocks[0])
    return NetworkMap("rollout", by, numbers, torch.stack(products, dim=1), sides, sides, trace.signature)


def transition(block: Block, by: str, residual: float | None) -> Float[Tensor, "batch tgt src"]:
    """What a layer makes of the positions before it: rows of shares, or norms as they are."""
    name = RAW.get(by, by)
    quantity = block.quantity(name) if name in block.own else QUANTITIES.get(name)
    if quantity is not None and (quantity.axes[-2:] != ("tgt", "src") or quantity.one_side):
        fit = [n for n, q in QUANTITIES.items() if q.axes[-2:] == ("tgt", "src") and q.role is not None]
        raise MapError(f"'{by}' is no map of what a key adds to a query.", do=f"use {', '.join((*fit, *RAW))}.")
    maps = algebra.one_map(block[name])
    if by in RAW:
        return maps
    share = residual if residual is not None else 0.0 if name in WITH_RESIDUAL else HALF
    return algebra.with_residual(algebra.shares(maps), share, [tgt for tgt, _ in block.sizes])


def _of_both_sides(trace: Trace, by: str, layers: int | Sequence[int] | None, residual: float | None) -> NetworkMap:
    """Encoder, then decoder: rows are what the decoder was fed, columns the source and what it was fed."""
    if by in RAW:
        raise MapError(
            f"'{by}' is for encoders; raw norms have no row to share with the residual.", do='kind="encoder".'
        )
    encoder, decoder = chain(trace, "encoder"), chain(trace, "decoder", layers)
    of_cross = trace.layers("cross")
    lost = [block.layer for block in decoder if block.layer not in of_cross.blocks]
    if lost or len(of_cross.wires) != len(trace.layers("decoder").wires):
        raise MapError(f"decoder layer {lost[0] if lost else 0} has no cross-attention in this trace.")
    cross = [of_cross[block.layer] for block in decoder]
    read = algebra.rollout([transition(block, by, residual) for block in encoder])[-1]
    attended = [transition(block, by, residual) for block in decoder]
    crossed = [_crossed(block, by, residual) for block in cross]
    sizes = [tgt for tgt, _ in cross[0].sizes]
    joint = algebra.joint_rollout(read, attended, crossed, sizes)
    tgt, src = side_of(trace, decoder[0]), side_of(trace, encoder[0])
    widths = [len(side.tokens) for side in src]
    apart = [algebra.side_by_side(maps, widths, sizes, read.shape[1]) for maps in joint]
    both = tuple(_joined(a, b) for a, b in zip(src, tgt, strict=True))
    numbers = tuple(block.layer for block in decoder)
    return NetworkMap("rollout", by, numbers, torch.stack(apart, dim=1), tgt, both, trace.signature)


def _crossed(block: Block, by: str, residual: float | None) -> Float[Tensor, "batch tgt src"]:
    """Shares of the keys in a row that holds the residual too."""
    maps = algebra.one_map(block[by])
    if by == "alti":
        return maps
    if by in WITH_RESIDUAL and residual is None:
        raise MapError(
            f"'{by}' of cross-attention holds the parts of the source, and not the residual beside them.",
            do="use 'alti'; or say the share of the residual: residual=0.5.",
        )
    return algebra.shares(maps) * (1 - (HALF if residual is None else residual))


def _joined(first: Side, second: Side) -> Side:
    """Two texts as one axis."""
    words = len(first.words)
    numbers = (*first.word_ids, *(None if word is None else word + words for word in second.word_ids))
    parts = ((*getattr(first, name), *getattr(second, name)) for name in ("ids", "tokens", "special"))
    return Side(f"{first.name}+{second.name}", *parts, word_ids=numbers)
