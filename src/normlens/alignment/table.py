"""Table 3 on your data: every aligner beside every other, scored on the same gold.

Room: which methods are compared. Reading, scoring and the statistical aligners live in files of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from normlens.alignment.align import planned_maps
from normlens.alignment.aligners import statistical
from normlens.alignment.extract import strongest
from normlens.alignment.gold import Gold
from normlens.alignment.gradients import Form, each_saliency
from normlens.alignment.links import NONE, SYMMETRISATIONS, Alignment
from normlens.alignment.plan import Plan, plan
from normlens.alignment.score import Tally, tally
from normlens.alignment.soft import Measure, Position
from normlens.alignment.stream import Pair
from normlens.alignment.study import Direction, Example, direction, examples
from normlens.lens import Lens

FORMS: dict[Form, str] = {"li": "Li et al. 2016", "ding": "Ding et al. 2019"}
Group = Literal["one direction", "gradients", "both directions", "statistical"]


@dataclass(frozen=True, slots=True)
class Method:
    """One row: an aligner and what it scored."""

    group: Group
    name: str
    tally: Tally | None  # None: the mean of several errors, of which there are no counts
    aer: float
    needs_gold: bool = False  # its layer or head was chosen by its own score

    @staticmethod
    def of(group: Group, name: str, counted: Tally, *, needs_gold: bool = False) -> Method:
        return Method(group, name, counted, counted.total.aer, needs_gold)


@dataclass(frozen=True, slots=True)
class Compared:
    """Everything that was found about one gold set."""

    methods: tuple[Method, ...]
    forward: Direction
    backward: Direction | None
    plan: Plan  # what `align` does when nobody says otherwise
    examples: tuple[Example, ...]
    sentences: int


def compare_methods(
    lens: Lens,
    reverse: Lens | None,
    pairs: Sequence[Pair],
    golds: Sequence[Gold],
    *,
    gradients: Sequence[str] = (),  # "saliency", "smoothgrad"
    aligners: Sequence[str] = (),
    also: Sequence[Pair] = (),  # text that the statistical aligners learn from beside the pairs
    shown: Sequence[int] = (0, 1, 2),
    progress: Callable[[str], None] = lambda what: None,
    **choices: Any,
) -> Compared:
    """Score every way to align these pairs."""
    decided = plan(lens, reverse, pairs, **choices)
    progress("every layer and head")
    forward = direction(lens, pairs, golds)
    backward = None if reverse is None else direction(reverse, pairs, golds, backward=True)
    methods = [*_one_way(forward, "→" if reverse else "")]
    if backward is not None:
        methods += _one_way(backward, "←")
    for kind in gradients:
        progress(kind)
        methods += _gradients(lens, pairs, golds, kind)
    if reverse is not None:
        progress("both directions")
        methods += _both_ways(decided, pairs, golds, choices)
    for name in aligners:
        progress(name)
        methods += _statistical(name, pairs, golds, also)
    picked = [number for number in shown if number < len(pairs)]
    return Compared(tuple(methods), forward, backward, decided, tuple(examples(lens, pairs, golds, picked)), len(pairs))


def _one_way(found: Direction, arrow: str) -> Iterable[Method]:
    positions: dict[Position, str] = {"input": "AWI", "output": "AWO"}
    for position, rows in positions.items():
        for measure in ("weights", "norms"):
            label = f"{measure} {rows} {arrow}".strip()
            best = found.best(measure, position)
            yield Method("one direction", f"{label}, mean of layers", None, found.mean(measure, position))
            yield Method.of("one direction", f"{label}, best layer L{best.layer}", found.tallies[best], needs_gold=True)
            heads = [r for r in found.tallies if r.head is not None and (r.measure, r.position) == (measure, position)]
            head = min(heads, key=lambda r: found.tallies[r].total.aer)
            name = f"{label}, best head L{head.layer}H{head.head}"
            yield Method.of("one direction", name, found.tallies[head], needs_gold=True)
        layer = found.largest_norm
        largest = replace(found.best("norms", position), layer=layer)
        name = f"norms {rows} {arrow}".strip() + f", layer of largest norm L{layer}"
        yield Method.of("one direction", name, found.tallies[largest])


def _gradients(lens: Lens, pairs: Sequence[Pair], golds: Sequence[Gold], kind: str) -> Iterable[Method]:
    options = {"samples": 1, "noise": 0.0} if kind == "saliency" else {}
    found: dict[Form, list[Alignment]] = {form: [] for form in FORMS}
    for maps in each_saliency(lens, pairs, **options):
        for form, alignments in found.items():
            alignments.append(NONE if maps is None else strongest(maps[form]))
    for form, alignments in found.items():
        yield Method.of("gradients", f"{kind} ({FORMS[form]})", tally(alignments, golds))


def _both_ways(
    decided: Plan, pairs: Sequence[Pair], golds: Sequence[Gold], choices: dict[str, Any]
) -> Iterable[Method]:
    assert decided.backward is not None
    for measure in ("weights", "norms"):
        plans = _measured(decided, pairs, measure, choices)
        both = list(planned_maps(plans, pairs))
        for how in ("soft", *SYMMETRISATIONS):
            chosen: Any = replace(plans, combine=how)
            links = [NONE if maps is None else chosen.links(*maps) for maps in both]
            name = f"{measure}, {'maps multiplied' if how == 'soft' else how}"
            yield Method.of("both directions", name, tally(links, golds))


def _measured(decided: Plan, pairs: Sequence[Pair], measure: Measure, choices: dict[str, Any]) -> Plan:
    if decided.forward.readings[0].measure == measure or decided.backward is None:
        return decided
    other: dict[str, Any] = choices | {"measure": measure}
    return plan(decided.forward.lens, decided.backward.lens, pairs, **other)


def _statistical(name: str, pairs: Sequence[Pair], golds: Sequence[Gold], also: Sequence[Pair]) -> Iterable[Method]:
    sources, targets = zip(*pairs, strict=True)
    forward, backward = statistical(name, sources, targets, also=also)
    yield Method.of("statistical", f"{name} →", tally(forward, golds))
    yield Method.of("statistical", f"{name} ←", tally(backward, golds))
    for how in ("intersection", "grow-diag-final-and"):
        merged = [SYMMETRISATIONS[how](one, two) for one, two in zip(forward, backward, strict=True)]
        yield Method.of("statistical", f"{name} {how}", tally(merged, golds))
