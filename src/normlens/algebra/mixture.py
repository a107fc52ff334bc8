"""A mixture of experts in parts: feed-forward blocks that ran for some rows each, with the routing of the pass.

    y_i = Σ_e r_ie · E_e(x_i)      part of c:  Σ_e r_ie · (its part in E_e), over the experts that row i was sent to

The weights r of the router are taken from the pass, as is the choice of the experts. That both depend on the token is
left out: nothing is shared out for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from normlens.algebra.feedforward import FeedForward, Rule
from normlens.algebra.parts import RowStep, Stage


@dataclass(frozen=True, slots=True, eq=False)
class Expert:
    """A feed-forward block that ran for some rows only. Its axes (batch, tgt) are (row, 1)."""

    at: Int[Tensor, " row"]  # the row of each in (batch, tgt), flattened
    before: tuple[RowStep, ...]  # what a router multiplied its input by
    layer: FeedForward

    def only(self, here: Int[Tensor, " some"]) -> Expert:
        """The same for some of its rows."""
        before, steps = (tuple(step.at_rows(here) for step in s) for s in (self.before, self.layer.steps))
        numbers = ("sums", "active", "up", "up_active", "value")
        kept = {name: None if (x := getattr(self.layer, name)) is None else x[here] for name in numbers}
        return Expert(self.at[here], before, replace(self.layer, **kept, steps=steps))

    def through(self, read: Float[Tensor, "row any model"], rule: Rule) -> Float[Tensor, "row any model"]:
        for step in self.before:
            read = step(read)
        return self.layer.through(read, rule)


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Experts that read one state. A row that is not sent to an expert gets nothing from it.

    The weights of the router are numbers of the pass: that they depend on the token too is left out.
    """

    reads: Stage
    experts: tuple[Expert, ...]

    @property
    def width(self) -> int:
        return max((one.layer.width for one in self.experts), default=1)

    def through(self, read: Float[Tensor, "batch tgt model"], rule: Rule) -> Float[Tensor, "batch tgt model"]:
        """What a part of what was read becomes at the end of the layer."""
        rows, written = read.flatten(0, 1), torch.zeros_like(read).flatten(0, 1)
        for one in self.experts:
            written.index_add_(0, one.at, one.through(rows[one.at, None], rule)[:, 0].to(written))
        return written.view_as(read)

    def unowned(self, rule: Rule) -> Float[Tensor, "batch tgt model"]:
        """What belongs to no token, at the end of the layer."""
        written = torch.zeros_like(self.reads.whole).flatten(0, 1)
        for one in self.experts:
            vectors = one.layer.unowned(rule)
            for step in one.layer.steps:
                vectors = step(vectors)
            written.index_add_(0, one.at, vectors[:, 0].to(written))
        return written.view_as(self.reads.whole)

    def added(self) -> Float[Tensor, "batch tgt model"]:
        """What all experts wrote in the pass, at the end of the layer."""
        written = torch.zeros_like(self.reads.whole).flatten(0, 1)
        for one in self.experts:
            written.index_add_(0, one.at, one.layer.added()[:, 0].to(written))
        return written.view_as(self.reads.whole)

    def add(self, parts: Tensor, read: Float[Tensor, "batch query src model"], some: slice, rule: Rule) -> None:
        """What every key puts into some queries by way of the experts, added to `parts`."""
        tgt = self.reads.whole.shape[1]
        for one in self.experts:
            batch, query = one.at // tgt, one.at % tgt
            here = ((query >= some.start) & (query < some.stop)).nonzero()[:, 0]
            if len(here):
                batch, query = batch[here], query[here] - some.start
                written = one.only(here).through(read[batch, query], rule)
                parts.index_put_((batch, query), written.to(parts), accumulate=True)

    def rebuilt(self) -> list[tuple[Tensor, Tensor]]:
        return [pair for one in self.experts for pair in one.layer.rebuilt()]
