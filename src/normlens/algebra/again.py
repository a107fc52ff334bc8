"""The end of a layer computed again for another output of its attention: its norms and feed-forward blocks as they are.

Value zeroing (Mohebbi et al., 2023) takes what key j sends to query i out of the attention, the weights unchanged:

    1 - cos(layer(o_i), layer(o_i - Σ_h α[h,i,j] f_h(x_j)))        rows to 1

A norm has a new statistic then, s² = mean(w²) + ε of what it divides. Its ε is read off the pass, where s² is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from normlens.algebra.feedforward import FeedForward
from normlens.algebra.parts import RowStep, Sent


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Something that the end of a layer is a sum of, before its steps. Pieces that are normed together share a step."""

    steps: tuple[RowStep, ...]
    fixed: Float[Tensor, "row model"] | None = None  # None: made of the attention output, or the output itself
    network: FeedForward | None = None
    reads: tuple[Piece, ...] = ()  # what the network reads


@dataclass(frozen=True, slots=True, eq=False)
class Again:
    """The end of a layer as a function of the output of its attention."""

    pieces: tuple[Piece, ...]
    output: Float[Tensor, "row model"]  # of the attention, in the pass
    eps: dict[RowStep, Tensor] = field(default_factory=dict)  # ε of each norm
    spread: float = 0.0  # how far ε differs among rows, relative to s²: near 0, or the norm is of another kind

    @classmethod
    def of(cls, pieces: tuple[Piece, ...], output: Float[Tensor, "row model"]) -> Again:
        """With the ε of its norms read off the pass, where the vectors are smallest."""
        every = torch.arange(len(output), device=output.device)
        norms = _Norms()
        _state(pieces, output, every, norms)
        return cls(pieces, output, norms.eps, norms.spread)

    def __call__(
        self, attention: Float[Tensor, "cell model"], rows: Int[Tensor, " cell"]
    ) -> Float[Tensor, "cell model"]:
        """The vectors at the end of the layer for other outputs of the attention at some of its rows."""
        return _state(self.pieces, attention, rows, _Norms(self.eps, known=True))

    @property
    def width(self) -> int:
        """The most units of a feed-forward block."""
        return max([one.network.width for one in self.pieces if one.network], default=0)


@dataclass(slots=True, eq=False)
class _Norms:
    """The norms of a layer: their ε is known, or read off the pass."""

    eps: dict[RowStep, Tensor] = field(default_factory=dict)
    known: bool = False
    spread: float = 0.0

    def factor(self, step: RowStep, vectors: Float[Tensor, "cell model"]) -> Float[Tensor, "cell 1"]:
        """1 / s of vectors that the step divides."""
        size = vectors.square().mean(dim=-1, keepdim=True)
        if not self.known:
            assert isinstance(step.by, Tensor)
            by = step.by.flatten(0, 1).to(size)
            there = by[:, 0] != 0  # not left out behind it
            squares = by[there].square().reciprocal()
            eps = squares - size[there]
            self.eps[step] = eps[squares.argmin()].clamp_min(0) if len(eps) else size.new_zeros(1)
            self.spread = max(self.spread, *((eps - self.eps[step]).abs() / squares).flatten().tolist())
        return (size + self.eps[step]).clamp_min(torch.finfo(size.dtype).tiny).rsqrt()


def _state(
    pieces: Sequence[Piece], attention: Float[Tensor, "cell model"], rows: Int[Tensor, " cell"], norms: _Norms
) -> Float[Tensor, "cell model"]:
    """The sum of the pieces after their steps; those that are normed together wait for each other."""
    vectors = [_made(one, attention, rows, norms) for one in pieces]
    at, factors = [0] * len(pieces), dict[RowStep, Tensor]()
    while waiting := [index for index, one in enumerate(pieces) if at[index] < len(one.steps)]:
        for index in waiting:
            step = pieces[index].steps[at[index]]
            together = [other for other, one in enumerate(pieces) if step in one.steps]
            if step.normed and step not in factors:
                if any(at[other] == len(pieces[other].steps) or pieces[other].steps[at[other]] is not step
                       for other in together):  # fmt: skip
                    continue
                factors[step] = norms.factor(step, sum(vectors[other] for other in together))  # pyright: ignore
            vectors[index] = vectors[index] * factors[step] if step.normed else _of_rows(step, rows)(vectors[index])
            at[index] += 1
    return sum(vectors[1:], vectors[0])


def _made(piece: Piece, attention: Tensor, rows: Tensor, norms: _Norms) -> Tensor:
    network = piece.network
    if network is None:
        return attention if piece.fixed is None else piece.fixed[rows]
    units = network.units_of(_state(piece.reads, attention, rows, norms))
    for step in network.inner:
        units = units * norms.factor(step, units) if step.normed else _of_rows(step, rows)(units)
    written = units @ network.out_weight
    return written if network.out_bias is None else written + network.out_bias


def _of_rows(step: RowStep, rows: Tensor) -> RowStep:
    """The step for some rows."""
    if step.kind == "centre" or step.same:
        return step
    assert isinstance(step.by, Tensor)
    return RowStep(step.kind, step.by.flatten(0, 1)[rows])


def value_zeroing(sent: Sent, again: Again) -> Float[Tensor, "batch tgt src"]:
    """How far each query ends elsewhere without what a key sends it, as shares; nothing is done where α is 0."""
    batch, _, tgt, src = sent.weights.shape
    transformed, reached = sent.transformed(), (sent.weights != 0).any(dim=1)
    numbers = torch.arange(batch * tgt, device=reached.device).view(batch, tgt, 1).expand(batch, tgt, src)
    far = sent.values.new_zeros(batch, tgt, src)
    for some in sent.blocks(max(sent.out_weight.shape[-1], again.width)):
        here = reached[:, some]
        rows = numbers[:, some][here]
        taken = sent.vectors(some, transformed)[here]
        own, index = rows.unique(return_inverse=True)
        whole = again(again.output[own], own)[index]
        far[:, some][here] = _distance(again(again.output[rows] - taken, rows), whole).to(far)
    return far / far.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(far.dtype).tiny)


def _distance(vectors: Float[Tensor, "cell model"], others: Float[Tensor, "cell model"]) -> Float[Tensor, " cell"]:
    """1 - cos, as half the square of the difference of directions, which keeps digits where that is small."""
    least = torch.finfo(vectors.dtype).tiny
    left, right = (v / v.norm(dim=-1, keepdim=True).clamp_min(least) for v in (vectors, others))
    return (left - right).square().sum(dim=-1) / 2
