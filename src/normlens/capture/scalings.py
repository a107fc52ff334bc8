"""Factors, gates of a feed-forward block, and norms: linear once the statistics of the pass are given."""

from __future__ import annotations

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


def scaled(here: Following, state: Linear, by: Any, result: Any, *, normed: bool = False) -> bool | None:
    if not isinstance(result, Tensor) or tuple(result.shape[:-1]) != state.place.lead:
        return None
    step = Step("scale", state.place, by, normed)
    return here.made_of(state, result, state.stepped(step), "norm" if normed else "scale")


def normed(
    here: Following, state: Linear, name: str, args: tuple[Any, ...], kwargs: Any, result: Tensor
) -> bool | None:
    names = ("input", "normalized_shape", "weight", "bias", "eps") if name == "layer_norm" else (
        "input", "normalized_shape", "weight", "eps")  # fmt: skip
    call = dict(zip(names, args, strict=False)) | dict(kwargs)
    value, shape = call["input"], tuple(call["normalized_shape"])
    if shape != tuple(value.shape[-1:]):
        return None
    eps = call.get("eps", 1e-5 if name == "layer_norm" else None)
    numbers = value.detach() if value.dtype == torch.float64 else value.detach().float()
    eps = torch.finfo(value.dtype).eps if eps is None else eps
    steps = []
    if name == "layer_norm":
        steps.append(Step("centre", state.place))
        spread = numbers.var(-1, correction=0, keepdim=True)
    else:
        spread = numbers.square().mean(-1, keepdim=True)
    steps.append(Step("scale", state.place, (spread + eps).rsqrt(), normed=True))
    if call.get("weight") is not None:
        steps.append(Step("scale", state.place, call["weight"].detach()))
    terms = state.stepped(*steps)
    if call.get("bias") is not None:
        terms += (Term(Source("constant", call["bias"].detach(), state.place)),)
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
