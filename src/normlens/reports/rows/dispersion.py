"""Tables of lengths: Tables 1 and 4 of the 2020 paper, every head, every layer, and singular values.

Room: results to rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from normlens.reports.numbers import head_name
from normlens.reports.rows.row import Row, plain
from normlens.reports.shares import drawn_heads, extremes, mean_over, stretch
from normlens.studies.results import Dispersion, Spread


def dispersion(found: Dispersion) -> dict[str, list[Row]]:
    """The heads of largest and smallest CV and the average over heads; the same for ‖x‖; then everything."""
    heads = int(np.isfinite(found.transformed.mean).sum())
    tables = {"dispersion": _ends(found.transformed, lambda at: head_name(found.layers[at[0]], at[1]), "head", heads)}
    if found.inputs is not None:
        layers = int(np.isfinite(found.inputs.mean).sum())
        tables["inputs"] = _ends(found.inputs, lambda at: f"L{found.layers[at[0]]}", "layer", layers)
    singular = _singular(found)
    if singular:
        tables["singular"] = [row for row in singular if row["drawn"] == "yes"]
    tables["dispersion_heads"] = [
        {"layer": found.layers[at[0]], "head": at[1], **_spread(found.transformed, at)}
        for at in np.ndindex(found.transformed.mean.shape)
        if np.isfinite(found.transformed.mean[at])
    ]
    if found.inputs is not None:
        tables["inputs_layers"] = [
            {"layer": layer, **_spread(found.inputs, (row,))} for row, layer in enumerate(found.layers)
        ]
    if singular:
        tables["singular_heads"] = singular
        tables["singular_values"] = _values(found)
    return tables


def _ends(spread: Spread, name: Callable[[tuple[int, ...]], str], unit: str, many: int) -> list[Row]:
    """The average is the mean of the means, of the deviations and of the CVs; a largest of largest would mislead."""
    rows: list[Row] = []
    ends = extremes(spread.variation)
    if ends is not None and many > 1:
        for what, at in zip(("largest CV", "smallest CV"), ends, strict=True):
            rows.append({"row": what, "where": name(at), **_spread(spread, at)})
    if many == 1 and ends is not None:
        return [{"row": f"the only {unit}", "where": name(ends[0]), **_spread(spread, ends[0])}]
    average = {
        key: plain(mean_over(getattr(spread, key).astype(float).reshape(-1)))
        for key in ("mean", "deviation", "variation")
    }
    return [
        *rows,
        {"row": "average", "where": f"{many:,} {unit}s", **average, "high": None, "low": None, "count": None},
    ]


def _spread(spread: Spread, at: tuple[int, ...]) -> Row:
    numbers = {key: plain(getattr(spread, key)[at]) for key in ("mean", "deviation", "variation", "high", "low")}
    return {**numbers, "count": int(spread.count[at])}


def _singular(found: Dispersion) -> list[Row]:
    """Every head: the ends of its singular values and their ratio; `drawn` says which one the figure shows."""
    if found.singular is None:
        return []
    rows: list[Row] = []
    drawn = set(drawn_heads(found))
    for row, head in np.ndindex(found.singular.shape[:2]):
        high, low, ratio = stretch(found.singular[row, head])
        if np.isfinite(ratio):
            rows.append(
                {
                    "where": head_name(found.layers[row], head),
                    "layer": found.layers[row],
                    "head": head,
                    "largest": plain(high),
                    "smallest": plain(low),
                    "ratio": plain(ratio),
                    "drawn": "yes" if (row, head) in drawn else "no",
                }
            )
    return rows


def _values(found: Dispersion) -> list[Row]:
    """The curves of the figure."""
    assert found.singular is not None
    return [
        {"layer": found.layers[row], "head": head, "index": index, "value": plain(value)}
        for row, head in drawn_heads(found)
        for index, value in enumerate(found.singular[row, head], start=1)
        if np.isfinite(value)
    ]
