"""Bars below each other, with their numbers and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normlens.exhibits.figures import Bars
from normlens.exhibits.numbers import count, number
from normlens.exhibits.plots.paint import legend, style_of
from normlens.views import INK, WIDTH, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(bars: Bars) -> Figure:
    """The first bar on top."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 0.75 + 0.24 * len(bars.bars)), layout="constrained")
    axes = figure.subplots()
    groups = tuple(dict.fromkeys(bar.group for bar in bars.bars))
    names = bars.names or groups
    for place, bar in enumerate(bars.bars):
        axes.barh(place, bar.value, height=0.66, color=style_of(bar.group, names).colour)
        end = bar.value
        if bar.low is not None and bar.high is not None:
            axes.plot([bar.low, bar.high], [place, place], color=INK, linewidth=1.1)
            end = max(end, bar.high)
        axes.annotate(
            count(bar.value) if isinstance(bar.value, int) else number(bar.value),
            (max(end, 0.0), place),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_yticks(range(len(bars.bars)), [label(bar.name, 40) for bar in bars.bars])
    axes.set_ylim(len(bars.bars) - 0.4, -0.6)
    axes.margins(x=0.12)
    axes.axvline(0, color="#888888", linewidth=0.7)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(label(bars.x, 90))
    if len(groups) > 1:
        legend(figure, list(groups), names, lines=False)
    return figure
