"""Deciding how sentence pairs will be aligned.

Room: what the user asked for, and a choice for the rest, made before the first link.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, get_args

from normlens.alignment.agreement import most_agreed, self_agreed
from normlens.alignment.choice import BOTH, Choice, cross_layers, largest_norm
from normlens.alignment.soft import Measure, Position, Reading
from normlens.alignment.stream import Pair, check
from normlens.alignment.way import Combine, Plan, Way
from normlens.lens import Lens
from normlens.models import InputError

Layers = int | Sequence[int] | Literal["auto", "norm", "all"]
Rows = Literal["auto", "input", "output", "both"]
POSITIONS: dict[str, tuple[Position, ...]] = {"input": ("input",), "output": ("output",), "both": BOTH}
SECOND_LINK = 0.8  # of the strength of the first


def plan(
    lens: Lens,
    reverse: Lens | None,
    sample: Sequence[Pair],
    *,
    measure: Measure | str = "norms",
    position: Rows | str = "auto",
    layers: Layers = "auto",
    reverse_layers: Layers | None = None,
    head: int | None = None,
    combine: Combine | str = "soft",
    min_confidence: float = 0.0,
    second_link: float = SECOND_LINK,
    words: str = "whitespace",
    own: int | None = None,
) -> Plan:
    """Decide how to align; what is left "auto" is chosen on the sample, without gold.

    Layers: "auto" by agreement, "norm" that of the largest mean norm, "all", or numbers. Rows of layers that are not
    chosen by agreement are read as the decoder's input, AWI, unless `position` says otherwise. `words` is only told.
    Of the sample the first `own` pairs are the user's, if not all are.
    """
    for one in (lens, reverse):
        if one is not None:
            check(one)
    measured: Measure = _one_of("measure", measure, Measure)
    rows: Rows = _one_of("position", position, Rows)
    joined: Combine = _one_of("combine", combine, Combine)
    _check_thresholds(min_confidence, second_link)
    forward = _chosen(lens, layers, rows, sample)
    backward = None
    if reverse is None:
        forward = forward or self_agreed(lens, sample, measure=measured, positions=POSITIONS.get(rows, BOTH))
    else:
        swapped = [(target, source) for source, target in sample]
        backward = _chosen(reverse, reverse_layers or layers, rows, swapped)
        positions = POSITIONS.get(rows, BOTH if forward is backward is None else ("input",))
        if forward is None or backward is None:
            found = most_agreed(lens, reverse, sample, measure=measured, positions=positions, own=own)
            forward, backward = forward or found[0], backward or found[1]
    ways = [
        Way(one, tuple(Reading(measured, *place, head) for place in choice.places), choice.why, choice.weights)
        for one, choice in ((lens, forward), (reverse, backward))
        if one is not None and choice is not None
    ]
    return Plan(ways[0], ways[1] if reverse is not None else None, joined, min_confidence, second_link, words)


def _check_thresholds(min_confidence: float, second_link: float) -> None:
    if not 0 <= min_confidence < 1:
        raise InputError(f"min_confidence must be at least 0 and below 1 (got {min_confidence:g})")
    if not 0 < second_link <= 1:
        raise InputError(f"second_link must be above 0 and at most 1 (got {second_link:g})")


def _chosen(lens: Lens, layers: Layers, rows: Rows, sample: Sequence[Pair]) -> Choice | None:
    there, positions = cross_layers(lens), POSITIONS.get(rows, ("input",))
    if layers == "auto":
        return None
    if layers == "norm":
        return largest_norm(lens, sample, positions)
    if layers == "all":
        return Choice(tuple(product(positions, there)), "all layers, as asked")
    asked = (layers,) if isinstance(layers, int) else tuple(layers)
    wrong = [layer for layer in asked if not isinstance(layer, int) or layer not in there]
    if wrong or not asked:
        raise InputError(
            f"'{lens.subject.name}' has no cross-attention in layer {(wrong[0] if wrong else '(none given)')}.",
            got=f"{list(asked)}.  There are layers {there[0]} to {there[-1]}, counted from 0.",
            do="name layers from these, or leave the choice out.",
        )
    return Choice(tuple(product(positions, asked)), "as asked")


def _one_of(name: str, value: str, allowed: Any) -> Any:
    if value not in get_args(allowed):
        raise InputError(
            f"There is no {name} '{value}'.",
            do=f"choose one of {', '.join(get_args(allowed))}.",
        )
    return value
