"""The way of a product α·v through a model: what was done with it, to be done again with other numbers.

Room: remembering calls. Nothing is computed until it is asked for, and equal ways lead to equal layouts.

Between α·v and the output matrix a model moves numbers, multiplies them by what does not come from them (a gate, a
scale, a statistic of the pass), takes a mean off them (`centred`) and adds constants. Each is a step of the way; what
it is to be done with says what becomes of it: serial numbers only move, ones gather the factors.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from normlens.capture.layout import LayoutError, serial_numbers

FLAGS = ("is_centred", "is_shifted", "is_normed", "is_scaled")
OPERAND = "\0operand"  # stands for the tensor itself in a remembered call


@runtime_checkable
class Numbers(Protocol):
    """What goes along a way, and what each step does to it."""

    def product(self, lead: int, tgt: int, head_dim: int, start: int, device: torch.device) -> Tensor: ...

    def elsewhere(self, shape: torch.Size, device: torch.device) -> Tensor:
        """Cells that come from no attention."""
        ...

    def times(self, cells: Tensor, factor: Factor) -> Tensor: ...

    def centred(self, cells: Tensor, mean: Tensor) -> Tensor: ...

    def plus(self, cells: Tensor, constant: Factor) -> Tensor: ...


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A number or a tensor that a step multiplies by, divides by or adds."""

    number: Tensor | float
    is_fixed: bool  # comes from the weights alone
    is_after: bool  # stands behind the centring
    inverse: bool = False
    version: int = 0

    def value(self) -> Tensor | float:
        if isinstance(self.number, Tensor) and version(self.number) != self.version:
            raise LayoutError("what its output is multiplied by is overwritten")
        return 1 / self.number if self.inverse else self.number


