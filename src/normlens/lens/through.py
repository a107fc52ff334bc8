"""Maps through the network, from the maps of single layers: which tokens a position is made of after all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from normlens import algebra
from normlens.lens.block import Block
from normlens.lens.chains import chain, kind_of, side_of
from normlens.lens.network_map import MapError, NetworkMap
from normlens.measures import QUANTITIES, WITH_RESIDUAL
from normlens.models import Side

if TYPE_CHECKING:
    from normlens.lens.trace import Trace

HALF = 0.5  # the share of the residual beside a map that knows nothing of it
RAW = {"globenc": "encoder_norms"}  # products of norms as they are


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """What every layer makes of the positions before it, and the tokens at its ends."""

    own: tuple[Tensor, ...]  # (batch, tgt, tgt) of each layer
    numbers: tuple[int, ...]  # of the layers
    tgt: tuple[Side, ...]
    encoder: tuple[Tensor, ...] = ()  # (batch, src, src); empty for models with one side
    cross: tuple[Tensor, ...] = ()  # (batch, tgt, src) beside each layer of the decoder
    source: tuple[Side, ...] = ()

    @property
    def src(self) -> tuple[Side, ...]:
        """The tokens that positions are made of: the source, then what the decoder was fed."""
        return tuple(map(_joined, self.source, self.tgt)) if self.source else self.tgt

    def rolled(self) -> list[Float[Tensor, "batch tgt src"]]:
        """The products up to each layer."""
        if not self.source:
            return algebra.rollout(self.own)
        first, second = ([len(side.tokens) for side in sides] for sides in (self.source, self.tgt))
        read = algebra.rollout(self.encoder)[-1]
        joint = algebra.joint_rollout(read, self.own, self.cross, second)
        return [algebra.side_by_side(maps, first, second, read.shape[1]) for maps in joint]

    def flows(self, index: int, positions: Sequence[int]) -> tuple[Float[np.ndarray, "row src"], float]:
        """The most that can flow to some positions of one sequence, and by how much it may be too small."""
        tgt, src = len(self.tgt[index].tokens), len(self.source[index].tokens) if self.source else 0
        links, below = [], 0
        for maps in self.encoder:
            links.append(algebra.Links(below + src, below, _of(maps, index, src, src)))
            below += src
        top, at = below, below + src  # the last states of the encoder, and what the decoder was fed
        fed = at
        for layer, maps in enumerate(self.own):
            links.append(algebra.Links(at + tgt, at, _of(maps, index, tgt, tgt)))
            at += tgt
            if self.cross:
                crossed = _of(self.cross[layer], index, tgt, src)
                links.append(algebra.Links(at + tgt, top, crossed))
                links.append(algebra.Links(at + tgt, at, np.diag((1 - crossed.sum(1)).clip(0))))
                at += tgt
        found = algebra.max_flows(links, [at + p for p in positions], [*range(src), *range(fed, fed + tgt)])
        return found, algebra.rounding(links)


def rollout(
    trace: Trace, by: str, kind: str | None, layers: int | Sequence[int] | None, residual: float | None
) -> NetworkMap:
    """The product of the maps of all layers; of an encoder-decoder, of both its sides."""
    found = network(trace, by, kind, layers, residual)
    products = torch.stack(found.rolled(), dim=1)
    return NetworkMap("rollout", by, found.numbers, products, found.tgt, found.src, trace.signature)


def maxflow(
    trace: Trace,
    by: str,
    positions: int | Sequence[int] | None,
    kind: str | None,
    layers: int | Sequence[int] | None,
    residual: float | None,
) -> NetworkMap:
    """The maximum flow from positions after the last layer to every token, edges being the shares of a rollout."""
    if by in RAW:
        raise MapError(f"'{by}' multiplies norms, and a flow needs shares.", do=f"by={RAW[by]!r}.")
    found = network(trace, by, kind, layers, residual)
    asked = [positions] if isinstance(positions, int) else positions
    rows, flows, lost = [], [], 0.0
    for index, side in enumerate(found.tgt):
        count = len(side.tokens)
        every = range(count) if asked is None else asked
        if wrong := [p for p in every if not -count <= p < count]:
            raise MapError(f"no position {wrong[0]}: sequence {index} has positions 0 to {count - 1}.")
        rows.append(tuple(p % count for p in every))
        flow, error = found.flows(index, rows[-1])
        flows.append(flow)
        lost = max(lost, error)
    width, height = max(flow.shape[1] for flow in flows), max(map(len, rows))
    values = torch.zeros(len(flows), 1, height, width)
    for whole, flow in zip(values, flows, strict=True):
        whole[0, : len(flow), : flow.shape[1]] = torch.from_numpy(flow)
    numbers, rows = found.numbers[-1:], () if asked is None else tuple(rows)
    return NetworkMap("maxflow", by, numbers, values, found.tgt, found.src, trace.signature, rows, lost)


def network(
    trace: Trace, by: str, kind: str | None, layers: int | Sequence[int] | None, residual: float | None
) -> Network:
    """The layers of a trace as steps; of an encoder-decoder both sides, unless one kind of attention is chosen."""
    if residual is not None and not 0 <= residual <= 1:
        raise MapError("residual must be from 0 to 1.", got=residual)
    followed = kind_of(trace, kind)
    if followed is None:
        return _both_sides(trace, by, layers, residual)
    blocks = chain(trace, followed, layers)
    own = tuple(transition(block, by, residual) for block in blocks)
    return Network(own, tuple(block.layer for block in blocks), side_of(trace, blocks[0]))


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


def _both_sides(trace: Trace, by: str, layers: int | Sequence[int] | None, residual: float | None) -> Network:
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
    return Network(
        own=tuple(transition(block, by, residual) for block in decoder),
        numbers=tuple(block.layer for block in decoder),
        tgt=side_of(trace, decoder[0]),
        encoder=tuple(transition(block, by, residual) for block in encoder),
        cross=tuple(_crossed(of_cross[block.layer], by, residual) for block in decoder),
        source=side_of(trace, encoder[0]),
    )


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


def _of(maps: Float[Tensor, "batch tgt src"], index: int, rows: int, columns: int) -> Float[np.ndarray, "row column"]:
    """The shares of one sequence; rounding may have left them a little above 1 together."""
    shares = maps[index, :rows, :columns].double().cpu().numpy()
    return shares / shares.sum(axis=1, keepdims=True).clip(1)
