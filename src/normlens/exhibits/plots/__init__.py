"""Figures drawn with matplotlib, one file for each type. The same figure always gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from normlens.exhibits.figures import Bars, Figure, Graph, Grids, Lines, Scatter, Strip, Thumbnails
from normlens.exhibits.plots import bars, graph, grids, lines, scatter, strip, thumbnails
from normlens.exhibits.plots.canvas import Drawing as Drawing
from normlens.exhibits.plots.canvas import drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

DRAW: dict[type, Callable[[Any], Canvas]] = {
    Lines: lines.draw,
    Grids: grids.draw,
    Strip: strip.draw,
    Scatter: scatter.draw,
    Bars: bars.draw,
    Graph: graph.draw,
    Thumbnails: thumbnails.draw,
}


def draw(figure: Figure, name: str | None = None) -> Drawing:
    """A figure as SVG and PNG; `name` is that of its files."""
    return drawn(name or figure.name, lambda: DRAW[type(figure)](figure))
