"""Figures of categories: what they draw and give layer by layer, and head by head.

Room: results to pictures. Compare Figures 3, 4, 10, 11 and 12 of the 2020 paper.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from normlens.reports.numbers import listing, number, percent
from normlens.reports.pictures.canvas import Picture
from normlens.reports.pictures.grid import Grid, hatched, side_by_side, top_of
from normlens.reports.pictures.paint import legend, looks
from normlens.reports.shares import mean_over, norm_shares, present, weight_shares
from normlens.reports.words.naming import noun
from normlens.studies.results import Categories
from normlens.views.plots.paint import NORM, WEIGHT, label, steps
from normlens.views.plots.style import WIDTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def categories(found: Categories) -> list[Picture]:
    """Lines over layers, then two maps for each category."""
    there = present(found)
    if not there:
        return []
    maps = there if found.weights[0].size > 1 else []  # one head needs no map
    return [_by_layer(found, there), *(_by_head(found, index) for index in maps)]


def _by_layer(found: Categories, there: list[int]) -> Picture:
    weights, shares = mean_over(weight_shares(found)), mean_over(norm_shares(found))
    said = [f"{noun(found.names[c])} {percent(weights[c])} of α and {percent(shares[c])} of ‖αf(x)‖" for c in there]
    return Picture(
        name=f"categories_{found.kind}",
        caption="Left, the weight α that the tokens of each category draw together: the lines of a layer add up to 1. "
        "Right, what they give, ‖αf(x)‖, which has no fixed sum. Both are totals of a category, not means per token.",
        alt=f"Two panels of lines over layers. Means over the layers: {listing(said)}.",
        draw=lambda: _lines(found, there),
    )


def _by_head(found: Categories, index: int) -> Picture:
    weight, length = found.weights[index], found.transformed[index]
    name = noun(found.names[index])
    top = top_of(found.transformed)
    return Picture(
        name=f"heads_{found.kind}_{index}_{_slug(found.names[index])}".rstrip("_"),
        caption=f"{name}, head by head. Left, the weight α its tokens draw together (scale of this map: 0 to "
        f"{number(top_of(weight))}); right, the mean ‖f(x)‖ of its tokens (the same scale for every category: 0 to "
        f"{number(top)}). Where one is dark and the other pale they cancel.{hatched(weight)}",
        alt=f"Two maps, layer by head, for {name}: α, mean {number(_mean(weight))}, and ‖f(x)‖, mean "
        f"{number(_mean(length))}, largest {number(top_of(length))}.",
        draw=lambda: side_by_side(
            (
                Grid(f"{label(found.names[index], 18)}: α drawn", weight, WEIGHT, top_of(weight)),
                Grid(f"{label(found.names[index], 18)}: ‖f(x)‖", length, NORM, top),
            ),
            found.layers,
        ),
    )


def _lines(found: Categories, there: list[int]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 2.75), layout="constrained")
    left, right = figure.subplots(1, 2)
    panels = (
        (left, weight_shares(found), "α, sum per category"),
        (right, mean_over(found.norms), "‖αf(x)‖, sum per category"),
    )
    count = len(found.layers)
    named = steps(count, 2.7, 0.18)
    every = max(1, -(-count // 16))
    for axes, values, title in panels:
        for index in there:
            look = looks(found.names)[index]
            axes.plot(
                range(count),
                values[index],
                color=look.colour,
                linestyle=look.dash,
                marker=look.mark,
                markevery=every,
                markersize=4,
            )
        axes.set_title(title)
        axes.set_xlabel("layer")
        axes.set_xticks(named, [str(found.layers[place]) for place in named])
        axes.set_ylim(bottom=0)
        axes.margins(x=0.04)
        axes.grid(axis="y", color="#e8e8e8", linewidth=0.6)
        axes.set_axisbelow(True)
    left.set_ylim(0, 1)
    legend(figure, [found.names[index] for index in there], [looks(found.names)[index] for index in there], lines=True)
    return figure


def _mean(values: np.ndarray) -> float:
    return float(mean_over(values.reshape(-1)))


def _slug(name: str) -> str:
    """A name as part of a file's name: its plain letters and digits."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:24]
