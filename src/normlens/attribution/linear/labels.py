"""What is known of the tensors of one pass: which are made of the tokens, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Ids:
    """Token numbers of one side, or numbers made of them that are no longer in their places."""

    side: str
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Own:
    """Each row is made of its own token alone, whatever was done to it."""

    side: str


@dataclass(frozen=True, slots=True)
class Carried:
    """A number times a tensor of the program: linear in the tokens."""

    register: int
    factor: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A function of one tensor of the program, cell by cell."""

    register: int
    of: Tensor
    again: Callable[[Tensor], Tensor]
    active: bool  # whether it is more than a limit or a number added


@dataclass(frozen=True, slots=True)
class Scores:
    """Made of two tensors of tokens: what a softmax turns into weights."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number for each row: what a norm divides by."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """Weights of attention: numbers of the pass."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Made of the tokens in a way that cannot be split."""

    reason: str
    where: str


Label = Ids | Own | Carried | Cells | Scores | Statistic | Frozen | Lost
