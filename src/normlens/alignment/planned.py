"""What `align` does when nobody says otherwise, and its nearest relatives, scored: none of them has seen the gold.

Room: plans to rows. Each direction alone, then both together in every way, by weights and by norms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, get_args

from normlens.alignment.align import planned_maps
from normlens.alignment.gold import Gold
from normlens.alignment.links import NONE, SYMMETRISATIONS, Alignment
from normlens.alignment.method import Method
from normlens.alignment.plan import plan
from normlens.alignment.score import tally
from normlens.alignment.soft import Measure
from normlens.alignment.stream import Maps, Pair
from normlens.alignment.way import Plan


def planned(decided: Plan, pairs: Sequence[Pair], golds: Sequence[Gold], choices: dict[str, Any]) -> Iterator[Method]:
    """Every plan like the one decided on, by weights and by norms; that one is marked."""
    lens, back = decided.forward.lens, None if decided.backward is None else decided.backward.lens
    for measure in get_args(Measure):
        asked = choices | {"measure": measure}
        same = measure == decided.forward.readings[0].measure
        if back is None:
            yield _alone(decided if same else plan(lens, None, pairs, **asked), "", pairs, golds, chosen=same)
            continue
        layers = {"layers": choices.get("reverse_layers") or choices.get("layers", "auto")}
        swapped = [(target, source) for source, target in pairs]
        yield _alone(plan(lens, None, pairs, **asked), "→ ", pairs, golds)
        yield _alone(plan(back, None, swapped, **(asked | layers)), "← ", swapped, golds, backward=True)
        yield from _together(decided if same else plan(lens, back, pairs, **asked), pairs, golds, chosen=same)


def _alone(
    decided: Plan,
    arrow: str,
    pairs: Sequence[Pair],
    golds: Sequence[Gold],
    *,
    backward: bool = False,
    chosen: bool = False,
) -> Method:
    found = [_links(decided, maps) for maps in planned_maps(decided, pairs)]
    links = [one.reversed() for one in found] if backward else found
    name = f"{decided.forward.readings[0].measure} {arrow}{decided.forward.where}, chosen without gold"
    return Method.of("one direction", name, tally(links, golds), chosen=chosen)


def _together(decided: Plan, pairs: Sequence[Pair], golds: Sequence[Gold], *, chosen: bool) -> Iterator[Method]:
    measure = decided.forward.readings[0].measure
    maps = list(planned_maps(decided, pairs))
    ways: dict[str, Plan] = {"maps multiplied": replace(decided, combine="soft")}
    if decided.second_link < 1:
        ways["maps multiplied, one to one"] = replace(decided, combine="soft", second_link=1.0)
    for name in SYMMETRISATIONS:
        named: Any = name
        ways[name] = replace(decided, combine=named)
    for name, way in ways.items():
        links = [_links(way, one) for one in maps]
        yield Method.of("both directions", f"{measure}, {name}", tally(links, golds), chosen=chosen and way == decided)


def _links(decided: Plan, maps: tuple[Maps, Maps | None] | None) -> Alignment:
    return NONE if maps is None else decided.links(*maps)
