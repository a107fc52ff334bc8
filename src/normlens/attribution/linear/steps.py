"""The linear steps of one pass: what each makes of the parts of the tensor it reads.

Parts stand on a leading axis. A step is linear because what else it depends on is taken from the pass: attention
weights, the statistics of a norm, the share of an activation. What it adds beside is a constant, of no token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor


@runtime_checkable
class Act(Protocol):
    """What a step does to parts, and the same for one row of a sequence only, where rows do not mix."""

    def __call__(self, *parts: Tensor) -> Tensor: ...
    def at(self, row: int, rows: int) -> Act | None: ...


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One linear step between numbered tensors."""

    act: Act
    reads: tuple[int, ...]
    writes: int
    shape: tuple[int, ...]  # of what it writes, without the axis of the parts
    added: Tensor | None = None  # a constant: belongs to no token
    where: str = ""  # the module that ran


@dataclass(frozen=True, slots=True, eq=False)
class Seed:
    """Where the tokens of one side begin: each owns its row."""

    whole: Tensor
    side: str

    def __call__(self, *parts: Tensor) -> Tensor:
        raise NotImplementedError

    def at(self, row: int, rows: int) -> None:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """x W."""

    weight: Tensor

    def __call__(self, *parts: Tensor) -> Tensor:
        return parts[0] @ self.weight

    def at(self, row: int, rows: int) -> Matrix:
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """Rows sorted by the expert they were sent to, each through the matrix of its own."""

    weights: Tensor
    ends: tuple[int, ...]

    def __call__(self, *parts: Tensor) -> Tensor:
        made = parts[0].new_zeros(*parts[0].shape[:-1], self.weights.shape[-1])
        for weight, start, end in zip(self.weights, (0, *self.ends), self.ends, strict=False):
            made[:, start:end] = parts[0][:, start:end] @ weight
        return made

    def at(self, row: int, rows: int) -> None:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """α x, or x α: rows mixed with weights of the pass."""

    weights: Tensor
    first: bool

    def __call__(self, *parts: Tensor) -> Tensor:
        if not self.first:
            return Mixed(self.weights.mT, True)(parts[0].mT).mT
        wide = parts[0].movedim(0, -2)
        return (self.weights @ wide.flatten(-2)).unflatten(-1, wide.shape[-2:]).movedim(-2, 0)

    def at(self, row: int, rows: int) -> None:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """x ⊙ s."""

    by: Tensor | float

    def __call__(self, *parts: Tensor) -> Tensor:
        return parts[0] * self.by

    def at(self, row: int, rows: int) -> Scaled:
        return Scaled(row_of(self.by, row, rows))


@dataclass(frozen=True, slots=True, eq=False)
class Active:
    """x ⊙ s: the share of each unit that an activation lets through."""

    by: Tensor

    def __call__(self, *parts: Tensor) -> Tensor:
        return parts[0] * self.by

    def at(self, row: int, rows: int) -> Active:
        return Active(row_of(self.by, row, rows))


@dataclass(frozen=True, slots=True, eq=False)
class Summed:
    """a x + b y."""

    left: float
    right: float

    def __call__(self, *parts: Tensor) -> Tensor:
        x, y = parts
        if x.ndim != y.ndim:
            ndim = max(x.ndim, y.ndim)
            x, y = (p.view(len(p), *(1,) * (ndim - p.ndim), *p.shape[1:]) for p in parts)
        return torch.add(x if self.left == 1 else x * self.left, y, alpha=self.right)

    def at(self, row: int, rows: int) -> Summed:
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Normed:
    """(x - mean x) ⊙ s, or x ⊙ s: a norm with the statistics of the pass."""

    centred: bool
    by: Tensor

    def __call__(self, *parts: Tensor) -> Tensor:
        x = parts[0]
        return (x - x.mean(dim=-1, keepdim=True)).mul_(self.by) if self.centred else x * self.by

    def at(self, row: int, rows: int) -> Normed:
        return replace(self, by=row_of(self.by, row, rows))


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """The very call of torch, for every part: a move, a sum over an axis, cells set to 0."""

    func: Callable[..., Any]
    rest: tuple[Any, ...]
    options: Mapping[str, Any]
    index: int | None = None  # which of several results

    def __call__(self, *parts: Tensor) -> Tensor:
        def once(part: Tensor) -> Tensor:
            made = self.func(part, *self.rest, **self.options)
            return made if self.index is None else made[self.index]

        return torch.vmap(once)(parts[0])

    def at(self, row: int, rows: int) -> None:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Side by side along an axis; None stands for what belongs to no token."""

    func: Callable[..., Tensor]
    dim: int
    sizes: tuple[tuple[int, ...] | None, ...]  # the shape of each constant; None: a part

    def __call__(self, *parts: Tensor) -> Tensor:
        rest = iter(parts)
        count = len(parts[0])
        pieces = [next(rest) if size is None else parts[0].new_zeros(count, *size) for size in self.sizes]
        return self.func(pieces, dim=self.dim + 1)

    def at(self, row: int, rows: int) -> None:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """What belongs to no token is shared out among the parts, by |⟨part, it⟩|, before or after a matrix."""

    through: Matrix | None = None

    def __call__(self, *parts: Tensor) -> Tensor:
        return parts[0] if self.through is None else self.through(*parts)

    def at(self, row: int, rows: int) -> Shared:
        return self


def row_of(by: Any, row: int, rows: int) -> Any:
    """A factor for one row of a sequence."""
    if isinstance(by, Tensor) and by.ndim > 1 and by.shape[-2] == rows > 1:
        return by[..., row : row + 1, :]
    return by
