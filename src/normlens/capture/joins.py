"""Sums in which a part of a layer stands: the residual, a bias, the centre of a norm, and what joins next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from normlens.capture import experts
from normlens.capture.following import SUMS as SUMS
from normlens.capture.following import Following
from normlens.capture.labels import (
    Active,
    Hidden,
    Linear,
    Mean,
    Other,
    Picked,
    Statistic,
    Step,
    Term,
)
from normlens.capture.networks import activation

DIFFERENCES = frozenset("sub subtract __sub__ __rsub__ rsub __isub__ sub_".split())


def summed(here: Following, block: int, name: str, args: tuple[Any, ...], kwargs: Any, result: Any) -> Any:
    left, right = args[0], args[1] if len(args) > 1 else kwargs.get("other")
    alpha = kwargs.get("alpha", 1)
    minus = name in DIFFERENCES
    if name in ("__rsub__", "rsub"):
        left, right = right, left
    ours, theirs = here.of(block, left), here.of(block, right)
    for label, bias in ((ours, theirs), (theirs, ours)):
        if isinstance(bias, Picked):
            fits = isinstance(label, (Hidden, Linear)) and not minus and alpha == 1
            return experts.biased(label, bias, result) if fits else None  # pyright: ignore
    if isinstance(ours, Statistic) or isinstance(theirs, Statistic):
        both = [one for one in (ours, theirs) if one is not None]
        return both[0] if all(isinstance(one, Statistic) for one in both) else None
    if isinstance(ours, Linear) and isinstance(theirs, Mean):
        if theirs.of.number == ours.number and minus and alpha == 1:
            return here.made_of(ours, result, ours.stepped(Step("centre", ours.place)), "centre")
        return None
    if all(one is None or isinstance(one, (Hidden, Active)) for one in (ours, theirs)):
        return activation(here, ours or theirs, plain(name), (left, right), {}, result)  # pyright: ignore
    states = [one for one in (ours, theirs) if isinstance(one, Linear)]
    state = next((one for one in states if one.attends), states[0] if states else None)
    if state is None or not isinstance(result, Tensor):
        return None
    if any(one.attends and one.place.base is not None for one in states):
        if len(states) > 1 or not state.attends or (place := experts.remaining(state.place)) is None:
            return None
        state = replace(state, place=place)
        ours, theirs = (state if isinstance(one, Linear) else one for one in (ours, theirs))
    terms, words = [], []
    for value, label, sign in ((left, ours, 1.0), (right, theirs, -1.0 if minus else 1.0)):
        factor = sign * (alpha if value is right else 1)
        if isinstance(label, Linear):
            if not label.place.same(state.place) or tuple(result.shape[:-1]) != label.place.lead:
                return None
            step = () if factor == 1 else (Step("scale", label.place, factor),)
            terms += label.stepped(*step)
        elif label is not None:
            words.append("join")
            reason = label.reason if isinstance(label, Other) else "it is added before its end is known"
            reason = reason or "it is computed cell by cell from the state itself"
            terms.append(here.joined(value, factor, reason, state))
        else:
            source = here.beside(value, factor, state.place)
            words.append(source.kind)
            terms.append(Term(source))
    if isinstance(ours, Linear) and isinstance(theirs, Linear):
        words.append("both")
        whole = next((one for one in (ours, theirs) if one.attends), None)
        inner = theirs if whole is ours else ours
        if whole is not None and inner.holds("feedforward", "other") and not inner.attends:
            here.note(block).added.append(whole.number)
    elif "join" in words:
        here.note(block).added.append(state.number)
    return here.made_of(state, result, tuple(terms), "+".join(words))


def plain(name: str) -> Callable[..., Tensor]:
    """A sum or difference of two operands that stand in their order."""
    return torch.sub if name in DIFFERENCES else torch.add
