"""What reaches a later point of the layer, in parts: every key's share of the attention output, and the token's own.

    whole[i] = Σ_j F[i,j] + own[i] + unowned[i]        F[i,j] = steps(Σ_h α[h,i,j] f_h(x_j))

Steps are linear once their statistics are taken from the pass: a norm centres, divides by a number of the query and
multiplies by its weights. What is the same for every query is folded into W_O, so ‖F‖ is the norm of a sum of heads
again, divided by a number of the query. Nothing of size (tgt, src, model) is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from normlens.algebra import attention

CELLS = 1 << 22  # numbers of vectors held at a time


@dataclass(frozen=True, slots=True, eq=False)
class RowStep:
    """One linear step. `by` is a number, one for each query, one for each coordinate, or both."""

    kind: Literal["scale", "centre"]
    by: Tensor | float | None = None

    def __call__(self, vectors: Float[Tensor, "*rows model"]) -> Float[Tensor, "*rows model"]:
        """Applied to (batch, tgt, model), or to (batch, tgt, src, model)."""
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

    def full(self) -> Float[Tensor, "batch tgt model"]:
        """What the model computed at this point, with what feed-forward blocks add."""
        state = self.whole
        for layer in self.layers:
            written = layer.value
            for step in layer.steps:
                written = step(written)
            state = state + written
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

    def folded(self, out_weight: Float[Tensor, "head head_dim model"]) -> Float[Tensor, "head head_dim model"]:
        """W_O followed by what is the same for every query."""
        matrix = out_weight.double() if self.moves else out_weight
        for step in self.steps:
            if step.same:
                matrix = step(matrix)
        return matrix.to(out_weight.dtype)

    def sizes(self, like: Tensor) -> Float[Tensor, "batch tgt 1"]:
        """The numbers of the queries, multiplied."""
        size = torch.ones(*self.own.shape[:2], 1, dtype=like.dtype, device=like.device)
        for step in self.steps:
            if step.of_query:
                size = size * step.by  # pyright: ignore
        return size.to(like.dtype)


def own_parts(
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
) -> Float[Tensor, "batch tgt model"]:
    """Σ_h α[h,i,i] f_h(x_i): what a token adds to itself by attention."""
    mixed = weights.diagonal(dim1=2, dim2=3)[..., None] * values
    return mixed.transpose(1, 2).flatten(2) @ out_weight.flatten(0, 1)


def norms(
    stage: Stage,
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
    *,
    summed: Float[Tensor, "batch tgt src"] | None = None,
) -> Float[Tensor, "batch tgt src"]:
    """‖F[i,j]‖, with the token's own vector added where the key is the query itself.

    `summed`: ‖Σ_h αf‖, where that is known already.
    """
    if not stage.folds:
        return _by_queries(stage, weights, values, out_weight)
    matrix = stage.folded(out_weight)
    if summed is None or stage.moves:
        summed = attention.summed_norms(weights, attention.gram(values, matrix), values, matrix)
        scalar = 1.0
    else:
        scalar = _number(stage)
    size = stage.sizes(summed)
    found = summed * (size * scalar).abs()
    if stage.one_side:
        own = own_parts(weights, values, matrix) * size + stage.own
        found.diagonal(dim1=1, dim2=2).copy_(own.norm(dim=-1))
    return found


def _number(stage: Stage) -> float:
    number = 1.0
    for step in stage.steps:
        if step.same and step.kind == "scale":
            number *= float(step.by)  # pyright: ignore
    return number


def vectors(
    stage: Stage,
    weights: Float[Tensor, "batch head tgt src"],
    transformed: Float[Tensor, "batch head src model"],
    queries: slice,
) -> Float[Tensor, "batch query src model"]:
    """F[i,j] itself for some queries, the token's own vector added where the key is the query itself."""
    found = torch.einsum("bhts,bhsm->btsm", weights[:, :, queries], transformed)
    for step in stage.steps:
        found = step.of(queries)(found)
    if stage.one_side:
        first = queries.start
        at = torch.arange(found.shape[1], device=found.device)
        found[:, at, at + first] += stage.own[:, queries]
    return found


def _by_queries(stage: Stage, weights: Tensor, values: Tensor, out_weight: Tensor) -> Tensor:
    transformed = attention.transformed(values, out_weight)
    return torch.cat(
        [vectors(stage, weights, transformed, some).norm(dim=-1) for some in blocks(weights, out_weight.shape[-1])],
        dim=1,
    )


def blocks(weights: Float[Tensor, "batch head tgt src"], width: int) -> list[slice]:
    """Some queries at a time, so that few vectors are held at once."""
    batch, _, tgt, src = weights.shape
    step = max(1, CELLS // max(1, batch * src * width))
    return [slice(start, min(start + step, tgt)) for start in range(0, tgt, step)]


def own_and_others(
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
) -> tuple[Float[Tensor, "batch tgt model"], Float[Tensor, "batch tgt model"]]:
    """What attention adds to a token from itself, and from all others."""
    own = own_parts(weights, values, out_weight)
    return own, torch.matmul(weights, values).transpose(1, 2).flatten(2) @ out_weight.flatten(0, 1) - own


def share(
    mixed: Float[Tensor, "batch tgt model"], kept: Float[Tensor, "batch tgt model"]
) -> Float[Tensor, "batch tgt"]:
    """‖mixed‖ / (‖mixed‖ + ‖kept‖); 0 where both are nothing."""
    rest, own = mixed.norm(dim=-1), kept.norm(dim=-1)
    return rest / (rest + own).clamp_min(torch.finfo(rest.dtype).tiny)


def mixing(
    stage: Stage | None,
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
) -> Float[Tensor, "batch tgt"]:
    """‖Σ_{j≠i} F[i,j]‖ / (‖Σ_{j≠i} F[i,j]‖ + ‖F[i,i]‖): how much of a token comes from the others.

    Without a stage, of the attention alone.
    """
    own, others = own_and_others(weights, values, out_weight)
    if stage is None:
        return share(others, own)
    return share(stage.along(others), stage.along(own) + stage.own)
