"""Figure of frequency: rank against α and against ‖f(x)‖.

Room: results to pictures. Compare Figure 6 of the 2020 paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from normlens.reports.numbers import correlation as rho_said
from normlens.reports.numbers import count
from normlens.reports.pictures.canvas import Picture
from normlens.reports.pictures.paint import legend, logarithmic, looks
from normlens.studies.results import Frequency
from normlens.views.plots.paint import INK
from normlens.views.plots.style import WIDTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 20  # of the logarithm of the rank, for the running median
FEW = 5  # fewer points than this have no median worth drawing


def frequency(found: Frequency) -> list[Picture]:
    """Two panels of points with a running median."""
    points = len(found.point_rank)
    if not points:
        return []
    part = "" if points >= found.occurrences else f", {count(points)} of {count(found.occurrences)} drawn at random"
    weights, norms = rho_said(found.rho_weight), rho_said(found.rho_norm)
    return [
        Picture(
            name=f"frequency_{found.kind}",
            caption=f"A point is one occurrence of a token{part}. From left to right tokens get rarer (logarithmic). "
            f"Left, the weight α it draws (logarithmic); right, ‖f(x)‖; both are means over heads and layers. "
            f"The line joins the medians of {STEPS} equal steps of the logarithm of the rank where a step has at least "
            f"{FEW} points{', special tokens left out' if found.point_special.any() else ''}.",
            alt=f"Two panels of {count(points)} points over frequency rank, 1 to {count(int(found.point_rank.max()))}: "
            f"ρ of rank and α is {weights}, ρ of rank and ‖f(x)‖ is {norms}.",
            draw=lambda: _panels(found),
        )
    ]


def _panels(found: Frequency) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 3.1), layout="constrained")
    left, right = figure.subplots(1, 2)
    there = [index for index in range(len(found.names)) if (found.point_category == index).any()]
    order = sorted(there, key=lambda index: -int((found.point_category == index).sum()))  # the few above the many
    small = 2.0 if len(found.point_rank) < 5000 else 1.3
    lowest = found.point_weight[found.point_weight > 0]
    floor = float(lowest.min()) if lowest.size else 1e-6
    panels = (
        (left, np.maximum(found.point_weight, floor), "α", found.rho_weight, found.rho_weight_plain),
        (right, found.point_norm, "‖f(x)‖", found.rho_norm, found.rho_norm_plain),
    )
    for axes, values, symbol, rho, rho_plain in panels:
        for index in order:
            which, look = found.point_category == index, looks(found.names)[index]
            axes.plot(
                found.point_rank[which],
                values[which],
                linestyle="",
                marker=look.mark,
                markersize=small if index == order[0] else small + 1.2,
                markeredgewidth=0,
                color=look.colour,
                alpha=0.6,
                rasterized=True,
            )
        ranks, medians = _running_median(found.point_rank, values, ~found.point_special)
        axes.plot(ranks, medians, color="white", linewidth=3.4)
        axes.plot(ranks, medians, color=INK, linewidth=1.5, marker=".", markersize=4)
        also = f" ({rho_said(rho_plain)} without special tokens)" if found.plain < found.occurrences else ""
        axes.set_title(f"{symbol}, ρ = {rho_said(rho)}{also}")
        logarithmic(axes, "x")
        axes.set_xlabel("frequency rank (log): rarer to the right")
    logarithmic(left, "y")
    left.set_ylabel("mean α drawn (log)")
    right.set_ylabel("mean ‖f(x)‖")
    right.set_ylim(bottom=0)
    legend(figure, [found.names[index] for index in there], [looks(found.names)[index] for index in there], lines=False)
    return figure


def _running_median(
    ranks: Int[np.ndarray, " point"], values: Float[np.ndarray, " point"], kept: Bool[np.ndarray, " point"]
) -> tuple[Float[np.ndarray, " step"], Float[np.ndarray, " step"]]:
    """The median of the kept points in each of equal steps of the logarithm of the rank; a gap where there are few."""
    place = np.log(np.maximum(ranks, 1))
    steps = np.minimum(((place - place.min()) / max(np.ptp(place), 1e-9) * STEPS).astype(int), STEPS - 1)
    middles = np.full((2, STEPS), np.nan)
    for step in range(STEPS):
        group = (steps == step) & kept
        if group.sum() >= FEW:
            middles[:, step] = np.exp(place[group].mean()), np.median(values[group])
    return middles[0], middles[1]
