"""The tables of a comparison. Errors are in percent."""

from __future__ import annotations

import numpy as np

from normlens.alignment.compared import MEASURES, Compared, Method
from normlens.alignment.maps import ROWS
from normlens.alignment.report.paper import LATER, SEEDS, SOURCE, TABLE_3
from normlens.alignment.report.sentences import ARROWS
from normlens.alignment.resample import Interval, bootstrap
from normlens.exhibits import DASH, Column, Row, Table, plain

GOLD = "†"  # marks an aligner whose layer or head was chosen with the gold
DIRECTION = Column("direction", "direction", "text", lambda row: ARROWS[str(row["direction"])])


def methods_table(compared: Compared, samples: int) -> Table:
    """Every aligner by group, with an interval of so many resamples."""
    return Table(
        "methods",
        f"Every aligner; in bold the lowest error of its group; {GOLD} its layer or head was chosen with the gold",
        [_method(method, compared, samples) for method in compared.methods],
        (
            Column("name", "", "text", _marked),
            Column("aer", "AER %", "decimal"),
            Column("aer_low", "95 % interval", "decimal", _interval),
            Column("precision", "precision %", "decimal"),
            Column("recall", "recall %", "decimal"),
            Column("links", "links", "count"),
        ),
        group="group",
        strong="best_of_group",
    )


def layers_table(compared: Compared) -> Table:
    rows: list[Row] = [
        {
            "direction": name,
            "model": direction.name,
            "measure": measure,
            "rows": label,
            "layer": layer,
            "aer": plain(100 * direction.aer(measure, position, layer)),
        }
        for name, direction in compared.directions.items()
        for position, label in ROWS.items()
        for measure in MEASURES
        for layer in direction.layers
    ]
    columns = (
        DIRECTION,
        Column("rows", "rows", "text"),
        Column("measure", "measure", "text"),
        Column("layer", "layer", "count"),
        Column("aer", "AER %", "decimal"),
    )
    return Table("layers", "AER in % of every layer", rows, columns, folded=True)


def heads_table(compared: Compared) -> Table:
    rows: list[Row] = []
    for name, direction in compared.directions.items():
        for position, label in ROWS.items():
            weights, norms = (100 * direction.head_errors(position, measure) for measure in MEASURES)
            rows += [
                {
                    "direction": name,
                    "rows": label,
                    "layer": layer,
                    "head": head,
                    "aer_weights": plain(weights[place, head]),
                    "aer_norms": plain(norms[place, head]),
                    "mean_norm": plain(direction.norms[place, head]),
                }
                for place, layer in enumerate(direction.layers)
                for head in range(direction.norms.shape[1])
            ]
    columns = (
        DIRECTION,
        Column("rows", "rows", "text"),
        Column("layer", "head", "text", lambda row: f"L{row['layer']}H{row['head']}"),
        Column("aer_weights", "AER % by weights", "decimal"),
        Column("aer_norms", "AER % by norms", "decimal"),
        Column("mean_norm", "mean norm"),
    )
    return Table("heads", "AER in % and mean norm of every head", rows, columns, folded=True)


def paper_tables(compared: Compared) -> list[Table]:
    """The published numbers, those of the first model here beside them."""
    direction = compared.forward
    rows: list[Row] = []
    for position, label in ROWS.items():
        there, layer = SEEDS[label], direction.largest_norm
        best = [100 * direction.tallies[direction.best(measure, position)].total.aer for measure in MEASURES]
        mean = [100 * direction.mean(measure, position) for measure in MEASURES]
        norm, rho = 100 * direction.aer("norms", position, layer), direction.norm_rho(position)
        for what, weights, norms, here_weights, here_norms in (
            (there.best.what, there.best.weights, there.best.norms, *best),
            (there.mean.what, there.mean.weights, there.mean.norms, *mean),
            ("layer of largest mean norm", None, there.largest, None, norm),
            ("ρ of head error and mean norm", None, there.rho, None, rho),
        ):
            numbers: Row = {
                "paper_weights": weights,
                "paper_norms": norms,
                "here_weights": None if here_weights is None else plain(here_weights),
                "here_norms": plain(here_norms),
            }
            rows.append({"rows": label, "what": what, **numbers})
    columns = (
        Column("what", "", "text"),
        *(
            Column(name, name.replace("_", ": "), "decimal", lambda row, name=name: _paper_cell(row, name))
            for name in ("paper_weights", "paper_norms", "here_weights", "here_norms")
        ),
    )
    printed: list[Row] = [{"what": what, "aer": error} for what, error in TABLE_3]
    return [
        Table("paper", f"AER in %, the paper ({LATER}) and {direction.name} here", rows, columns, group="rows"),
        Table(
            "paper_table_3",
            f"AER in %, {SOURCE}",
            printed,
            (Column("what", "", "text"), Column("aer", "AER %", "decimal")),
        ),
    ]


def _method(method: Method, compared: Compared, samples: int) -> Row:
    total = None if method.tally is None else method.tally.total
    interval = _resampled(method, samples)
    return {
        "group": method.group,
        "name": method.name,
        "aer": plain(100 * method.aer),
        "aer_low": None if interval is None else plain(100 * interval.low),
        "aer_high": None if interval is None else plain(100 * interval.high),
        "precision": None if total is None else plain(100 * total.precision),
        "recall": None if total is None else plain(100 * total.recall),
        "links": None if total is None else total.links,
        "needs_gold": "yes" if method.needs_gold else "no",
        "best_of_group": "yes" if any(method is best for best in compared.lowest(method.group)) else "no",
    }


def _resampled(method: Method, samples: int) -> Interval | None:
    """None where there are no counts, or some resample had nothing to score."""
    if method.tally is None:
        return None
    interval = bootstrap(method.tally, samples=samples).aer
    return interval if np.isfinite(interval.low) else None


def _marked(row: Row) -> str:
    return f"{row['name']} {GOLD}" if row["needs_gold"] == "yes" else str(row["name"])


def _interval(row: Row) -> str:
    return DASH if row["aer_low"] is None else f"{row['aer_low']:.1f} to {row['aer_high']:.1f}"


def _paper_cell(row: Row, name: str) -> str:
    """An error with one decimal, ρ with two."""
    column = Column(name, "", "rho" if str(row["what"]).startswith("ρ") else "decimal")
    return column.written(row)
