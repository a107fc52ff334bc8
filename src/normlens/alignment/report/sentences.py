"""A comparison in sentences that follow from its numbers; where there is nothing to say there is no sentence."""

from __future__ import annotations

from collections.abc import Sequence

from normlens.alignment.compared import Compared, Direction, Method, lowest
from normlens.alignment.maps import ROWS, Reading
from normlens.alignment.resample import compare
from normlens.exhibits import listing

CHANCE = 0.05  # a difference with a larger p is called one that chance could make
SAME = 0.0005  # errors nearer than this are called the same
ARROWS = {"forward": "source → target", "backward": "target → source"}


def method_sentences(compared: Compared) -> list[str]:
    """Which aligner is best, what both directions add, and what is reached without gold."""
    return [*_winner(compared), *_both(compared), *_without_gold(compared)]


def layer_sentences(compared: Compared) -> list[str]:
    """Weights or norms, direction by direction; then the layer of the largest norm."""
    leads = {
        name: "In one direction" if compared.backward is None else f"{ARROWS[name].capitalize()} alone"
        for name in compared.directions
    }
    return [
        sentence(direction, leads[name])
        for sentence in (_weights_or_norms, _largest)
        for name, direction in compared.directions.items()
    ]


def aer(value: float) -> str:
    """An error as a reader wants it.

    >>> aer(0.2498)
    '25.0 %'
    """
    return f"{100 * value:.1f} %"


def names(methods: Sequence[Method]) -> str:
    """Aligners by their names, which may hold commas."""
    return listing([f"“{method.name}”" for method in methods])


def _winner(compared: Compared) -> list[str]:
    best = compared.lowest()
    if not best:
        return []
    winner, groups = best[0], {method.group for method in best}
    others = [
        f"{names([rival])} ({group}) has {aer(rival.aer)}, {_points(winner, rival)} more, {_verdict(winner, rival)}"
        for group in compared.groups
        if group not in groups
        for rival in compared.lowest(group)[:1]
    ]
    sentence = f"The lowest error of all is {aer(winner.aer)}: {names(best)} ({listing(sorted(groups))})."
    free = lowest(method for method in compared.methods if not method.needs_gold)
    if winner.needs_gold and free:
        sentence += " Its layer or head was chosen with the gold; of those that need none, "
        sentence += f"{names(free)} has {aer(free[0].aer)}."
    return [sentence + (f" The best of each other group: {'; '.join(others)}." if others else "")]


def _both(compared: Compared) -> list[str]:
    merged, alone = compared.lowest("both directions"), compared.lowest("one direction")
    if not merged or not alone:
        return []
    one, other = merged[0], alone[0]
    if _alike(one, other):
        judged = f"as good as the best of one direction, {names([other])}"
    else:
        side = "below" if one.aer < other.aer else "above"
        judged = f"{_points(one, other)} {side} the best of one direction, {names([other])}, {_verdict(one, other)}"
    sentences = [f"With both directions together the lowest error is {aer(one.aer)} ({names(merged)}): {judged}."]
    multiplied = {
        method.name.split(",")[0]: method for method in compared.methods if method.name.endswith(", maps multiplied")
    }
    if multiplied.keys() == {"norms", "weights"}:
        norms, weights = multiplied["norms"], multiplied["weights"]
        sentences.append(
            f"With the maps of both directions multiplied, norms have {aer(norms.aer)} and weights {aer(weights.aer)}: "
            f"{_better('norms', norms, 'weights', weights)}."
        )
    return sentences


def _without_gold(compared: Compared) -> list[str]:
    method, forward = compared.chosen, compared.aligner.forward
    directions = compared.aligner.directions
    layers = listing([f"{direction.spelled} of {direction.lens.subject.name}" for direction in directions])
    if len({direction.spelled for direction in directions}) == 1:
        layers = forward.spelled
    first = compared.lowest()[0]
    rest = "no row of the table does better" if method.aer - first.aer < SAME else f"the best row has {aer(first.aer)}"
    return [f"Without gold, align uses {layers}, {forward.why}. This has {aer(method.aer)}; {rest}."]


def _weights_or_norms(direction: Direction, lead: str) -> str:
    norms, weights = (
        Method.of("one direction", _placed(reading), direction.tallies[reading])
        for reading in (direction.best_layer("norms"), direction.best_layer("weights"))
    )
    means = "; ".join(
        f"{aer(direction.mean('norms', place))} by norms, {aer(direction.mean('weights', place))} by weights ({rows})"
        for place, rows in ROWS.items()
    )
    return (
        f"{lead}, the best layer by norms ({norms.name}) has an error of {aer(norms.aer)}, the best by weights "
        f"({weights.name}) {aer(weights.aer)}: {_better('norms', norms, 'weights', weights)}. "
        f"Mean of all layers: {means}."
    )


def _largest(direction: Direction, lead: str) -> str:
    layer, best = direction.largest_norm, direction.best("norms", "input")
    here, there = (direction.aer("norms", position, layer) for position in ROWS)
    above = here - direction.tallies[best].total.aer
    judged = (
        "no layer does better there"
        if above < SAME
        else f"{100 * above:.1f} points above the best layer there, layer {best.layer}"
    )
    return (
        f"{lead}, the layer of the largest mean norm, which is known without gold, is layer {layer}: {aer(here)} under "
        f"AWI ({judged}), {aer(there)} under AWO."
    )


def _better(first: str, one: Method, second: str, other: Method) -> str:
    """Which of two has the lower error, by how much, and whether chance could explain it."""
    if _alike(one, other):
        return f"{first} and {second} do equally well"
    return f"{first if one.aer < other.aer else second} do better by {_points(one, other)}, {_verdict(one, other)}"


def _verdict(one: Method, other: Method) -> str:
    """The result of the paired test of two aligners."""
    if one.tally is None or other.tally is None:
        return "for which there is no test"
    test = compare(one.tally, other.tally)
    p = "p < 0.001" if test.p < 0.001 else f"p = {test.p:.3f}"
    judged = "more than chance explains" if test.p < CHANCE else "which chance alone could explain"
    return f"{judged} (paired test, {p})"


def _points(one: Method, other: Method) -> str:
    return f"{100 * abs(one.aer - other.aer):.1f} points"


def _alike(one: Method, other: Method) -> bool:
    return abs(one.aer - other.aer) < SAME


def _placed(reading: Reading) -> str:
    return f"layer {reading.layer}, {ROWS[reading.position]}"
