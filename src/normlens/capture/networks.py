"""Matrices and activations: the units of a feed-forward block, of one for all or of experts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from normlens.capture import experts
from normlens.capture.calls import tensors_in
from normlens.capture.following import Following
from normlens.capture.labels import (
    Active,
    Column,
    Gated,
    Hidden,
    Linear,
    Network,
    Normed,
    Other,
    Picked,
    Source,
    Term,
)
from normlens.capture.operations import as_projection
from normlens.capture.vocabulary import MOVES


def through_matrix(here: Following, block: int, name: str, args: tuple[Any, ...], kwargs: Any, result: Any) -> Any:
    operands = args[1:] if name == "einsum" else args
    operands = operands[0] if operands and isinstance(operands[0], (list, tuple)) else operands
    labels = [(one, here.of(block, one)) for one in tensors_in((tuple(operands), kwargs))]
    known = [pair for pair in labels if pair[1] is not None and not isinstance(pair[1], Picked)]
    if name in experts.GROUPED:
        known = known[:1]
    if not known:
        return None
    (operand, label), *more = known
    if more or not isinstance(result, Tensor):
        return None
    if isinstance(label, (Linear, Active, Gated, Column)) and name in experts.GROUPED | experts.BATCHED:
        stack = experts.stack_of(name, args, kwargs, label, here.picked, here.is_fixed)
        if stack is not None:
            return experts.through(stack, label, result)
    projection = as_projection(name, args, dict(kwargs)) if name not in ("conv1d", "conv2d", "einsum") else None
    if projection is None or projection.added is not None or projection.form != "rows":
        return carried(here, label, f"'{name}'")
    if not isinstance(label, (Linear, Active, Gated, Normed)) or result.shape[:-1] != operand.shape[:-1]:
        return carried(here, label, f"'{name}'")
    fixed = here.positions.track(projection.matrix)
    if fixed is not None and fixed.origins and here.picked(projection.matrix) is None:
        return carried(here, label, "a matrix that is computed from the input")
    weight, bias = projection.weight.detach(), None if projection.bias is None else projection.bias.detach()
    if isinstance(label, Linear):
        return Hidden(label, weight, bias, result.detach(), label.place)
    place = experts.shaped(experts.place_of(label), tuple(result.shape[:-1]))
    network = Network(label, weight, bias) if not isinstance(label, Normed) else _behind_norm(label, weight, bias)
    source = Source("feedforward", result.detach().clone(), place, network)
    return Linear(block, (Term(source),), place, -1, ("feedforward",))


def _behind_norm(units: Normed, weight: Tensor, bias: Tensor | None) -> Network:
    """The bias of the norm goes through the matrix."""
    if units.shift is not None:
        passed = (units.shift.double() @ weight.double()).to(weight.dtype)
        bias = passed if bias is None else bias + passed
    return Network(units.of, weight, bias, steps=units.steps)


def carried(here: Following, label: Any, reason: str) -> Other:
    return label if isinstance(label, Other) and label.reason else Other(label.block, f"through {reason}")


def activation(
    here: Following, label: Hidden | Active, func: Any, args: tuple[Any, ...], kwargs: Any, result: Any
) -> Any:
    """Cell by cell, of one and the same units: whatever it is, g is computed anew from them."""
    hidden = label if isinstance(label, Hidden) else label.of
    parts: list[Any] = []
    for arg in args:
        found = here.of(hidden.block, arg)
        if found is not None and not (
            (isinstance(found, Hidden) and found is hidden) or (isinstance(found, Active) and found.of is hidden)
        ):
            return None
        if found is None and isinstance(arg, Tensor) and arg.ndim and arg.shape[-1] != 1 and arg.ndim > 1:
            return None
        parts.append(found if found is not None else arg)
    if not isinstance(result, Tensor) or result.shape != hidden.value.shape:
        return None

    def again(units: Tensor) -> Tensor:
        words = [
            units if isinstance(part, Hidden) else part.again(units) if isinstance(part, Active) else part
            for part in parts
        ]
        return func(*words, **kwargs)

    return Active(hidden, result.detach(), again)


def of_experts(
    here: Following, block: int, first: Any, name: str, args: tuple[Any, ...], kwargs: Any, result: Any
) -> Any:
    """The label of what only mixtures of experts do; None: it is something else."""
    if isinstance(first, Column):
        if name == "squeeze" and (args[1:] or (kwargs.get("dim"),))[0] in (-1, args[0].ndim - 1):
            return first.of
        return Other(block, f"through '{name}'") if name not in experts.BATCHED else None
    if name == "unsqueeze" and isinstance(first, (Linear, Hidden, Active, Gated)):
        dim = args[1] if len(args) > 1 else kwargs.get("dim")
        return Column(first) if dim in (-1, result.ndim - 1) else None
    if name in ("__getitem__", "index_select", "select") and first is None:
        at = (args[0], *args[2:]) if name == "index_select" else args
        return experts.pick(block, args[0], at, here.is_fixed)
    if isinstance(first, Picked) and name in MOVES and isinstance(result, Tensor):
        return Picked(block, result.detach(), None)
    if name in ("cat", "concat", "concatenate") and args:
        labels = [here.of(block, one) for one in args[0]]
        dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
        known = all(isinstance(one, (Linear, Hidden)) for one in labels)
        return experts.joined(labels, dim, result) if known else None
    if name == "sum" and isinstance(first, Linear):
        dim = kwargs.get("dim", args[1] if len(args) > 1 else ())
        return experts.summed(first, tuple(dim) if isinstance(dim, (tuple, list)) else (dim,), result)
    if name in experts.ADDS and kwargs.get("alpha", 1) == 1:
        call = dict(zip(("input", "dim", "index", "source"), args, strict=False)) | dict(kwargs)
        label = here.of(block, call["source"])
        if call["dim"] == 0 and call["source"].ndim == 2 and isinstance(label, Linear):
            onto = call.get("input", args[0])
            return experts.added_into(onto, here.label(onto), call["index"], label, tuple(result.shape[:-1]))
    if name == "__setitem__" and isinstance(label := here.of(block, args[2]), Linear):
        numbers = torch.arange(args[0][..., 0].numel(), device=args[0].device).view(args[0].shape[:-1])
        if not isinstance(args[1], tuple) or len(args[1]) < args[0].ndim:
            rows = numbers[args[1]].flatten()
            return experts.set_rows(args[0], here.label(args[0]), rows, label, tuple(args[0].shape[:-1]))
    return None
