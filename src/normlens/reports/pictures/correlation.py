"""Figures of α against ‖f(x)‖: ρ in every head, then a sample of pairs.

Room: results to pictures. Compare Table 2 of the 2020 paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normlens.reports.numbers import correlation as rho_said
from normlens.reports.numbers import listing
from normlens.reports.pictures.canvas import Picture
from normlens.reports.pictures.paint import looks
from normlens.reports.pictures.panels import ACROSS, name_axes, panels
from normlens.reports.pictures.scatter import scatter
from normlens.reports.words.naming import noun
from normlens.studies.results import Correlation
from normlens.views.plots.paint import INK, label, steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def correlation(found: Correlation) -> list[Picture]:
    """One strip of heads per category, then the scatter plot."""
    return [*_strips(found), *scatter(found)]


def _strips(found: Correlation) -> list[Picture]:
    there = [index for index in range(len(found.names)) if np.isfinite(found.rho_heads[index]).any()]
    if not there or found.rho_heads[0].size < 2:  # one head needs no strip
        return []
    heads = found.rho_heads[there]
    said = [
        f"{noun(found.names[index])} median {rho_said(float(np.nanmedian(found.rho_heads[index])))}" for index in there
    ]
    return [
        Picture(
            name=f"correlation_heads_{found.kind}",
            caption="Spearman’s ρ between α and ‖f(x)‖ within each head. A dot is a head, a bar the median of its "
            "layer, the dashed line ρ with all heads pooled. Below 0 the two work against each other.",
            alt=f"One panel per category, dots over layers, ρ from {rho_said(float(np.nanmin(heads)))} to "
            f"{rho_said(float(np.nanmax(heads)))}: {listing(said)}.",
            draw=lambda: _dots(found, there),
        )
    ]


def _dots(found: Correlation, there: list[int]) -> Figure:
    figure, places = panels(len(there))
    layers, heads = found.rho_heads.shape[1:]
    offset = np.linspace(-0.28, 0.28, heads) if heads > 1 else np.zeros(1)
    named = steps(layers, 6.0 / min(len(there), ACROSS) - 0.2, 0.2)
    for axes, index in zip(places, there, strict=True):
        look, values = looks(found.names)[index], found.rho_heads[index]
        axes.axhline(0, color="#888888", linewidth=0.7)
        axes.plot(
            (np.arange(layers)[:, None] + offset).reshape(-1),
            values.reshape(-1),
            linestyle="",
            marker=look.mark,
            color=look.colour,
            markersize=3.2 if values.size < 100 else 2.4 if values.size < 600 else 1.4,
            markeredgewidth=0,
            rasterized=values.size > 1000,
        )
        filled = np.flatnonzero(np.isfinite(values).any(axis=1))
        axes.hlines([np.nanmedian(values[row]) for row in filled], filled - 0.38, filled + 0.38, color=INK, linewidth=1)
        if np.isfinite(found.rho[index]):
            axes.axhline(float(found.rho[index]), color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
            axes.text(
                0.02, 0.98, f"pooled {rho_said(found.rho[index])}", transform=axes.transAxes, va="top", fontsize=8
            )
        axes.set_title(label(found.names[index], 20))
        axes.set_ylim(-1.03, 1.03)
        axes.set_xlim(-0.7, layers - 0.3)
        axes.set_xticks(named, [str(found.layers[place]) for place in named])
    name_axes(places, "layer", "ρ of α and ‖f(x)‖")
    return figure
