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

from normlens.algebra.parts import RowStep, Stage

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
    up_active: Float[Tensor, "batch tgt unit"] | None  # h(u), which is u unless it is clamped or moved
    up_again: Callable[[Tensor], Tensor] | None  # h; None: u itself
    out_weight: Float[Tensor, "unit model"]
    out_bias: Float[Tensor, " model"] | None
    value: Float[Tensor, "batch tgt model"]  # what it wrote
    steps: tuple[RowStep, ...]  # from there to the end of the layer
    inner: tuple[RowStep, ...] = ()  # a norm of all units before W_2, with the statistics of the pass

    @property
    def width(self) -> int:
        return self.out_weight.shape[0]

    def shares(self) -> Float[Tensor, "batch tgt unit"]:
        """(g(s) - g(0)) / s, which is the slope of g where s is 0."""
        return activation_shares(self.sums, self.active, self.again)

    def maps(self, rule: Rule) -> tuple[tuple[Float[Tensor, "model unit"], Float[Tensor, "batch tgt unit"]], ...]:
        """Matrices that a part goes through, and what each unit of theirs is multiplied by for a query."""
        if self.up_weight is None or self.up is None:
            return ((self.weight, self.shares()),)
        passed = self.active
        if self.up_again is not None and self.up_active is not None:
            passed = passed * activation_shares(self.up, self.up_active, self.up_again)
        if rule == "gate":
            return ((self.up_weight, passed),)
        return (self.up_weight, passed / 2), (self.weight, self.shares() * self.units / 2)

    @property
    def units(self) -> Tensor:
        """h(u)."""
        assert self.up is not None
        return self.up if self.up_active is None else self.up_active

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
            units.append(zero * self.units / 2)
        if self.up is not None and self.up_again is not None:
            still = self.up_again(torch.zeros_like(self.up[:1, :1])) * self.active
            units.append(still if rule == "gate" else still / 2)
        written = self._written(units)
        return written if self.out_bias is None else written + self.out_bias

    def through(self, read: Float[Tensor, "batch tgt model"], rule: Rule) -> Float[Tensor, "batch tgt model"]:
        """What a part of what was read becomes at the end of the layer."""
        written = self._written([(read @ weight) * by for weight, by in self.maps(rule)])
        for step in self.steps:
            written = step(written)
        return written

    def _written(self, units: list[Tensor]) -> Tensor:
        total = units[0]
        for more in units[1:]:
            total = total + more
        return self.write(total)

    def write(self, units: Tensor, some: slice = slice(None)) -> Tensor:
        """What units, or parts of units, of some queries write."""
        for step in self.inner:
            units = step.of(some)(units)
        return units @ self.out_weight

    @property
    def _biases(self) -> tuple[Tensor | None, ...]:
        return (self.bias,) if self.up is None else (self.up_bias, self.bias)

    def units_of(self, read: Float[Tensor, "row model"]) -> Float[Tensor, "row unit"]:
        """The units for something else that it reads."""
        units = self.again(read @ self.weight + _of(self.bias, self.weight))
        if self.up_weight is None:
            return units
        up = read @ self.up_weight + _of(self.up_bias, self.up_weight)
        return units * (up if self.up_again is None else self.up_again(up))

    def added(self) -> Float[Tensor, "batch tgt model"]:
        """What it wrote in the pass, at the end of the layer."""
        written = self.value
        for step in self.steps:
            written = step(written)
        return written

    def rebuilt(self) -> list[tuple[Tensor, Tensor]]:
        """What it read and what it wrote, each computed anew and as the pass had it: they are to be the same."""
        pairs = [(self.reads.whole @ self.weight + _of(self.bias, self.weight), self.sums)]
        units = self.active
        if self.up is not None and self.up_weight is not None:
            pairs.append((self.reads.whole @ self.up_weight + _of(self.up_bias, self.up_weight), self.up))
            units = units * self.units
        written = self.write(units)
        pairs.append((written if self.out_bias is None else written + self.out_bias, self.value))
        return pairs


def activation_shares(sums: Tensor, active: Tensor, again: Callable[[Tensor], Tensor]) -> Tensor:
    """(g(s) - g(0)) / s cell by cell, which is the slope of g where s is 0."""
    zero = again(torch.zeros_like(sums[:1, :1]))
    near = sums.abs() < SMALL
    shares = (active - zero) / sums.where(~near, 1.0)
    if bool(near.any()):
        step = torch.full_like(sums[:1, :1], 1e-4)
        shares = torch.where(near, (again(step) - again(-step)) / 2e-4, shares)
    return shares


def _of(bias: Tensor | None, weight: Tensor) -> Tensor | float:
    return 0.0 if bias is None else bias.to(weight)
