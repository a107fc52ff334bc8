"""Lines in panels side by side: groups over a legend, or curves coloured by a scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normlens.exhibits.figures import LinePanel, Lines
from normlens.exhibits.plots.paint import legend, style_of
from normlens.views import NORM, WIDTH, label, ramp, steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMED = 16  # up to so many curves are named one by one; more get a scale
DASHES = ("-", "--", "-.", ":")


def draw(lines: Lines) -> Figure:
    """One axes per panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 2.9 if lines.ramp else 2.75), layout="constrained")
    places = np.atleast_1d(figure.subplots(1, len(lines.panels)))
    for axes, panel in zip(places, lines.panels, strict=True):
        if lines.ramp:
            _curves(figure, axes, panel, lines)
        else:
            _groups(axes, panel, lines)
        axes.set_xlabel(label(lines.x, 90))
        axes.set_ylabel(label(panel.y, 90))
        axes.set_title(label(panel.title, 90))
        low = min((float(np.nanmin(one.y)) for one in panel.series if np.isfinite(one.y).any()), default=0.0)
        if low >= 0:
            axes.set_ylim(bottom=0)
        if panel.top is not None:
            axes.set_ylim(min(low, 0.0), panel.top)
    if not lines.ramp:
        shown = list(dict.fromkeys(series.name for panel in lines.panels for series in panel.series))
        if len(shown) > 1 or lines.names:
            legend(figure, shown, lines.names or tuple(shown), lines=True)
    return figure


def _groups(axes: Axes, panel: LinePanel, lines: Lines) -> None:
    names = lines.names or tuple(series.name for series in panel.series)
    for series in panel.series:
        style = style_of(series.name, names)
        axes.plot(
            np.arange(len(series.y)) if series.x is None else series.x,
            series.y,
            color=style.colour,
            linestyle=style.dash,
            marker=style.mark,
            markevery=max(1, -(-len(series.y) // 16)),
            markersize=4,
        )
    if lines.ticks:
        named = steps(len(lines.ticks), 5.4 / len(lines.panels), 0.18)
        axes.set_xticks(named, [lines.ticks[place] for place in named])
    axes.margins(x=0.04)
    axes.grid(axis="y", color="#e8e8e8", linewidth=0.6)
    axes.set_axisbelow(True)


def _curves(figure: Figure, axes: Axes, panel: LinePanel, lines: Lines) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    places = [series.place for series in panel.series]
    colours, scale = ramp(NORM[2:]), Normalize(min(places) - (len(set(places)) == 1), max(places))
    for index, series in enumerate(panel.series):
        axes.plot(
            np.arange(1, len(series.y) + 1) if series.x is None else series.x,
            series.y,
            color=colours(scale(series.place)),
            linestyle=DASHES[index % len(DASHES)],
            linewidth=1.2,
            marker="o" if len(series.y) < 3 else None,
            label=series.name,
        )
    if len(panel.series) <= NAMED:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title=f"{lines.ramp} and head", handlelength=2.6)
    else:
        figure.colorbar(ScalarMappable(scale, colours), ax=axes, label=lines.ramp, pad=0.02)
