"""The tables of the comparison as parts of the page.

Room: scores to HTML.
"""

from __future__ import annotations

from collections.abc import Sequence

from normlens.alignment.soft import ROWS
from normlens.alignment.study import Direction
from normlens.alignment.table import Compared
from normlens.reports.alignment.paper import LATER, SEEDS, SOURCE, TABLE_3
from normlens.reports.alignment.parts import Line, files, table
from normlens.reports.alignment.scores import (
    MEASURES,
    Scored,
    directions,
    groups,
    head_errors,
    rank_correlation,
)
from normlens.reports.alignment.telling import GOLD, WAYS
from normlens.reports.exhibits import Numbering
from normlens.reports.numbers import DASH, correlation, count, head_name, number


def methods(compared: Compared, scores: Sequence[Scored], numbering: Numbering) -> str:
    """Table 3: every aligner by group."""
    lines: list[Line] = []
    for group in groups(compared):
        lines.append(("group", [group.capitalize()]))
        lines += [("best" if one.best else "", _method(one)) for one in scores if one.method.group == group]
    headings = ["", "AER %", "95 % interval", "precision %", "recall %", "links"]
    title = f"Every aligner; in bold the lowest error of its group; {GOLD} its layer or head was chosen with the gold"
    return table(title, headings, lines, numbering) + files("methods")


def layers(compared: Compared, numbering: Numbering) -> str:
    """AER of every layer."""
    made = []
    for name, found in directions(compared).items():
        lines = [
            ("", [f"{measure}, {rows}", *(_percent(found.aer(measure, position, layer)) for layer in found.layers)])
            for position, rows in ROWS.items()
            for measure in MEASURES
        ]
        title = f"AER in % of every layer, {WAYS[name]}"
        made.append(table(title, ["", *(f"L{layer}" for layer in found.layers)], lines, numbering, folded=True))
    return "".join(made) + files("layers")


def heads(compared: Compared, numbering: Numbering) -> str:
    """AER and mean norm of every head."""
    headings = ["head", *(f"{measure}, {rows}" for rows in ROWS.values() for measure in MEASURES), "mean norm"]
    made = [
        table(f"AER in % and mean norm of every head, {WAYS[name]}", headings, _heads(found), numbering, folded=True)
        for name, found in directions(compared).items()
    ]
    return "".join(made) + files("heads")


def paper(compared: Compared, numbering: Numbering) -> str:
    """The printed numbers, those of the first model beside."""
    found = compared.forward
    lines: list[Line] = []
    for position, rows in ROWS.items():
        there = SEEDS[rows]
        lines.append(("group", [rows]))
        for printed, here in (
            (there.best, [found.tallies[found.best(measure, position)].total.aer for measure in MEASURES]),
            (there.mean, [found.mean(measure, position) for measure in MEASURES]),
        ):
            lines.append(
                ("", [printed.what, f"{printed.weights:.1f}", f"{printed.norms:.1f}", *(_percent(one) for one in here)])
            )
        largest = found.aer("norms", position, found.largest_norm)
        lines.append(("", ["layer of largest mean norm", DASH, f"{there.largest:.1f}", DASH, _percent(largest)]))
        rho = rank_correlation(found, position)
        lines.append(("", ["ρ of head error and mean norm", DASH, correlation(there.rho), DASH, correlation(rho)]))
    headings = ["", "paper: weights", "paper: norms", "here: weights", "here: norms"]
    later = table(f"AER in %, the paper ({LATER}) and {found.name} here", headings, lines, numbering)
    first: list[Line] = [("", [name, f"{error:.1f}"]) for name, error in TABLE_3]
    return later + table(f"AER in %, {SOURCE}", ["", "AER %"], first, numbering)


def _method(one: Scored) -> list[str]:
    total = None if one.method.tally is None else one.method.tally.total
    interval = DASH if one.interval is None else f"{100 * one.interval.low:.1f} to {100 * one.interval.high:.1f}"
    return [
        f"{one.method.name} {GOLD}" if one.method.needs_gold else one.method.name,
        _percent(one.method.aer),
        interval,
        *(
            (DASH, DASH, DASH)
            if total is None
            else (_percent(total.precision), _percent(total.recall), count(total.links))
        ),
    ]


def _heads(found: Direction) -> list[Line]:
    errors = [head_errors(found, position, measure) for position in ROWS for measure in MEASURES]
    return [
        (
            "",
            [
                head_name(layer, head),
                *(_percent(one[place, head]) for one in errors),
                number(float(found.norms[place, head])),
            ],
        )
        for place, layer in enumerate(found.layers)
        for head in range(found.norms.shape[1])
    ]


def _percent(share: float) -> str:
    return DASH if share != share else f"{100 * share:.1f}"
