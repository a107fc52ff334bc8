"""Dots over places, with a bar at the median of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normlens.exhibits.figures import Strip
from normlens.exhibits.plots.paint import style_of
from normlens.exhibits.plots.panels import ACROSS, name_axes, panels
from normlens.views import INK, label, steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(strip: Strip) -> Figure:
    """One panel per group, all with the same axes."""
    figure, places = panels(len(strip.panels))
    count, dots = strip.panels[0].values.shape
    offset = np.linspace(-0.28, 0.28, dots) if dots > 1 else np.zeros(1)
    named = steps(count, 6.0 / min(len(strip.panels), ACROSS) - 0.2, 0.2)
    names = strip.names or tuple(panel.title for panel in strip.panels)
    for axes, panel in zip(places, strip.panels, strict=True):
        style, values = style_of(panel.title, names), panel.values
        axes.axhline(0, color="#888888", linewidth=0.7)
        axes.plot(
            (np.arange(count)[:, None] + offset).reshape(-1),
            values.reshape(-1),
            linestyle="",
            marker=style.mark,
            color=style.colour,
            markersize=3.2 if values.size < 100 else 2.4 if values.size < 600 else 1.4,
            markeredgewidth=0,
            rasterized=values.size > 1000,
        )
        filled = np.flatnonzero(np.isfinite(values).any(axis=1))
        axes.hlines([np.nanmedian(values[row]) for row in filled], filled - 0.38, filled + 0.38, color=INK, linewidth=1)
        if panel.line is not None:
            axes.axhline(panel.line, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
            axes.text(0.02, 0.98, panel.label, transform=axes.transAxes, va="top", fontsize=8)
        axes.set_title(label(panel.title, 20))
        if strip.limits is not None:
            axes.set_ylim(*strip.limits)
        axes.set_xlim(-0.7, count - 0.3)
        axes.set_xticks(named, [strip.ticks[place] for place in named])
    name_axes(places, strip.x, strip.y)
    return figure
