"""Figure of a sample of pairs: α against ‖f(x)‖.

Room: results to pictures. Compare Figure 5 of the 2020 paper.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normlens.reports.numbers import count, number, percent
from normlens.reports.pictures.canvas import Picture
from normlens.reports.pictures.paint import logarithmic, looks
from normlens.reports.pictures.panels import name_axes, panels
from normlens.studies.results import Correlation
from normlens.views.plots.paint import PALE, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def scatter(found: Correlation) -> list[Picture]:
    """One panel per category; nothing when no pair was drawn."""
    there = [index for index in range(len(found.names)) if (found.sample_category == index).any()]
    if not there:
        return []
    floor = _floor(found)
    below = float((found.sample_weight < floor).mean())
    edge = f" Weights below the axis ({percent(below)}) stand at its left end." if below > 0 else ""
    points = len(found.sample_weight)
    pairs = int(found.pairs.sum())
    which = "all there are" if points >= pairs else f"drawn at random from {count(pairs)} in all heads and layers"
    return [
        Picture(
            name=f"scatter_{found.kind}",
            caption=f"α (logarithmic) against ‖f(x)‖, {count(points)} pairs, {which}. One panel per category, the "
            f"other categories pale behind it.{edge}",
            alt=f"One panel per category, {count(points)} points, α from {number(found.sample_weight.min(), 1)} to "
            f"{number(found.sample_weight.max(), 2)}, ‖f(x)‖ from {number(found.sample_norm.min(), 2)} to "
            f"{number(found.sample_norm.max(), 2)}.",
            draw=lambda: _clouds(found, there, floor),
        )
    ]


def _clouds(found: Correlation, there: list[int], floor: float) -> Figure:
    figure, places = panels(len(there))
    weight = np.maximum(found.sample_weight, floor)
    small = 1.2 if len(weight) < 5000 else 0.7
    for axes, index in zip(places, there, strict=True):
        own = found.sample_category == index
        for which, colour, size in ((~own, PALE, 0.7 * small), (own, looks(found.names)[index].colour, small)):
            axes.plot(
                weight[which],
                found.sample_norm[which],
                linestyle="",
                marker="o",
                markersize=2 * size,
                markeredgewidth=0,
                color=colour,
                alpha=0.7,
                rasterized=True,
            )
        axes.set_title(label(found.names[index], 20))
        axes.set_xlim(0.8 * floor, 1.25)
        logarithmic(axes, "x", labels=4)
        axes.set_ylim(0, 1.05 * max(float(found.sample_norm.max()), 1e-9))
    name_axes(places, "α (log)", "‖f(x)‖")
    return figure


def _floor(found: Correlation) -> float:
    """A power of ten that leaves out at most one weight in two hundred, and every weight of 0."""
    seen = found.sample_weight[found.sample_weight > 0]
    low = float(np.quantile(seen, 0.005)) if seen.size else 1e-3
    return 10.0 ** min(max(math.floor(math.log10(low)), -8), -2)
