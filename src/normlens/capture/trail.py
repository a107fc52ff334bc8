"""The way of a product α·v through a model: which moves were made with it, to be made again with serial numbers.

Room: remembering calls. Nothing is computed until a layout is asked for, and equal ways are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

OPERAND = "\0operand"  # stands for the tensor itself in a remembered call


@dataclass(frozen=True, slots=True)
class Trail:
    """`replay(start)` makes the moves with serial numbers from `start`; trails of equal `key` lead to equal layouts."""

    key: Hashable | None  # None: the way depends on numbers, so it is never taken for known
    replay: Callable[[int], Any]

    def moved(self, func: Any, name: str, operand: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Trail:
        """The trail after one more move."""
        words = tuple(OPERAND if a is operand else a for a in args)
        known = self.key is not None and not any(isinstance(a, Tensor) for a in _leaves((words, kwargs)))
        return Trail(
            (self.key, name, repr(words), repr(kwargs)) if known else None,
            lambda start: func(*(self.replay(start) if a is OPERAND else a for a in words), **kwargs),
        )

    def part(self, index: int) -> Trail:
        """One result of a move that gave several, such as a split."""
        return Trail(None if self.key is None else (self.key, index), lambda start: self.replay(start)[index])


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in _leaves(part)]
    if isinstance(value, dict):
        return _leaves(list(value.values()))
    return [value]
