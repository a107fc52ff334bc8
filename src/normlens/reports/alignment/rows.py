"""The numbers of the report as tables: rows of plain values, errors in percent.

Room: scores to rows. No formatting: what is not defined is None.
"""

from __future__ import annotations

from collections.abc import Sequence

from normlens.alignment.soft import ROWS
from normlens.alignment.table import Compared
from normlens.reports.alignment.scores import MEASURES, Scored, directions, head_errors
from normlens.reports.rows.row import Row, plain


def tables(compared: Compared, scores: Sequence[Scored]) -> dict[str, list[Row]]:
    """Every table by its name."""
    return {"methods": [_method(one) for one in scores], "layers": _layers(compared), "heads": _heads(compared)}


def _method(one: Scored) -> Row:
    total = None if one.method.tally is None else one.method.tally.total
    return {
        "group": one.method.group,
        "name": one.method.name,
        "aer": plain(100 * one.method.aer),
        "aer_low": None if one.interval is None else plain(100 * one.interval.low),
        "aer_high": None if one.interval is None else plain(100 * one.interval.high),
        "precision": None if total is None else plain(100 * total.precision),
        "recall": None if total is None else plain(100 * total.recall),
        "links": None if total is None else total.links,
        "needs_gold": "yes" if one.method.needs_gold else "no",
        "best_of_group": "yes" if one.best else "no",
    }


def _layers(compared: Compared) -> list[Row]:
    return [
        {
            "direction": name,
            "model": found.name,
            "measure": measure,
            "rows": rows,
            "layer": layer,
            "aer": plain(100 * found.aer(measure, position, layer)),
        }
        for name, found in directions(compared).items()
        for position, rows in ROWS.items()
        for measure in MEASURES
        for layer in found.layers
    ]


def _heads(compared: Compared) -> list[Row]:
    rows: list[Row] = []
    for name, found in directions(compared).items():
        for position, label in ROWS.items():
            weights, norms = (100 * head_errors(found, position, measure) for measure in MEASURES)
            for place, layer in enumerate(found.layers):
                rows += [
                    {
                        "direction": name,
                        "rows": label,
                        "layer": layer,
                        "head": head,
                        "aer_weights": plain(weights[place, head]),
                        "aer_norms": plain(norms[place, head]),
                        "mean_norm": plain(found.norms[place, head]),
                    }
                    for head in range(found.norms.shape[1])
                ]
    return rows
