"""One call of torch with labelled operands, and the step it may become."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from normlens.attribution.linear.labels import Carried, Cells, Label, Lost, Own
from normlens.attribution.linear.watching import Watch

SUMS = frozenset("add radd iadd sub subtract isub rsub".split())


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call of torch with labelled operands."""

    here: Watch
    name: str
    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any

    @property
    def word(self) -> str:
        return self.name.strip("_")

    def label(self, operand: Any) -> Label | None:
        return self.here.label(operand)

    def argument(self, at: int, name: str, default: Any = None) -> Any:
        return self.args[at] if len(self.args) > at else self.kwargs.get(name, default)

    def lost(self, reason: str = "") -> Lost:
        return self.here.lost(reason or f"it goes through '{self.name}'")


def is_carried(label: Label | None) -> bool:
    return isinstance(label, (Own, Carried, Cells))


def step(call: Call, act: Any, operands: tuple[Tensor, ...], added: Any = None) -> Label:
    numbers = [call.here.register(operand) for operand in operands]
    for number in numbers:
        if isinstance(number, Lost):
            return number
    return call.here.emit(act, tuple(numbers), operands, call.result, added)  # pyright: ignore


def over_last(call: Call) -> bool:
    operand, dim = call.args[0], call.kwargs.get("dim", call.argument(1, "dim"))
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    return len(dims) == 1 and dims[0] in (-1, operand.ndim - 1)
