"""Run a program for the parts of every token, some tokens at a time, and share out what belongs to none.

    part_k += |⟨part_k, u⟩| / Σ_m |⟨part_m, u⟩| · u        u: what belongs to no token

The shares need every token, so between two of them each block of tokens goes as far as it can alone. What is held is
one or two tensors of parts, and the work of one block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from normlens.attribution.linear.steps import Seed, Shared, Step

CELLS = 1 << 22  # numbers of the widest tensor of parts that one block may hold
Owned = Callable[[Seed, range], Tensor]  # what some tokens own of a seed; with no tokens, what none of them owns


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The parts of some tokens, by the number of the tensor they are parts of; without tokens, what belongs to none."""

    tokens: range
    parts: dict[int, Tensor] = field(default_factory=dict)

    def run(self, step: Step, owned: Owned) -> None:
        if isinstance(step.act, Seed):
            self.parts[step.writes] = owned(step.act, self.tokens)
            return
        made = step.act(*(self.parts[number] for number in step.reads))
        if step.added is not None and not self.tokens:
            made = made + step.added
        self.parts[step.writes] = made


@dataclass(frozen=True, slots=True, eq=False)
class Meeting:
    """One place where what belongs to no token is shared out."""

    step: Step
    loose: Float[Tensor, "1 *rows model"]  # what is shared out
    totals: Float[Tensor, "*rows 1"]
    sizes: dict[range, Float[Tensor, "source *rows 1"]]  # |⟨part, loose⟩|

    @staticmethod
    def of(step: Step, nobody: Block, blocks: list[Block]) -> Meeting:
        act, read = step.act, step.reads[0]
        assert isinstance(act, Shared)
        loose = act(nobody.parts[read])
        loose = loose if step.added is None else loose + step.added
        against = loose if act.through is None else loose @ act.through.weight.mT
        sizes = {block.tokens: (block.parts[read] * against).sum(-1, keepdim=True).abs_() for block in blocks}
        return Meeting(step, loose, torch.stack([size.sum(0) for size in sizes.values()]).sum(0), sizes)

    def share(self, block: Block) -> None:
        act, nothing = self.step.act, self.totals == 0
        if not block.tokens:
            block.parts[self.step.writes] = self.loose * nothing
            return
        shares = self.sizes.pop(block.tokens) / self.totals.masked_fill(nothing, math.inf)
        made = act(block.parts[self.step.reads[0]])
        block.parts[self.step.writes] = torch.addcmul(made, shares, self.loose)


def carried(
    steps: list[Step], asked: int, count: int, owned: Owned
) -> tuple[Float[Tensor, "source *rows model"], Float[Tensor, "*rows model"]]:
    """The parts of what is asked that `count` tokens own, and what belongs to none."""
    widest = max(math.prod(step.shape) for step in steps)
    at_once = max(1, CELLS // max(1, widest))
    blocks = [Block(range(start, min(start + at_once, count))) for start in range(0, count, at_once)]
    nobody = Block(range(0))
    last = {number: step.writes for step in steps for number in step.reads}
    for first, rest in _stretches(steps):
        meeting = None if first is None else Meeting.of(first, nobody, blocks)
        for block in (nobody, *blocks):
            if meeting is not None:
                meeting.share(block)
                _drop(block, meeting.step, last)
            for step in rest:
                block.run(step, owned)
                _drop(block, step, last)
    return torch.cat([block.parts[asked] for block in blocks]), nobody.parts[asked][0]


def _drop(block: Block, step: Step, last: dict[int, int]) -> None:
    for number in set(step.reads):
        if last[number] == step.writes:
            del block.parts[number]


def _stretches(steps: list[Step]) -> Iterator[tuple[Step | None, list[Step]]]:
    """A place of sharing and the steps behind it, up to the next."""
    first, rest = None, []
    for step in steps:
        if isinstance(step.act, Shared):
            yield first, rest
            first, rest = step, []
        else:
            rest.append(step)
    yield first, rest
