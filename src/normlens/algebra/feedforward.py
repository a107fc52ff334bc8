"""A feed-forward block in parts, given what it computed in the pass.

    s = x W_1 + b_1,  y = g(s) W_2 + b_2          part of c:  (c W_1 · (g(s) - g(0)) / s) W_2

is integrated gradients from 0 in closed form: each unit is shared out in proportion. A gated block g(x W_g) · (x W_u)
has two complete rules. "gate" takes the activation from the pass: g(s_g) · (c W_u). "both" halves the product:
½ g(s_g) · (c W_u) + ½ (c W_g · (g(s_g) - g(0)) / s_g) · u. Biases belong to no token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from normlens.algebra.parts import RowStep, Sent, Stage, share, vectors

Rule = Literal["gate", "both"]
SMALL = 1e-12  # a sum so near 0 has the slope of g there


@dataclass(frozen=True, slots=True, eq=False)
class FeedForward:
    """A feed-forward block as it ran: what it read, its units, and what it wrote."""

    reads: Stage
    weight: Float[Tensor, "model unit"]  # W_1, or W_g of a gated one
    bias: Float[Tensor, " unit"] | None
    sums: Float[Tensor, "batch tgt unit"]  # s
    active: Float[Tensor, "batch tgt unit"]  # g(s)
    again: Callable[[Tensor], Tensor]  # g
    up_weight: Float[Tensor, "model unit"] | None  # W_u; None without a gate
    up_bias: Float[Tensor, " unit"] | None
    up: Float[Tensor, "batch tgt unit"] | None  # u
    out_weight: Float[Tensor, "unit model"]
    out_bias: Float[Tensor, " model"] | None
    value: Float[Tensor, "batch tgt model"]  # what it wrote
    steps: tuple[RowStep, ...]  # from there to the end of the layer

    def shares(self) -> Float[Tensor, "batch tgt unit"]:
        """(g(s) - g(0)) / s, which is the slope of g where s is 0."""
        zero = self.again(torch.zeros_like(self.sums[:1, :1]))
        near = self.sums.abs() < SMALL
        shares = (self.active - zero) / self.sums.where(~near, 1.0)
        if bool(near.any()):
            step = torch.full_like(self.sums[:1, :1], 1e-4)
            shares = torch.where(near, (self.again(step) - self.again(-step)) / 2e-4, shares)
        return shares

    def maps(self, rule: Rule) -> tuple[tuple[Float[Tensor, "model unit"], Float[Tensor, "batch tgt unit"]], ...]:
        """Matrices that a part goes through, and what each unit of theirs is multiplied by for a query."""
        if self.up_weight is None or self.up is None:
            return ((self.weight, self.shares()),)
        if rule == "gate":
            return ((self.up_weight, self.active),)
        return (self.up_weight, self.active / 2), (self.weight, self.shares() * self.up / 2)

    def unowned(self, rule: Rule) -> Float[Tensor, "batch tgt model"]:
        """What belongs to no token: the biases, and what of the state that was read belongs to none."""
        zero = self.again(torch.zeros_like(self.sums[:1, :1]))
        units = [
            (self.reads.unowned @ weight + _of(bias, weight)) * by
            for (weight, by), bias in zip(self.maps(rule), self._biases, strict=False)
        ]
        if self.up is None:
            units.append(zero.expand_as(self.sums))
        elif rule == "both":
            units.append(zero * self.up / 2)
        written = self._written(units)
        return written if self.out_bias is None else written + self.out_bias

    def _written(self, units: list[Tensor]) -> Tensor:
        return torch.stack(units).sum(dim=0) @ self.out_weight

    @property
    def _biases(self) -> tuple[Tensor | None, ...]:
        return (self.bias,) if self.up is None else (self.up_bias, self.bias)

    def through(self, read: Float[Tensor, "batch tgt model"], rule: Rule) -> Float[Tensor, "batch tgt model"]:
        """What a part of what was read becomes at the end of the layer."""
        written = self._written([(read @ weight) * by for weight, by in self.maps(rule)])
        for step in self.steps:
            written = step(written)
        return written

    def rebuilt(self) -> tuple[Tensor, Tensor]:
        """What it read and what it wrote, computed anew: both are to be what the pass had."""
        sums = self.reads.whole @ self.weight + _of(self.bias, self.weight)
        units = self.active if self.up is None else self.active * self.up
        written = units @ self.out_weight
        return sums, written if self.out_bias is None else written + self.out_bias


def _of(bias: Tensor | None, weight: Tensor) -> Tensor | float:
    return 0.0 if bias is None else bias.to(weight)


def output_norms(stage: Stage, sent: Sent, *, rule: Rule) -> Float[Tensor, "batch tgt src"]:
    """The norm of what each key has put into each position at the end of the layer."""
    return _Parts(stage, sent, rule).over(lambda vectors: vectors.norm(dim=-1))


def output_mixing(stage: Stage, sent: Sent, *, rule: Rule) -> Float[Tensor, "batch tgt"]:
    """‖Σ_{j≠i} F[i,j]‖ / (‖Σ_{j≠i} F[i,j]‖ + ‖F[i,i]‖) at the end of the layer. Needs no vector for every pair."""
    own, others = sent.own_and_others()
    kept, mixed = stage.along(own) + stage.own, stage.along(others)
    for layer in stage.layers:
        kept = kept + layer.through(layer.reads.along(own) + layer.reads.own, rule)
        mixed = mixed + layer.through(layer.reads.along(others), rule)
    return share(mixed, kept)


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """The parts at the end of a layer, some queries at a time."""

    stage: Stage
    sent: Sent
    rule: Rule

    def over(self, measure: Callable[[Tensor], Tensor]) -> Tensor:
        """A measure of the vectors (batch, query, src, model) of all queries, block by block."""
        transformed, width = self.sent.transformed(), self.sent.out_weight.shape[-1]
        read = [self._read(layer, transformed) for layer in self.stage.layers]
        found = []
        for some in self.sent.blocks(max([width, *(layer.out_weight.shape[0] for layer in self.stage.layers)])):
            parts = vectors(self.stage, self.sent, transformed, some)
            for layer, known in zip(self.stage.layers, read, strict=True):
                written = self._units(layer, known, transformed, some) @ layer.out_weight
                for step in layer.steps:
                    written = step.of(some)(written)
                parts += written
            found.append(measure(parts))
        return torch.cat(found, dim=1)

    def _read(self, layer: FeedForward, transformed: Tensor | None) -> list[Tensor] | None:
        """Every f(x) through all that is the same for every query, up to the units; None where that cannot be done."""
        if transformed is None or not layer.reads.folds:
            return None
        folded = layer.reads.folded(transformed.flatten(0, 1)).view_as(transformed)
        return [folded @ weight for weight, _ in layer.maps(self.rule)]

    def _units(self, layer: FeedForward, known: list[Tensor] | None, transformed: Tensor | None, some: slice) -> Tensor:
        """What each key puts into the units of some queries, each unit with its share."""
        weights, total = self.sent.weights[:, :, some], None
        at = torch.arange(weights.shape[2], device=weights.device)
        for index, (weight, by) in enumerate(layer.maps(self.rule)):
            if known is None:
                read = vectors(layer.reads, self.sent, transformed, some) @ weight
            else:
                read = torch.einsum("bhts,bhsu->btsu", weights, known[index])
                read *= layer.reads.sizes(read)[:, some, None]
                if self.stage.one_side:
                    read[:, at, at + some.start] += layer.reads.own[:, some] @ weight
            read *= by[:, some, None]
            total = read if total is None else total.add_(read)
        assert total is not None
        return total
