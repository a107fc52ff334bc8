"""Table 3 on your data: every aligner beside every other, scored on the same gold.

Room: which methods are compared. Reading, scoring and the statistical aligners live in files of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from normlens.alignment.aligners import statistical
from normlens.alignment.extract import strongest
from normlens.alignment.gold import Gold
from normlens.alignment.gradients import Form, each_saliency
from normlens.alignment.links import NONE, SYMMETRISATIONS, Alignment
from normlens.alignment.method import Method
from normlens.alignment.plan import plan
from normlens.alignment.planned import planned
from normlens.alignment.score import tally
from normlens.alignment.soft import ROWS
from normlens.alignment.stream import Pair
from normlens.alignment.study import Direction, Example, direction, examples
from normlens.alignment.way import Plan
from normlens.lens import Lens

FORMS: dict[Form, str] = {"li": "Li et al. 2016", "ding": "Ding et al. 2019"}


@dataclass(frozen=True, slots=True)
class Compared:
    """Everything that was found about one gold set."""

    methods: tuple[Method, ...]
    forward: Direction
    backward: Direction | None
    plan: Plan  # what `align` does when nobody says otherwise
    examples: tuple[Example, ...]
    sentences: int

    @property
    def chosen(self) -> Method:
        """What the plan scores."""
        return next(method for method in self.methods if method.chosen)

    @property
    def shown(self) -> int:
        """The layer that pictures show first: of those the plan reads under AWI, or of the largest norm."""
        read = [reading.layer for reading in self.plan.forward.readings if reading.position == "input"]
        return read[0] if read else self.forward.largest_norm


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
    progress("choices without gold")
    unaided = [*planned(decided, pairs, golds, choices)]
    methods = [*_one_way(forward, "→" if reverse else "")]
    if backward is not None:
        methods += _one_way(backward, "←")
    methods += [method for method in unaided if method.group == "one direction"]
    for kind in gradients:
        progress(kind)
        methods += _gradients(lens, pairs, golds, kind)
    methods += [method for method in unaided if method.group == "both directions"]
    for name in aligners:
        progress(name)
        methods += _statistical(name, pairs, golds, also)
    picked = [number for number in shown if number < len(pairs)]
    return Compared(tuple(methods), forward, backward, decided, tuple(examples(lens, pairs, golds, picked)), len(pairs))


def _one_way(found: Direction, arrow: str) -> Iterable[Method]:
    for position, rows in ROWS.items():
        for measure in ("weights", "norms"):
            label = f"{measure} {rows} {arrow}".strip()
            best = found.best(measure, position)
            yield Method("one direction", f"{label}, mean of the layers' errors", None, found.mean(measure, position))
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


def _statistical(name: str, pairs: Sequence[Pair], golds: Sequence[Gold], also: Sequence[Pair]) -> Iterable[Method]:
    sources, targets = zip(*pairs, strict=True)
    forward, backward = statistical(name, sources, targets, also=also)
    yield Method.of("statistical", f"{name} →", tally(forward, golds))
    yield Method.of("statistical", f"{name} ←", tally(backward, golds))
    for how in ("intersection", "grow-diag-final-and"):
        merged = [SYMMETRISATIONS[how](one, two) for one, two in zip(forward, backward, strict=True)]
        yield Method.of("statistical", f"{name} {how}", tally(merged, golds))
