"""Calls cell by cell: activations of one tensor, and products of an activation with another."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from normlens.algebra import activation_shares
from normlens.attribution.linear.calls import SUMS, Call, step
from normlens.attribution.linear.labels import Carried, Cells, Label, Lost, Own, Statistic
from normlens.attribution.linear.steps import Active, Summed
from normlens.capture import tensors_in

LIMITS = frozenset("clamp clamp_ clamp_min clamp_max clip nan_to_num".split())


def one_root(mine: Label | None, other: Label | None) -> bool:
    """Whether both are functions of the same tensor."""
    labels = [label for label in (mine, other) if isinstance(label, (Carried, Cells))]
    return len(labels) == 2 and labels[0].register == labels[1].register


def cells(call: Call) -> Label:
    """A function of one tensor, cell by cell; it is shared out once something else reads it."""
    operands = [part for part in tensors_in((call.args, call.kwargs)) if call.label(part) is not None]
    if all(isinstance(call.label(part), Statistic) for part in operands):
        return Statistic()
    for part in operands:
        if isinstance(call.label(part), Own) and isinstance(number := call.here.register(part), Lost):
            return number
    labels = [call.label(part) for part in operands]
    roots = {label.register for label in labels if isinstance(label, (Carried, Cells))}
    others = [p for p in tensors_in((call.args, call.kwargs)) if call.label(p) is None and p.numel() != 1]
    if len(roots) != 1 or others or not all(isinstance(label, (Carried, Cells)) for label in labels):
        return call.lost()
    root = _root(call, operands, labels)
    if root is None or root.shape != call.result.shape:
        return call.lost()
    mapped = {id(part): _again(label) for part, label in zip(operands, labels, strict=True)}
    again = partial(_replayed, call.func, call.args, call.kwargs, mapped)
    was = any(label.active for label in labels if isinstance(label, Cells))
    is_linear = call.word in SUMS and not was
    return Cells(roots.pop(), root, again, was or not (is_linear or call.name in LIMITS))


def _root(call: Call, operands: list[Tensor], labels: list[Any]) -> Tensor | None:
    """The tensor that all operands are functions of."""
    for part, label in zip(operands, labels, strict=True):
        if isinstance(label, Cells):
            return label.of
        if label.factor:
            return part.detach().clone() if label.factor == 1 else part.detach() / label.factor
    return None


def _again(label: Any) -> Callable[[Tensor], Tensor]:
    return label.again if isinstance(label, Cells) else partial(operator.mul, label.factor)


def _replayed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], mapped: dict[int, Any], x: Tensor) -> Tensor:
    def new(value: Any) -> Any:
        return mapped[id(value)](x) if id(value) in mapped else value

    name = getattr(func, "__name__", "").strip("_")
    func = {"iadd": torch.add, "imul": torch.mul, "isub": torch.sub, "itruediv": torch.div}.get(name, func)
    return func(*map(new, args), **{key: new(value) for key, value in kwargs.items()})


def gated(call: Call, left: Tensor, right: Tensor) -> Label:
    """A product of two tensors of tokens, one of them an activation."""
    gate, up = left, right
    active = [isinstance(label := call.label(part), Cells) and label.active for part in (left, right)]
    if active[0] == active[1]:
        return call.lost("two tensors made of the tokens are multiplied, and neither or each is an activation")
    if active[1]:
        gate, up = right, left
    of_gate = call.label(gate)
    assert isinstance(of_gate, Cells)
    whole = gate.detach().clone()
    if call.here.gated == "gate":
        return step(call, Active(whole), (up,))
    units = up.detach().clone()
    number = call.here.register(up)
    if isinstance(number, Lost):
        return number
    share = activation_shares(of_gate.of, whole, of_gate.again)
    zero = float(of_gate.again(torch.zeros_like(whole.reshape(-1)[:1])))
    half = call.here.emit(Active(whole / 2), (number,), (units,), whole * units / 2)
    added = zero * units / 2 if zero else None
    other = call.here.emit(Active(share * units / 2), (of_gate.register,), (of_gate.of,), whole * units / 2, added)
    if not isinstance(half, Carried) or not isinstance(other, Carried):
        return half if isinstance(half, Lost) else other
    halves = (whole * units / 2, whole * units / 2)
    return call.here.emit(Summed(1.0, 1.0), (half.register, other.register), halves, call.result)
