"""Information-flow routes (Ferrando and Voita, 2024): what a position is made of, sum by sum, down to the tokens.

    attended[i] = below[i] + Σ_h Σ_j α f_h(below_j) + b_O        end[i] = attended[i] + FF[i]

Every term of a sum has a share in it, by proximity. Those of at least a threshold are the edges that are kept, and
their shares are brought to 1. Only what the chosen position leads to is walked through.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from normlens.capture import NO_FEEDFORWARD, PARALLEL
from normlens.lens import routes_drawn, table
from normlens.lens.block import Block
from normlens.lens.chains import chain, kind_of, side_of
from normlens.lens.network_map import MapError, placed
from normlens.models import Side
from normlens.signature import Signature

if TYPE_CHECKING:
    from normlens.lens.trace import Trace

FIELDS = ("route_shares", "feedforward_share")
THRESHOLD = 0.04
Part = Literal["read", "attended", "crossed", "feed-forward", "end"]
By = Literal["attention", "residual", "feed-forward"]
State = tuple[str, int, Part]


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """One position at one point of the network."""

    side: str  # "text", "source" or "target"
    layer: int  # -1 is what the first layer reads
    part: Part  # behind self-attention "attended", behind cross-attention "crossed", behind feed-forward "end"
    position: int


@dataclass(frozen=True, slots=True)
class Edge:
    """One term of a sum, or what a feed-forward block reads."""

    tgt: Node  # the sum
    src: Node
    by: By
    head: int | None  # of attention
    share: float  # of the term in the sum, among all terms
    weight: float  # among the terms that are kept
    flow: float  # how much of the chosen position comes this way


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Routes:
    """The routes to one position of one sequence."""

    position: int
    threshold: float
    edges: tuple[Edge, ...]  # from the position down
    sides: tuple[Side, ...]  # the text; or the source and what the decoder was fed
    tokens: tuple[Node, ...]  # what the first layers read, in the order of the sides
    scores: Float[np.ndarray, " src"]  # how much of the position the routes lead to, token by token
    signature: Signature

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every node on a route, from the position down."""
        return tuple(dict.fromkeys(node for edge in self.edges for node in (edge.tgt, edge.src)))

    def token(self, node: Node) -> str:
        """The token at the position of a node."""
        return next(side for side in self.sides if side.name == node.side).tokens[node.position]

    def to_dataframe(self) -> Any:
        """A row for each edge."""
        pandas = table.import_pandas()
        frame = pandas.DataFrame(
            [
                {"layer": edge.tgt.layer, "by": edge.by, "head": edge.head}
                | self._named("tgt", edge.tgt)
                | self._named("src", edge.src)
                | {"share": edge.share, "weight": edge.weight, "flow": edge.flow}
                for edge in self.edges
            ]
        )
        return frame.astype({"head": "Int64"}) if len(frame) else frame

    def _named(self, axis: str, node: Node) -> dict[str, Any]:
        facts = {"": node.position, "_token": self.token(node), "_part": node.part, "_side": node.side}
        return {f"{axis}{name}": fact for name, fact in facts.items()}

    def save(self, path: str | Path) -> Path:
        """Write them; the suffix decides: .html, .svg or .png for the graph, .csv or .parquet for the table."""
        return routes_drawn.save(self, Path(path))

    def _repr_html_(self) -> str:
        return routes_drawn.fragment(self)

    def __repr__(self) -> str:
        best = [at for at in np.argsort(-self.scores, kind="stable")[:5] if self.scores[at] > 0]
        named = ", ".join(f"{self.token(self.tokens[at])} {self.scores[at]:.2f}" for at in best)
        heads = sum(edge.by == "attention" for edge in self.edges)
        return (
            f"Routes: {len(self.edges)} edges to position {self.position} ({self.sides[-1].tokens[self.position]}), "
            f"{heads} of them heads, threshold {self.threshold:g}\n  from {named or 'no token'}\n  {self.signature}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """What is added at one point of a layer, for every position."""

    state: State
    carried: State  # by the residual
    read: State  # by the attention or the feed-forward block
    heads: tuple[int, ...]
    shares: Float[np.ndarray, "head tgt src"]  # of attention; of a feed-forward block its own, (1, tgt, 1)
    is_attention: bool

    def terms(self, position: int) -> Iterator[tuple[By, int, int, float]]:
        """What each term is: its kind, its head, the position it comes from and its share."""
        own = self.shares[:, position]
        yield "residual", -1, position, max(0.0, 1 - float(own.sum()))
        for (row, src), share in np.ndenumerate(own):
            if self.is_attention:
                yield "attention", self.heads[row], src, float(share)
            else:
                yield "feed-forward", -1, position, float(share)


def routes(
    trace: Trace, position: int, threshold: float, index: int, kind: str | None, layers: int | Sequence[int] | None
) -> Routes:
    """The routes to a position of sequence `index` after the last layer."""
    if not 0 <= threshold < 1:
        raise MapError("threshold must be at least 0 and below 1.", got=threshold)
    one = trace[index]
    followed = kind_of(one, kind)
    if followed is None:
        sums, sides = _both_sides(one, layers)
    else:
        blocks = chain(one, followed, layers)
        sums, sides = _sums(blocks), (side_of(one, blocks[0])[0],)
    at = placed(position, sides[-1])
    edges, flow = _walked(sums, Node(*sums[-1].state, at), threshold)
    first = {side: min(one.carried[1] for one in sums if one.state[0] == side) for side in (s.name for s in sides)}
    tokens = tuple(Node(s.name, first[s.name], "read", place) for s in sides for place in range(len(s.tokens)))
    scores = np.array([flow[node] for node in tokens])
    return Routes(at, threshold, tuple(edges), sides, tokens, scores, one.signature)


def _walked(sums: Sequence[_Sum], top: Node, threshold: float) -> tuple[list[Edge], defaultdict[Node, float]]:
    """The edges that are kept, and how much of the top comes by way of each node."""
    edges: list[Edge] = []
    flow = defaultdict[Node, float](float, {top: 1.0})
    for one in reversed(sums):
        side, layer, _ = one.state
        for node in sorted(node for node in flow if (node.side, node.layer, node.part) == one.state):
            kept = [term for term in one.terms(node.position) if term[3] >= threshold and term[3] > 0]
            whole = sum(share for *_, share in kept)
            for by, head, src, share in kept:
                through = flow[node] * share / whole
                below = Node(*(one.carried if by == "residual" else one.read), src)
                if by == "feed-forward":
                    block = Node(side, layer, "feed-forward", node.position)
                    edges.append(Edge(node, block, by, None, share, share / whole, through))
                    edges.append(Edge(block, below, by, None, 1.0, 1.0, through))
                else:
                    number = head if by == "attention" else None
                    edges.append(Edge(node, below, by, number, share, share / whole, through))
                flow[below] += through
    return edges, flow


def _both_sides(trace: Trace, layers: int | Sequence[int] | None) -> tuple[list[_Sum], tuple[Side, ...]]:
    """Encoder, then decoder, whose cross-attention reads the last states of the encoder."""
    encoder, decoder, cross = chain(trace, "encoder"), chain(trace, "decoder", layers), trace.layers("cross")
    below = _sums(encoder)
    found = _sums(decoder, [cross[block.layer] for block in decoder], below[-1].state)
    return [*below, *found], (side_of(trace, encoder[0])[0], side_of(trace, decoder[0])[0])


def _sums(blocks: Sequence[Block], crossed: Sequence[Block] = (), memory: State | None = None) -> list[_Sum]:
    """The sums of all layers, from the first one up."""
    side = blocks[0].tgt
    below: State = (side, blocks[0].layer - 1, "read")
    found: list[_Sum] = []
    for at, block in enumerate(blocks):
        found.append(_attention(block, (side, block.layer, "attended"), below, below))
        last = block
        if memory is not None:
            last = crossed[at]
            found.append(_attention(last, (side, block.layer, "crossed"), found[-1].state, memory))
        if last.absent.get("feedforward_share") != NO_FEEDFORWARD:
            beside = last.absent.get("joined_norms") == PARALLEL
            shares = _numbers(last, "feedforward_share")[None, :, None]
            state = found[-1].state
            read = below if beside else state
            found.append(_Sum((side, block.layer, "end"), state, read, (), shares, is_attention=False))
        below = found[-1].state
    return found


def _attention(block: Block, state: State, carried: State, read: State) -> _Sum:
    return _Sum(state, carried, read, block.heads, _numbers(block, "route_shares"), is_attention=True)


def _numbers(block: Block, name: str) -> Float[np.ndarray, "*axes"]:
    if name not in block.kept and name not in block.absent:
        raise MapError("This trace did not keep the shares of routes.", do=f"trace again with fields={FIELDS}.")
    return block[name][0].double().cpu().numpy()
