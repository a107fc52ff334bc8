"""Points: in shared panels, one group each before the others; or in panels of their own over a legend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normlens.exhibits.figures import Cloud, Scatter, ScatterPanel, top_of
from normlens.exhibits.plots.paint import legend, logarithmic, style_of
from normlens.exhibits.plots.panels import name_axes, panels
from normlens.views import INK, PALE, WIDTH, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(scatter: Scatter) -> Figure:
    """Every panel with its clouds, the first cloud behind the others."""
    return _shared(scatter) if scatter.shared else _side_by_side(scatter)


def _shared(scatter: Scatter) -> Figure:
    figure, places = panels(len(scatter.panels))
    top = top_of(np.concatenate([cloud.y for panel in scatter.panels for cloud in panel.clouds]))
    points = sum(cloud.x.size for cloud in scatter.panels[0].clouds)
    for axes, panel in zip(places, scatter.panels, strict=True):
        for cloud in panel.clouds:
            size = 2 * (1.2 if points < 5000 else 0.7)
            colour = PALE if cloud.pale else style_of(cloud.name, scatter.names).colour
            _points(axes, cloud, colour, "o", 0.7 * size if cloud.pale else size, alpha=0.7)
        axes.set_title(label(panel.title, 20))
        if scatter.x_limits is not None:
            axes.set_xlim(*scatter.x_limits)
        if scatter.x_scale == "log":
            logarithmic(axes, "x", labels=4)
        axes.set_ylim(0, 1.05 * top)
    name_axes(places, scatter.x, scatter.panels[0].y)
    return figure


def _side_by_side(scatter: Scatter) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 3.1), layout="constrained")
    places = np.atleast_1d(figure.subplots(1, len(scatter.panels)))
    for axes, panel in zip(places, scatter.panels, strict=True):
        _panel(axes, panel, scatter)
    shown = {cloud.name for panel in scatter.panels for cloud in panel.clouds}
    if len(shown) > 1:
        names = scatter.names or tuple(sorted(shown))
        legend(figure, [name for name in names if name in shown], names, lines=False)
    return figure


def _panel(axes: Axes, panel: ScatterPanel, scatter: Scatter) -> None:
    points = sum(cloud.x.size for cloud in panel.clouds)
    small = 2.0 if points < 5000 else 1.3
    if points <= 500:
        small = 4.0
    for place, cloud in enumerate(panel.clouds):
        style = style_of(cloud.name, scatter.names)
        _points(axes, cloud, style.colour, style.mark, small if place == 0 else small + 1.2, alpha=0.6)
    for text, x, y in zip(scatter.labels, panel.clouds[0].x, panel.clouds[0].y, strict=False):
        axes.annotate(label(text), (float(x), float(y)), xytext=(3, 2), textcoords="offset points", fontsize=7)
    if panel.line is not None:
        axes.plot(*panel.line, color="white", linewidth=3.4)
        axes.plot(*panel.line, color=INK, linewidth=1.5, marker=".", markersize=4)
    axes.set_title(label(panel.title, 90))
    if scatter.x_scale == "log":
        logarithmic(axes, "x")
    axes.set_xlabel(label(scatter.x, 90))
    axes.set_ylabel(label(panel.y, 90))
    if panel.y_scale == "log":
        logarithmic(axes, "y")
    elif not any((cloud.y < 0).any() for cloud in panel.clouds):
        axes.set_ylim(bottom=0)


def _points(axes: Axes, cloud: Cloud, colour: str, mark: str, size: float, *, alpha: float) -> None:
    axes.plot(
        cloud.x,
        cloud.y,
        linestyle="",
        marker=mark,
        markersize=size,
        markeredgewidth=0,
        color=colour,
        alpha=alpha,
        rasterized=True,
    )
