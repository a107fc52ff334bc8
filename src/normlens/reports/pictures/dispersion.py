"""Figures of lengths: mean and CV of ‖f(x)‖ in every head, and the singular values of f.

Room: results to pictures. Compare Table 1 and Figure 9 of the 2020 paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normlens.reports.numbers import count, head_name, number
from normlens.reports.pictures.canvas import Picture
from normlens.reports.pictures.grid import Grid, hatched, side_by_side, top_of
from normlens.reports.shares import drawn_heads, extremes, stretch
from normlens.studies.results import Dispersion
from normlens.views.plots.paint import NORM, ramp
from normlens.views.plots.style import WIDTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GREY = ("#f7f7f7", "#d9d9d9", "#969696", "#525252", "#111111")
NAMED = 16  # up to so many curves are named one by one; more get a scale of layers
_DASHES = ("-", "--", "-.", ":")


def dispersion(found: Dispersion) -> list[Picture]:
    """The maps of every head, and one curve of singular values per layer."""
    pictures = []
    ends = extremes(found.transformed.variation)
    if ends is not None and found.transformed.mean.size > 1:
        high, low = (
            f"{number(float(found.transformed.variation[at]), 2)} in {head_name(found.layers[at[0]], at[1])}"
            for at in ends
        )
        pictures.append(
            Picture(
                name=f"dispersion_{found.kind}",
                caption="Each cell is a head. Left, the mean of ‖f(x)‖ over all tokens; right, its coefficient of "
                "variation (CV), the standard deviation as a part of the mean." + hatched(found.transformed.mean),
                alt=f"Two maps, layer by head: mean of ‖f(x)‖, up to {number(top_of(found.transformed.mean))}, and its "
                f"coefficient of variation, from {low} to {high}.",
                draw=lambda: _maps(found),
            )
        )
    chosen = drawn_heads(found)
    ratios = [stretch(found.singular[at])[2] for at in chosen] if found.singular is not None else []
    if ratios and np.isfinite(ratios).any():
        pictures.append(
            Picture(
                name=f"singular_{found.kind}",
                caption="Singular values of f as a linear map, largest first: how much it stretches each direction. "
                "One curve per layer, of its head of median CV; a flat curve would treat all directions alike.",
                alt=f"{count(len(chosen))} falling curves, one per layer; the largest value is "
                f"{number(float(np.nanmin(ratios)), 2)} to {number(float(np.nanmax(ratios)), 2)} times the smallest.",
                draw=lambda: _curves(found, chosen),
            )
        )
    return pictures


def _maps(found: Dispersion) -> Figure:
    mean, variation = found.transformed.mean, found.transformed.variation
    left = Grid("mean of ‖f(x)‖", mean, NORM, top_of(mean))
    return side_by_side((left, Grid("CV of ‖f(x)‖", variation, GREY, top_of(variation))), found.layers)


def _curves(found: Dispersion, chosen: list[tuple[int, int]]) -> Figure:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    assert found.singular is not None
    figure = Figure(figsize=(WIDTH, 2.9), layout="constrained")
    axes = figure.subplots()
    colours = ramp(NORM[2:])
    scale = Normalize(min(found.layers) - (len(found.layers) == 1), max(found.layers))
    for place, (row, head) in enumerate(chosen):
        values = found.singular[row, head]
        values = values[np.isfinite(values)]
        axes.plot(
            np.arange(1, len(values) + 1),
            values,
            color=colours(scale(found.layers[row])),
            linestyle=_DASHES[place % len(_DASHES)],
            linewidth=1.2,
            marker="o" if len(values) < 3 else None,
            label=head_name(found.layers[row], head),
        )
    axes.set_xlabel("singular value, largest first")
    axes.set_ylabel("size")
    axes.set_ylim(bottom=0)
    if len(chosen) <= NAMED:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="layer and head", handlelength=2.6)
    else:
        figure.colorbar(ScalarMappable(scale, colours), ax=axes, label="layer", pad=0.02)
    return figure
