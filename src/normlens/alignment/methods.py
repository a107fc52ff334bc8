"""Every aligner scored on the same gold: Table 3 and Figures 7 and 8 of the 2020 paper, on your data.

Every layer and head of a model, by weights and by norms, under AWI and AWO; what `align` does by default, and its
nearest relatives; gradients; statistical aligners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from normlens.alignment.align import choose, each_alignment, each_maps
from normlens.alignment.aligner import Aligner, strongest
from normlens.alignment.compared import MEASURES, Compared, Direction, Example, Method
from normlens.alignment.gold import Gold
from normlens.alignment.gradients import Form, each_saliency
from normlens.alignment.layers import cross_layers, mean_norms
from normlens.alignment.links import NONE, SYMMETRISATIONS, Alignment
from normlens.alignment.maps import ROWS, Reading, each_map
from normlens.alignment.score import tally
from normlens.alignment.statistical import LONGEST, statistical
from normlens.alignment.words import Pair
from normlens.lens import Lens
from normlens.models import InputError

GRADIENTS = ("saliency", "smoothgrad")
FORMS: dict[Form, str] = {"li": "Li et al. 2016", "ding": "Ding et al. 2019"}


def compare_methods(
    lens: Lens,
    reverse: Lens | None,
    pairs: Sequence[Pair],
    golds: Sequence[Gold],
    *,
    gradients: Sequence[str] = (),  # of GRADIENTS
    aligners: Sequence[str] = (),
    also: Sequence[Pair] = (),  # text that the statistical aligners learn from beside the pairs
    shown: Sequence[int] = (0, 1, 2),
    progress: Callable[[str], None] = lambda what: None,
    **choices: Any,
) -> Compared:
    """Score every aligner on these pairs."""
    unknown = [
        *(name for name in gradients if name not in GRADIENTS),
        *(name for name in aligners if name not in LONGEST),
    ]
    if unknown:
        raise InputError(
            f"There is no aligner '{unknown[0]}' to compare with.",
            do=f"--gradients takes {' and '.join(GRADIENTS)}, --aligners takes {', '.join(LONGEST)}.",
        )
    aligner = choose(lens, reverse, pairs, **choices)
    progress("every layer and head")
    forward = score_model(lens, pairs, golds)
    backward = None if reverse is None else score_model(reverse, pairs, golds, backward=True)
    progress("choices without gold")
    without_gold = [*_without_gold(aligner, pairs, golds, choices)]
    methods = [*_layers_and_heads(forward, "→" if reverse else "")]
    if backward is not None:
        methods += _layers_and_heads(backward, "←")
    methods += [method for method in without_gold if method.group == "one direction"]
    for kind in gradients:
        progress(kind)
        methods += _gradients(lens, pairs, golds, kind)
    methods += [method for method in without_gold if method.group == "both directions"]
    for name in aligners:
        progress(name)
        methods += _statistical(name, pairs, golds, also)
    examples = _examples(lens, pairs, golds, [number for number in shown if number < len(pairs)])
    return Compared(tuple(methods), forward, backward, aligner, tuple(examples), len(pairs))


def score_model(lens: Lens, pairs: Sequence[Pair], golds: Sequence[Gold], *, backward: bool = False) -> Direction:
    """Score every layer and head of a model, by weights and norms, under AWI and AWO; all from one pass."""
    pairs = _swapped(pairs) if backward else list(pairs)
    norms = mean_norms(lens, pairs)
    layers = tuple(cross_layers(lens))
    links: dict[Reading, list[Alignment]] = {
        Reading(measure, position, layer, head): []
        for measure in MEASURES
        for position in ROWS
        for layer in layers
        for head in (None, *range(norms.shape[1]))
    }
    for maps in each_map(lens, pairs, list(links)):
        for reading, alignments in links.items():
            alignment = NONE if maps is None else strongest(maps[reading])
            alignments.append(alignment.reversed() if backward else alignment)
    tallies = {reading: tally(alignments, golds) for reading, alignments in links.items()}
    return Direction(lens.subject.name, tallies, norms, layers, lens.signature)


def _examples(lens: Lens, pairs: Sequence[Pair], golds: Sequence[Gold], numbers: Sequence[int]) -> Iterator[Example]:
    """Maps of a few sentence pairs, all layers, for figures."""
    readings = [Reading(measure, "input", layer) for measure in MEASURES for layer in cross_layers(lens)]
    for number, maps in zip(numbers, each_map(lens, [pairs[n] for n in numbers], readings), strict=True):
        if maps is not None:
            yield Example(tuple(pairs[number][0]), tuple(pairs[number][1]), golds[number], maps)


def _layers_and_heads(scored: Direction, arrow: str) -> Iterator[Method]:
    """The mean of the layers, the best layer, the best head and the layer of the largest norm."""
    for position, rows in ROWS.items():
        for measure in MEASURES:
            label = f"{measure} {rows} {arrow}".strip()
            layer, head = scored.best(measure, position), scored.best_head(measure, position)
            yield Method("one direction", f"{label}, mean of the layers' errors", None, scored.mean(measure, position))
            for reading, kind in ((layer, "layer"), (head, "head")):
                name = f"{label}, best {kind} {reading.where}"
                yield Method.of("one direction", name, scored.tallies[reading], needs_gold=True)
        name = f"norms {rows} {arrow}".strip() + f", layer of largest norm L{scored.largest_norm}"
        yield Method.of("one direction", name, scored.tallies[Reading("norms", position, scored.largest_norm)])


def _without_gold(
    aligner: Aligner, pairs: Sequence[Pair], golds: Sequence[Gold], choices: dict[str, Any]
) -> Iterator[Method]:
    """The default aligner, which is marked, and its like: each direction alone and both, by weights and by norms."""
    lens, back = aligner.forward.lens, None if aligner.backward is None else aligner.backward.lens
    for measure in MEASURES:
        asked: dict[str, Any] = choices | {"measure": measure}
        is_default = measure == aligner.forward.readings[0].measure
        if back is None:
            alone = aligner if is_default else choose(lens, None, pairs, **asked)
            yield _alone(alone, "", pairs, golds, chosen=is_default)
            continue
        layers = {"layers": choices.get("reverse_layers") or choices.get("layers", "auto")}
        swapped = _swapped(pairs)
        yield _alone(choose(lens, None, pairs, **asked), "→ ", pairs, golds)
        yield _alone(choose(back, None, swapped, **(asked | layers)), "← ", swapped, golds, backward=True)
        together = aligner if is_default else choose(lens, back, pairs, **asked)
        yield from _together(together, pairs, golds, chosen=is_default)


def _alone(
    aligner: Aligner,
    arrow: str,
    pairs: Sequence[Pair],
    golds: Sequence[Gold],
    *,
    backward: bool = False,
    chosen: bool = False,
) -> Method:
    alignments = list(each_alignment(aligner, pairs))
    links = [alignment.reversed() for alignment in alignments] if backward else alignments
    name = f"{aligner.forward.readings[0].measure} {arrow}{aligner.forward.where}, chosen without gold"
    return Method.of("one direction", name, tally(links, golds), chosen=chosen)


def _together(aligner: Aligner, pairs: Sequence[Pair], golds: Sequence[Gold], *, chosen: bool) -> Iterator[Method]:
    measure = aligner.forward.readings[0].measure
    maps = list(each_maps(aligner, pairs))
    combined: dict[str, Aligner] = {"maps multiplied": replace(aligner, combine="soft")}
    if aligner.second_link < 1:
        combined["maps multiplied, one to one"] = replace(aligner, combine="soft", second_link=1.0)
    for name in SYMMETRISATIONS:
        combine: Any = name
        combined[name] = replace(aligner, combine=combine)
    for name, other in combined.items():
        links = [NONE if both is None else other.links(*both) for both in maps]
        is_chosen = chosen and other == aligner
        yield Method.of("both directions", f"{measure}, {name}", tally(links, golds), chosen=is_chosen)


def _gradients(lens: Lens, pairs: Sequence[Pair], golds: Sequence[Gold], kind: str) -> Iterable[Method]:
    options = {"samples": 1, "noise": 0.0} if kind == "saliency" else {}
    links: dict[Form, list[Alignment]] = {form: [] for form in FORMS}
    for maps in each_saliency(lens, pairs, **options):
        for form, alignments in links.items():
            alignments.append(NONE if maps is None else strongest(maps[form]))
    for form, alignments in links.items():
        yield Method.of("gradients", f"{kind} ({FORMS[form]})", tally(alignments, golds))


def _statistical(name: str, pairs: Sequence[Pair], golds: Sequence[Gold], also: Sequence[Pair]) -> Iterable[Method]:
    sources, targets = zip(*pairs, strict=True)
    forward, backward = statistical(name, sources, targets, also=also)
    yield Method.of("statistical", f"{name} →", tally(forward, golds))
    yield Method.of("statistical", f"{name} ←", tally(backward, golds))
    for how in ("intersection", "grow-diag-final-and"):
        merged = [SYMMETRISATIONS[how](one, two) for one, two in zip(forward, backward, strict=True)]
        yield Method.of("statistical", f"{name} {how}", tally(merged, golds))


def _swapped(pairs: Iterable[Pair]) -> list[Pair]:
    return [(target, source) for source, target in pairs]