@dataclass(frozen=True, slots=True)
class Trail:
    """Ways of equal `key` lead to equal layouts. An output that is a sum has a way for each term."""

    key: Hashable | None  # None: the way depends on numbers, so it is never taken for known
    ways: tuple[Callable[[Numbers], Any], ...]
    is_centred: bool = False
    is_shifted: bool = False
    is_normed: bool = False  # multiplied by a statistic of the output itself
    is_scaled: bool = False

    @classmethod
    def joined(cls, way: Callable[[Numbers], Any], parts: Sequence[Trail | None]) -> Trail:
        """The trail of what is put together."""
        known = [part for part in parts if part is not None]
        flags = {name: any(getattr(part, name) for part in known) for name in FLAGS}
        return Trail(None, (way,), **flags)

    @property
    def terms(self) -> tuple[Trail, ...]:
        """A trail for each term of a sum."""
        return tuple(replace(self, ways=(way,)) for way in self.ways)

    def replay(self, numbers: Numbers) -> Any:
        """The way of an output that is no sum."""
        way, *others = self.ways
        if others:
            raise LayoutError("a sum is put together with something else")
        return way(numbers)

    def moved(self, func: Any, name: str, operand: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Trail:
        """The trail after one more move."""
        words = tuple(OPERAND if a is operand else a for a in args)
        known = self.key is not None and not any(isinstance(a, Tensor) for a in _leaves((words, kwargs)))
        key = (self.key, name, repr(words), repr(kwargs)) if known else None
        return self._then(lambda cells, _: func(*(cells if a is OPERAND else a for a in words), **kwargs), key=key)

    def part(self, index: int) -> Trail:
        """One result of a move that gave several, such as a split."""
        key = None if self.key is None else (self.key, index)
        return self._then(lambda cells, _: cells[index], key=key)

    def times(self, number: Any, *, is_fixed: bool, inverse: bool = False, is_normed: bool = False) -> Trail:
        """The trail after a multiplication, cell by cell."""
        factor = Factor(_number(number), is_fixed, self.is_centred, inverse, version(number))
        scaled = replace(self, is_normed=self.is_normed or is_normed, is_scaled=True)
        return scaled._then(lambda cells, numbers: numbers.times(cells, factor), key=self.key)

    def centred(self, mean: Tensor) -> Trail:
        """The trail after its own mean was taken off."""
        changed = replace(self, is_centred=True, is_normed=True)
        return changed._then(lambda cells, numbers: numbers.centred(cells, mean), key=self.key)

    def plus(self, number: Any) -> Trail:
        """The trail after a constant was added."""
        constant = Factor(_number(number), True, self.is_centred, version=version(number))
        first = replace(self, ways=self.ways[:1], is_shifted=True)
        shifted = first._then(lambda cells, numbers: numbers.plus(cells, constant), key=self.key)
        return replace(shifted, ways=shifted.ways + self.ways[1:])

    def and_(self, other: Trail) -> Trail:
        """The trail of the sum of two outputs."""
        first, *others = self.ways + other.ways
        joined = Trail.joined(first, (self, other))
        return replace(joined, ways=(first, *others))

    def _then(self, step: Callable[[Any, Numbers], Any], *, key: Hashable | None) -> Trail:
        def longer(way: Callable[[Numbers], Any]) -> Callable[[Numbers], Any]:
            return lambda numbers: step(way(numbers), numbers)

        return replace(self, key=key, ways=tuple(longer(way) for way in self.ways))


class Serial:
    """Serial numbers: they only move."""

    def product(self, lead: int, tgt: int, head_dim: int, start: int, device: torch.device) -> Tensor:
        return serial_numbers(lead, tgt, head_dim, start=start, device=device)

    def elsewhere(self, shape: torch.Size, device: torch.device) -> Tensor:
        return torch.full(shape, -1, device=device)

    def times(self, cells: Tensor, factor: Factor) -> Tensor:
        return cells

    def centred(self, cells: Tensor, mean: Tensor) -> Tensor:
        return cells

    def plus(self, cells: Tensor, constant: Factor) -> Tensor:
        return cells


class Ones(Serial):
    """Ones, multiplied by the factors of one sort: of the weights or of the pass, before or behind the centring."""

    def __init__(self, *, is_fixed: bool, is_after: bool) -> None:
        self.sort = is_fixed, is_after

    def product(self, lead: int, tgt: int, head_dim: int, start: int, device: torch.device) -> Tensor:
        return torch.ones(lead, tgt, head_dim, device=device)

    def elsewhere(self, shape: torch.Size, device: torch.device) -> Tensor:
        return torch.ones(shape, device=device)

    def times(self, cells: Tensor, factor: Factor) -> Tensor:
        return cells * factor.value() if self.sort == (factor.is_fixed, factor.is_after) else cells


class Groups(Serial):
    """The number of the mean that was taken off each cell."""

    def centred(self, cells: Tensor, mean: Tensor) -> Tensor:
        return torch.arange(mean.numel(), device=cells.device).view(mean.shape).expand(cells.shape)


class Shift(Ones):
    """What the constants on the way add up to."""

    def __init__(self) -> None:
        """No sort of factors: all."""

    def product(self, lead: int, tgt: int, head_dim: int, start: int, device: torch.device) -> Tensor:
        return torch.zeros(lead, tgt, head_dim, device=device)

    def times(self, cells: Tensor, factor: Factor) -> Tensor:
        return cells * factor.value()

    def centred(self, cells: Tensor, mean: Tensor) -> Tensor:
        axes = [axis for axis, size in enumerate(mean.shape) if size < cells.shape[axis]]
        return cells - cells.mean(dim=axes, keepdim=True) if axes else cells - cells

    def plus(self, cells: Tensor, constant: Factor) -> Tensor:
        return cells + constant.value()


def _number(number: Any) -> Tensor | float:
    return number if isinstance(number, Tensor) else float(number)


def version(number: Any) -> int:
    """How often the memory of a tensor was written to."""
    return number._version if isinstance(number, Tensor) and not number.is_inference() else 0


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in _leaves(part)]
    if isinstance(value, dict):
        return _leaves(list(value.values()))
    return [value]
