"""What was found, in sentences that follow from the numbers.

Room: scores to words. Every sentence is a branch on its own numbers; where there is nothing to say there is none.
"""

from __future__ import annotations

from normlens.alignment.method import Method
from normlens.alignment.soft import ROWS
from normlens.alignment.study import Direction
from normlens.alignment.table import Compared
from normlens.reports.alignment.scores import best_layer, directions, groups, lowest
from normlens.reports.alignment.telling import (
    SAME,
    WAYS,
    aer,
    alike,
    better,
    names,
    placed,
    points,
    verdict,
)
from normlens.reports.numbers import listing


def sentences(compared: Compared) -> list[str]:
    """All of them, in reading order."""
    both = len(directions(compared)) > 1
    found = []
    for name, direction in directions(compared).items():
        lead = f"{WAYS[name].capitalize()} alone" if both else "In one direction"
        found += [_weights_or_norms(direction, lead), _largest(direction, lead)]
    return [*_winner(compared), *found, *_both(compared), *_unaided(compared)]


def _weights_or_norms(found: Direction, lead: str) -> str:
    norms, weights = (
        Method.of("one direction", placed(reading), found.tallies[reading])
        for reading in (best_layer(found, "norms"), best_layer(found, "weights"))
    )
    means = "; ".join(
        f"{aer(found.mean('norms', position))} by norms, {aer(found.mean('weights', position))} by weights ({rows})"
        for position, rows in ROWS.items()
    )
    return (
        f"{lead}, the best layer by norms ({norms.name}) has an error of {aer(norms.aer)}, the best by weights "
        f"({weights.name}) {aer(weights.aer)}: {better('norms', norms, 'weights', weights)}. "
        f"Mean of all layers: {means}."
    )


def _largest(found: Direction, lead: str) -> str:
    layer, best = found.largest_norm, found.best("norms", "input")
    here, there = (found.aer("norms", position, layer) for position in ROWS)
    above = here - found.tallies[best].total.aer
    judged = (
        "no layer does better there"
        if above < SAME
        else f"{100 * above:.1f} points above the best layer there, layer {best.layer}"
    )
    return (
        f"{lead}, the layer of largest mean norm, which is found without gold, is layer {layer}: {aer(here)} under AWI "
        f"({judged}), {aer(there)} under AWO."
    )


def _both(compared: Compared) -> list[str]:
    merged, alone = (lowest(compared.methods, group) for group in ("both directions", "one direction"))
    if not merged or not alone:
        return []
    one, other = merged[0], alone[0]
    if alike(one, other):
        told = f"as good as the best of one direction, {names([other])}"
    else:
        side = "below" if one.aer < other.aer else "above"
        told = f"{points(one, other)} {side} the best of one direction, {names([other])}, {verdict(one, other)}"
    said = [f"With both directions together the lowest error is {aer(one.aer)} ({names(merged)}): {told}."]
    maps = {one.name.split(",")[0]: one for one in compared.methods if one.name.endswith(", maps multiplied")}
    if maps.keys() == {"norms", "weights"}:
        norms, weights = maps["norms"], maps["weights"]
        said.append(
            f"With the maps of both directions multiplied, norms have {aer(norms.aer)} and weights {aer(weights.aer)}: "
            f"{better('norms', norms, 'weights', weights)}."
        )
    return said


def _unaided(compared: Compared) -> list[str]:
    method, plan = compared.chosen, compared.plan
    layers = listing([way.where for way in (plan.forward, plan.backward) if way is not None])
    first = lowest(compared.methods)[0]
    rest = "no row of the table does better" if method.aer - first.aer < SAME else f"the best row has {aer(first.aer)}"
    return [f"Without gold, align reads {layers}: {plan.forward.why}. This has {aer(method.aer)}; {rest}."]


def _winner(compared: Compared) -> list[str]:
    first = lowest(compared.methods)
    if not first:
        return []
    winner, won = first[0], {one.group for one in first}
    others = [
        f"{names([rival])} ({group}) has {aer(rival.aer)}, {points(winner, rival)} more, {verdict(winner, rival)}"
        for group in groups(compared)
        if group not in won
        for rival in lowest(compared.methods, group)[:1]
    ]
    told = f"The lowest error of all is {aer(winner.aer)}: {names(first)} ({listing(sorted(won))})."
    free = lowest(one for one in compared.methods if not one.needs_gold)
    if winner.needs_gold and free:
        told += " Its layer or head was chosen with the gold; of those that need none, "
        told += f"{names(free)} has {aer(free[0].aer)}."
    return [told + (f" The best of each other group: {'; '.join(others)}." if others else "")]
