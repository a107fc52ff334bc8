"""What is known of a tensor that was computed from the output of an attention block.

Given the statistics of the pass, it is a sum of terms, a statistic, a part of a feed-forward block, or something else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

NORM_WORDS = frozenset({"centre", "norm", "scale", "layer_norm", "rms_norm", "constant"})
ALONE = NORM_WORDS | {"attention", "routed"}  # how a state comes about that is no sum with something else


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Which row of what the output matrix wrote each row of a tensor belongs to."""

    lead: tuple[int, ...]  # all axes of the tensor but the last
    rows: Int[Tensor, " row"] | None = None  # None: the same rows in the same order
    base: Place | None = None  # where the rows were picked from; None: every row is here once

    @property
    def count(self) -> int:
        return math.prod(self.lead)

    def numbers(self) -> Int[Tensor, " row"]:
        return torch.arange(self.count) if self.rows is None else self.rows

    def same(self, other: Place) -> bool:
        if self.rows is other.rows:
            return True
        return self.rows is not None and other.rows is not None and torch.equal(self.rows, other.rows)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One linear step, once the statistics of the pass are given."""

    kind: Literal["scale", "centre", "move"]  # move: row r is added to row by[r] of another place, or dropped at -1
    place: Place
    by: Tensor | float = 1.0  # what multiplies
    normed: bool = False  # by a statistic of the vectors themselves


SourceKind = Literal[
    "attention",  # the output of the block itself
    "residual",  # what the block was computed from
    "constant",  # parameters alone: it belongs to no token
    "companion",  # a feed-forward block beside the attention: it belongs to the token itself
    "stranger",  # made beside the attention, of whatever
    "feedforward",  # a feed-forward block that reads a state of this block
    "other",  # computed from a state of this block, and not to be split
]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Where a term comes from."""

    kind: SourceKind
    value: Tensor | float | None  # None: the output of the attention block
    place: Place
    network: Network | None = None
    reason: str = ""  # why it cannot be split


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A source, and the steps that it went through."""

    source: Source
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A sum of terms. States of one block are counted; what only moves or converts a state does not count."""

    block: int
    terms: tuple[Term, ...]
    place: Place
    number: int
    spelling: tuple[str, ...]  # how it came about
    parent: Linear | None = None  # the state it was made from

    def stepped(self, *steps: Step) -> tuple[Term, ...]:
        return tuple(replace(term, steps=(*term.steps, *steps)) for term in self.terms)

    @property
    def attends(self) -> bool:
        """Whether the output of the attention is among its terms."""
        return any(term.source.kind == "attention" for term in self.terms)

    def holds(self, *kinds: str) -> bool:
        return any(term.source.kind in kinds for term in self.terms)


@dataclass(frozen=True, slots=True, eq=False)
class Mean:
    """The mean of every row of a sum: linear too, so it is no statistic."""

    of: Linear

    @property
    def block(self) -> int:
        return self.of.block


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number of each row, such as its variance: taken from the pass."""

    block: int


@dataclass(frozen=True, slots=True)
class Other:
    """Something else that was computed from the block."""

    block: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """What a matrix made of a state: the units of a feed-forward block before their activation."""

    of: Linear
    weight: Float[Tensor, "model unit"] | tuple[Tensor, ...]  # several: those of experts
    bias: Float[Tensor, " unit"] | tuple[Tensor, ...] | None
    value: Tensor
    place: Place
    each: Int[Tensor, " row"] | None = None  # which of several matrices each row went through

    @property
    def block(self) -> int:
        return self.of.block


@dataclass(frozen=True, slots=True, eq=False)
class Active:
    """An activation of each unit, cell by cell: `value` is g(s), `again` computes g anew."""

    of: Hidden
    value: Tensor
    again: Callable[[Tensor], Tensor]

    @property
    def block(self) -> int:
        return self.of.block


@dataclass(frozen=True, slots=True, eq=False)
class Gated:
    """g(gate) · units, or g(gate) · h(units) where h is a straight line, clamped or not."""

    gate: Active
    units: Hidden | Active

    @property
    def block(self) -> int:
        return self.units.block


@dataclass(frozen=True, slots=True, eq=False)
class Normed:
    """Units that a norm went over before their output matrix: linear in them, given its statistics."""

    of: Active | Gated
    steps: tuple[Step, ...]
    shift: Float[Tensor, " unit"] | None = None  # the bias of the norm

    @property
    def block(self) -> int:
        return self.of.block


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Σ_u a_u W[u] + b with a = g(s), or a = g(gate) · s, and perhaps a norm of all a."""

    inner: Active | Gated
    weight: Float[Tensor, "unit model"] | tuple[Tensor, ...]
    bias: Float[Tensor, " model"] | tuple[Tensor, ...] | None
    each: Int[Tensor, " row"] | None = None  # which of several matrices each row went through
    steps: tuple[Step, ...] = ()  # the norm

    @property
    def first(self) -> Active:
        """The units whose activation it is."""
        return self.inner if isinstance(self.inner, Active) else self.inner.gate

    @property
    def reads(self) -> Linear:
        """The state that it is computed from."""
        return self.first.of.of


@dataclass(frozen=True, slots=True, eq=False)
class Picked:
    """Matrices or vectors of the model, picked by a router out of a stack."""

    block: int
    stack: Tensor
    chosen: Int[Tensor, ...] | None  # None: it was moved since


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Vectors turned into matrices of one column."""

    of: Linear | Hidden | Active | Gated

    @property
    def block(self) -> int:
        return self.of.block


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """Units of a feed-forward block on two axes, such as those of its gate and the others."""

    of: Hidden

    @property
    def block(self) -> int:
        return self.of.block


@dataclass(frozen=True, slots=True, eq=False)
class Flat:
    """A sum of terms with all its rows in one, until it is put back into rows of this width."""

    of: Linear
    width: int

    @property
    def block(self) -> int:
        return self.of.block


Label = Linear | Mean | Statistic | Other | Hidden | Active | Gated | Normed | Picked | Column | Halves | Flat


@dataclass(slots=True, eq=False)
class Followed:
    """All that became of one attention block."""

    order: int
    out: str  # its output matrix
    rows: Int[Tensor, "batch tgt"]  # where its positions stand in what the output matrix wrote
    output: Float[Tensor, "batch tgt model"]  # a copy: the model may go on writing into its own
    out_bias: Float[Tensor, " model"] | None  # b_O
    wanted: frozenset[int] | None = None  # the states that are kept, by number; None: all
    states: list[tuple[Linear, Tensor]] = field(default_factory=list)  # sums it is part of, and their numbers
    used: list[int] = field(default_factory=list)  # states that a later block takes as its residual
    added: list[int] = field(default_factory=list)  # states to which something computed from them was added
    read: Counter[int] = field(default_factory=Counter)  # how often a sum or a matrix took a state
    met: list[int | None] = field(default_factory=list)  # states that meet something older in a sum; None: what is none
    in_order: bool = False  # `rows` counts up
