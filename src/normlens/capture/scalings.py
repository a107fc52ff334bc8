"""Factors, gates of a feed-forward block, and norms: linear once the statistics of the pass are given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from normlens.capture import experts
from normlens.capture.following import Following
from normlens.capture.labels import (
    Active,
    Gated,
    Hidden,
    Linear,
    Mean,
    Normed,
    Other,
    Source,
    Statistic,
    Step,
    Term,
)
from normlens.capture.networks import activation

QUOTIENTS = frozenset("div divide true_divide __truediv__ __itruediv__ div_".split())


def factored(here: Following, block: int, name: str, func: Any, args: tuple[Any, ...], kwargs: Any, result: Any) -> Any:
    left, right = args[0], args[1] if len(args) > 1 else kwargs.get("other")
    ours, theirs = here.of(block, left), here.of(block, right)
    divides = name in QUOTIENTS
    if divides and isinstance(theirs, Linear):
        return None
    if isinstance(theirs, Linear):
        left, right, ours, theirs = right, left, theirs, ours
    if isinstance(ours, Linear):
        if theirs is None or isinstance(theirs, Statistic):
            by = right.detach() if isinstance(right, Tensor) else right
            return scaled(here, ours, 1 / by if divides else by, result, normed=theirs is not None)
        if isinstance(theirs, (Other, Active, Hidden)) and experts.may_be_routed(ours, right, result) and not divides:
            return here.made_of(ours, result, ours.stepped(Step("scale", ours.place, right.detach().clone())), "routed")
        return Other(block, f"it is multiplied by something computed from it ('{name}')")
    if isinstance(theirs, (Active, Gated, Normed)) and not divides and not isinstance(ours, (Active, Gated, Normed)):
        left, right, ours, theirs = right, left, theirs, ours
    if isinstance(ours, (Active, Gated, Normed)) and isinstance(right, Tensor):
        is_statistic = isinstance(theirs, Statistic) and right.shape[-1:] == (1,)
        is_vector = theirs is None and not isinstance(ours, Active) and here.is_fixed(right) and right.ndim == 1
        if is_statistic or is_vector:
            by = right.detach().clone()
            return units_scaled(ours, 1 / by if divides else by, normed=is_statistic)
    if isinstance(ours, Mean) and not isinstance(right, Tensor):
        return None
    if isinstance(ours, Statistic) and (theirs is None or isinstance(theirs, Statistic)):
        return ours
    if isinstance(theirs, Statistic) and ours is None:
        return theirs
    return product(here, ours, theirs, left, right, func, result, divides)


def product(
    here: Following, ours: Any, theirs: Any, left: Any, right: Any, func: Any, result: Any, divides: bool
) -> Active | Gated | Other | None:
    inner = [one for one in (ours, theirs) if one is not None]
    if not all(isinstance(one, (Hidden, Active)) for one in inner):
        return None
    hidden = [one if isinstance(one, Hidden) else one.of for one in inner]
    if all(one is hidden[0] for one in hidden):
        return activation(here, inner[0], func, (left, right), {}, result)
    if divides or not hidden[0].place.same(hidden[1].place):
        return None
    for gate, units in ((ours, theirs), (theirs, ours)):
        if isinstance(gate, Active) and isinstance(units, Hidden):
            return Gated(gate, units) if are_of_the_same(gate.of, units) else None
    straight = [isinstance(one, Active) and is_straight(one) for one in (ours, theirs)]
    if straight == [True, False] or straight == [False, True]:
        gate, units = (theirs, ours) if straight[0] else (ours, theirs)
        return Gated(gate, units) if are_of_the_same(gate.of, units.of) else None
    return None


def units_scaled(units: Active | Gated | Normed, *by: Tensor, normed: bool, centred: bool = False) -> Normed | None:
    """Units of a feed-forward block under a norm, or a part of one."""
    of, steps, shift = (units.of, units.steps, units.shift) if isinstance(units, Normed) else (units, (), None)
    if shift is not None or hidden_of(of).each is not None:
        return None
    place = experts.place_of(of)
    more = (Step("centre", place),) if centred else ()
    more += tuple(Step("scale", place, one, normed and one.shape[-1] == 1) for one in by)
    return Normed(of, (*steps, *more))


def hidden_of(units: Active | Gated) -> Hidden:
    return units.of if isinstance(units, Active) else units.gate.of


def units_normed(units: Active | Gated | Normed, name: str, args: tuple[Any, ...], kwargs: Any) -> Normed | None:
    """A whole norm of the units."""
    norm = Norm.of(name, args, kwargs)
    if norm is None:
        return None
    weight = () if norm.weight is None else (norm.weight,)
    found = units_scaled(units, norm.inverse, *weight, normed=True, centred=name == "layer_norm")
    return found if found is None else replace(found, shift=norm.bias)


@dataclass(frozen=True, slots=True, eq=False)
class Norm:
    """A norm of each row, with the statistic of the pass."""

    inverse: Tensor  # what each row is multiplied by
    weight: Tensor | None
    bias: Tensor | None

    @classmethod
    def of(cls, name: str, args: tuple[Any, ...], kwargs: Any) -> Norm | None:
        names = ("input", "normalized_shape", "weight", "bias", "eps") if name == "layer_norm" else (
            "input", "normalized_shape", "weight", "eps")  # fmt: skip
        call = dict(zip(names, args, strict=False)) | dict(kwargs)
        value, shape = call["input"], tuple(call["normalized_shape"])
        if shape != tuple(value.shape[-1:]):
            return None
        eps = call.get("eps", 1e-5 if name == "layer_norm" else None)
        numbers = value.detach() if value.dtype == torch.float64 else value.detach().float()
        eps = torch.finfo(value.dtype).eps if eps is None else eps
        if name == "layer_norm":
            spread = numbers.var(-1, correction=0, keepdim=True)
        else:
            spread = numbers.square().mean(-1, keepdim=True)
        weight, bias = (None if one is None else one.detach() for one in (call.get("weight"), call.get("bias")))
        return cls((spread + eps).rsqrt(), weight, bias)


def scaled(here: Following, state: Linear, by: Any, result: Any, *, normed: bool = False) -> bool | None:
    if not isinstance(result, Tensor) or tuple(result.shape[:-1]) != state.place.lead:
        return None
    step = Step("scale", state.place, by, normed)
    return here.made_of(state, result, state.stepped(step), "norm" if normed else "scale")


def normed(
    here: Following, state: Linear, name: str, args: tuple[Any, ...], kwargs: Any, result: Tensor
) -> bool | None:
    norm = Norm.of(name, args, kwargs)
    if norm is None:
        return None
    steps = [Step("centre", state.place)] if name == "layer_norm" else []
    steps.append(Step("scale", state.place, norm.inverse, normed=True))
    if norm.weight is not None:
        steps.append(Step("scale", state.place, norm.weight))
    terms = state.stepped(*steps)
    if norm.bias is not None:
        terms += (Term(Source("constant", norm.bias, state.place)),)
    return here.made_of(state, result, terms, name)


def are_of_the_same(gate: Hidden, units: Hidden) -> bool:
    """Whether two halves of a gated block are those of the same experts, row by row, and read the same state."""
    if gate.each is None or units.each is None:
        return gate.each is units.each and gate.of.terms == units.of.terms
    return torch.equal(gate.each, units.each) and gate.of.terms == units.of.terms


def is_straight(units: Active) -> bool:
    """Whether it is a straight line around 0, such as 1 + u, clamped farther out or not."""
    grid = torch.linspace(-0.5, 0.5, 5, dtype=units.of.value.dtype, device=units.of.value.device)
    found = units.again(grid[:, None].expand(5, units.of.value.shape[-1])).double()
    line = found[2] + (found[4] - found[2]) * (2 * grid[:, None].double())
    return bool(torch.allclose(found, line, rtol=1e-5, atol=1e-6))
