"""What reaches a later point of the layer, in parts: every key's share of the attention output, and the token's own.

    whole[i] = Σ_j F[i,j] + own[i] + unowned[i]        F[i,j] = steps(Σ_h α[h,i,j] f_h(x_j))

Steps are linear once their statistics are taken from the pass: a norm centres, divides by a number of the query and
multiplies by its weights. What is the same for every query is folded into W_O, so ‖F‖ is the norm of a sum of heads
again, divided by a number of the query. Nothing of size (tgt, src, model) is built.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from normlens.algebra import attention, gated

CELLS = 1 << 22  # numbers of vectors held at a time


@dataclass(frozen=True, slots=True, eq=False)
class RowStep:
    """One linear step. `by` is a number, one for each query, one for each coordinate, or both."""

    kind: Literal["scale", "centre"]
    by: Tensor | float = 1.0
    normed: bool = False  # by a statistic of the vectors themselves

    def __call__(self, vectors: Float[Tensor, "*rows model"]) -> Float[Tensor, "*all_rows model"]:
        """Applied to (batch, tgt, model), to (batch, tgt, src, model), or to one vector for all rows."""
        if self.kind == "centre":
            return vectors - vectors.mean(dim=-1, keepdim=True)
        by = self.by
        if isinstance(by, Tensor):
            by = by.to(vectors)
            if by.ndim == 3 and vectors.ndim == 4:
                by = by[:, :, None]
        return vectors * by

    @property
    def of_query(self) -> bool:
        """One number for each query."""
        return isinstance(self.by, Tensor) and self.by.ndim == 3 and self.by.shape[-1] == 1

    @property
    def same(self) -> bool:
        """The same for every query."""
        return not isinstance(self.by, Tensor) or self.by.ndim < 3

    def at_rows(self, rows: Tensor) -> RowStep:
        """For some rows only, where the axes are (row, 1)."""
        return RowStep(self.kind, self.by if self.same else self.by[rows])  # pyright: ignore

    def of(self, queries: slice) -> RowStep:
        """For some queries only."""
        return RowStep(self.kind, self.by if self.same else self.by[:, queries])  # pyright: ignore


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One point of a layer: the steps to it, what each token adds of its own, and what belongs to no token."""

    steps: tuple[RowStep, ...]
    own: Float[Tensor, "batch tgt model"]
    unowned: Float[Tensor, "batch tgt model"]
    whole: Float[Tensor, "batch tgt model"]
    error: float = 0.0  # how exactly the terms rebuilt what the model computed, relative
    layers: tuple[Any, ...] = ()  # the feed-forward blocks that join on the way, see feedforward.py
    one_side: bool = True  # keys are the same tokens as queries, so what is a token's own is a part like the others
    again: Any = None  # the same for other outputs of the attention, see again.py

    def full(self) -> Float[Tensor, "batch tgt model"]:
        """What the model computed at this point, with what feed-forward blocks add."""
        state = self.whole
        for layer in self.layers:
            state = state + layer.added()
        return state

    def along(self, vectors: Tensor) -> Tensor:
        """Vectors (batch, tgt, …, model) through the steps."""
        for step in self.steps:
            vectors = step(vectors)
        return vectors

    @property
    def folds(self) -> bool:
        """Whether every step is the same for all queries but for a number."""
        return all(step.same or step.of_query for step in self.steps)

    @property
    def moves(self) -> bool:
        """Whether some step changes directions, so that W_O changes."""
        return any(
            step.kind == "centre" or (isinstance(step.by, Tensor) and step.by.ndim == 1 and step.by.numel() > 1)
            for step in self.steps
        )

    def folded(self, vectors: Float[Tensor, "*rows model"]) -> Float[Tensor, "*rows model"]:
        """Vectors, or the rows of W_O, after what is the same for every query."""
        for step in self.steps:
            if step.same:
                vectors = step(vectors)
        return vectors

    def sizes(self, like: Tensor) -> Float[Tensor, "batch tgt 1"]:
        """The numbers of the queries, multiplied."""
        size = torch.ones(*self.own.shape[:2], 1, dtype=like.dtype, device=like.device)
        for step in self.steps:
            if step.of_query:
                size = size * step.by  # pyright: ignore
        return size.to(like.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """What the keys of a block send to its queries, in all heads."""

    weights: Float[Tensor, "batch head tgt src"]  # α, times the scale of its query where there is one
    values: Float[Tensor, "batch head src head_dim"]
    out_weight: Float[Tensor, "head head_dim model"]
    gates: Float[Tensor, "batch head tgt head_dim"] | None = None
    known: dict[Any, Tensor] = field(default_factory=dict)  # what several quantities need, computed once
    stages: tuple[Stage, ...] = ()  # points of the layer whose norms are asked for

    def own_and_others(self) -> tuple[Float[Tensor, "batch tgt model"], Float[Tensor, "batch tgt model"]]:
        """What attention adds to a token from itself, and from all others."""
        own = self.own()
        if "all" not in self.known:
            self.known["all"] = self._written(torch.matmul(self.weights, self.values))
        return own, self.known["all"] - own

    def own(self) -> Float[Tensor, "batch tgt model"]:
        """Σ_h α[h,i,i] f_h(x_i): what a token adds to itself by attention."""
        if "own" not in self.known:
            self.known["own"] = self._written(self.weights.diagonal(dim1=2, dim2=3)[..., None] * self.values)
        return self.known["own"]

    def gram(self, stage: Stage | None = None) -> Float[Tensor, "head head2 batch src"]:
        """The products of f_h(x_j) for every pair of heads, as they are or as they come to a point of the layer.

        Every f(x) is computed once for all of them, and for what a token adds to itself.
        """
        if stage not in self.known:
            folds = dict.fromkeys((None, *(one for one in self.stages if one.folds and one.moves), stage))
            along = [None if one is None else one.folded for one in folds]
            diagonal = self.weights.diagonal(dim1=2, dim2=3) if self.one_side else None
            pairs, own = attention.grams(self.values, self.out_weight, along, diagonal)
            self.known.update(zip(folds, pairs, strict=True))
            if own is not None:
                self.known["own"] = own
        return self.known[stage]

    @property
    def one_side(self) -> bool:
        return self.weights.shape[2] == self.weights.shape[3]

    def summed_norms(self, stage: Stage | None = None) -> Float[Tensor, "batch tgt src"]:
        """‖Σ_h α f_h(x_j)‖, or the same after the steps that are the same for every query."""
        fold = None if stage is None else stage.folded
        if self.gates is not None:
            matrix = self.out_weight if fold is None else fold(self.out_weight)
            return gated.summed_norms(self.weights, self.values, matrix, self.gates)
        return attention.summed_norms(self.weights, self.gram(stage), self.values, self.out_weight, fold)

    def vectors(self, queries: slice, transformed: Tensor | None) -> Float[Tensor, "batch query src model"]:
        """Σ_h α f_h(x_j) itself for some queries; `transformed` is every f(x), where there are no gates."""
        weights = self.weights[:, :, queries]
        if transformed is not None:
            return torch.einsum("bhts,bhsm->btsm", weights, transformed)
        assert self.gates is not None
        scaled = weights[..., None] * self.values[:, :, None] * self.gates[:, :, queries, None]
        return scaled.permute(0, 2, 3, 1, 4).flatten(3) @ self.out_weight.flatten(0, 1)

    def head_vectors(self, queries: slice, transformed: Tensor | None) -> Float[Tensor, "batch query head src model"]:
        """α f_h(x_j) for some queries, head by head."""
        weights = self.weights[:, :, queries].transpose(1, 2)[..., None]
        if transformed is not None:
            return weights * transformed[:, None]
        assert self.gates is not None
        gates = self.gates[:, :, queries].transpose(1, 2)[..., None, :]
        return (weights * self.values[:, None] * gates) @ self.out_weight

    def transformed(self) -> Float[Tensor, "batch head src model"] | None:
        """Every f(x), the heads of a key side by side in memory; None where it depends on the query."""
        if self.gates is not None:
            return None
        return torch.einsum("bhsd,hdm->bshm", self.values, self.out_weight).contiguous().transpose(1, 2)

    def blocks(self, width: int) -> list[slice]:
        """Some queries at a time, so that few vectors of this width are held at once."""
        batch, _, tgt, src = self.weights.shape
        step = max(1, CELLS // max(1, batch * src * width))
        return [slice(start, min(start + step, tgt)) for start in range(0, tgt, step)]

    def _written(self, mixed: Float[Tensor, "batch head tgt head_dim"]) -> Float[Tensor, "batch tgt model"]:
        mixed = mixed if self.gates is None else mixed * self.gates
        return mixed.transpose(1, 2).flatten(2) @ self.out_weight.flatten(0, 1)


def norms(
    stage: Stage, sent: Sent, *, summed: Float[Tensor, "batch tgt src"] | None = None
) -> Float[Tensor, "batch tgt src"]:
    """‖F[i,j]‖, with the token's own vector added where the key is the query itself.

    `summed`: ‖Σ_h αf‖, where that is known already.
    """
    if not stage.folds:
        transformed, width = sent.transformed(), sent.out_weight.shape[-1]
        found = [vectors(stage, sent, transformed, some).norm(dim=-1) for some in sent.blocks(width)]
        return torch.cat(found, dim=1)
    own, scalar = sent.own() if stage.one_side else None, 1.0
    if summed is None or stage.moves:
        summed = sent.summed_norms(stage)
    else:
        scalar = _number(stage)
    size = stage.sizes(summed) * scalar
    found = summed * size.abs()
    if own is not None:
        found.diagonal(dim1=1, dim2=2).copy_((stage.along(own) + stage.own).norm(dim=-1))
    return found


def _number(stage: Stage) -> float:
    number = 1.0
    for step in stage.steps:
        if step.same and step.kind == "scale":
            number *= float(step.by)
    return number


def vectors(
    stage: Stage, sent: Sent, transformed: Tensor | None, queries: slice
) -> Float[Tensor, "batch query src model"]:
    """F[i,j] itself for some queries, the token's own vector added where the key is the query itself."""
    found = sent.vectors(queries, transformed)
    for step in stage.steps:
        found = step.of(queries)(found)
    if stage.one_side:
        at = torch.arange(found.shape[1], device=found.device)
        found[:, at, at + queries.start] += stage.own[:, queries]
    return found


def share(
    mixed: Float[Tensor, "batch tgt model"], kept: Float[Tensor, "batch tgt model"]
) -> Float[Tensor, "batch tgt"]:
    """‖mixed‖ / (‖mixed‖ + ‖kept‖); 0 where both are nothing."""
    rest, own = mixed.norm(dim=-1), kept.norm(dim=-1)
    return rest / (rest + own).clamp_min(torch.finfo(rest.dtype).tiny)


def mixing(stage: Stage | None, sent: Sent) -> Float[Tensor, "batch tgt"]:
    """‖Σ_{j≠i} F[i,j]‖ / (‖Σ_{j≠i} F[i,j]‖ + ‖F[i,i]‖): how much of a token comes from the others.

    Without a stage, of the attention alone.
    """
    own, others = sent.own_and_others()
    if stage is None:
        return share(others, own)
    return share(stage.along(others), stage.along(own) + stage.own)
