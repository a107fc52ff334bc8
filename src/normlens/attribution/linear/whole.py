"""The program run once for whole tensors, and how what is asked depends on some of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from normlens.attribution.linear.steps import Seed, Step


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A tensor of the pass whose own past is left aside, and the slope of what is asked by it."""

    step: Step
    read: tuple[Tensor, ...]  # what its step read
    whole: Tensor
    slope: Tensor

    @property
    def adds(self) -> Tensor:
        """What each of its numbers adds to what is asked."""
        return self.slope * self.whole


def slopes(
    steps: list[Step], asked: int, number: Callable[[Tensor], Tensor], is_leaf: Callable[[Step], bool]
) -> tuple[float, list[Leaf]]:
    """What is asked of the last tensor, and the leaves it depends on: the seeds, and what else `is_leaf` names."""
    wholes: dict[int, Tensor] = {}
    leaves: list[Step] = []
    with torch.enable_grad():
        for step in steps:
            if isinstance(step.act, Seed):
                made = step.act.whole
            else:
                made = step.act(*(wholes[read][None] for read in step.reads))[0]
                made = made if step.added is None else made + step.added
            if isinstance(step.act, Seed) or is_leaf(step):
                made = made.detach().clone().requires_grad_()
                leaves.append(step)
            wholes[step.writes] = made
        value = number(wholes[asked])
        inputs = [wholes[step.writes] for step in leaves]
        found = torch.autograd.grad(value, inputs, allow_unused=True, materialize_grads=True)
    return float(value.detach()), [
        Leaf(step, tuple(wholes[read].detach() for read in step.reads), whole.detach(), slope)
        for step, whole, slope in zip(leaves, inputs, found, strict=True)
    ]
