"""Layer by head as a map: the shape of half of the figures.

Room: one kind of drawing. Knows no study.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from normlens.views.plots.paint import PALE, ramp, steps
from normlens.views.plots.style import WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VECTOR = 1024  # maps of more cells than this become an image inside the SVG


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """One map and its scale, which always begins at 0."""

    title: str
    values: Float[np.ndarray, "layer head"]
    stops: tuple[str, ...]
    top: float  # end of the colour scale


def top_of(values: Float[np.ndarray, "*cell"]) -> float:
    """The largest number there is, as the end of a scale; 1 when there is none."""
    there = values[np.isfinite(values)]
    return float(there.max()) if there.size and there.max() > 0 else 1.0


def hatched(values: Float[np.ndarray, "layer head"]) -> str:
    """What to say of the holes in a map."""
    return "" if np.isfinite(values).all() else " Hatched: there is no such head."


def side_by_side(grids: tuple[Grid, Grid], layers: tuple[int, ...]) -> Figure:
    """Two maps of the same layers and heads, layer 0 on top. Cells shrink as models grow; holes are hatched."""
    from matplotlib.figure import Figure

    rows, heads = grids[0].values.shape
    width = min(0.235, 2.35 / heads)
    height = min(0.235, max(width, 0.07), 6.5 / rows)
    across, down = max(width * heads, 0.9), max(height * rows, 0.55)
    figure = Figure(figsize=(min(WIDTH, 2 * across + 2.3), down + 0.85), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, grid in ((left, grids[0]), (right, grids[1])):
        _draw(axes, grid, layers, across, down)
    return figure


def _draw(axes: Axes, grid: Grid, layers: tuple[int, ...], across: float, down: float) -> None:
    from matplotlib.patches import Rectangle

    rows, heads = grid.values.shape
    small = rows * heads <= VECTOR
    axes.add_patch(Rectangle((0, 0), heads, rows, facecolor="white", edgecolor=PALE, hatch="/////", linewidth=0))
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(grid.values),
        cmap=ramp(grid.stops),
        vmin=0.0,
        vmax=grid.top,
        edgecolors="white" if small else "none",
        linewidth=0.5 if small else 0.0,
        rasterized=not small,
    )
    axes.set_ylim(rows, 0)
    axes.set_xlim(0, heads)
    axes.set_title(grid.title)
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    shown, named = steps(heads, across, 0.17), steps(rows, down, 0.15)
    axes.set_xticks([place + 0.5 for place in shown], [str(place) for place in shown])
    axes.set_yticks([place + 0.5 for place in named], [str(layers[place]) for place in named])
    axes.tick_params(length=0, pad=2)
    for side in axes.spines.values():
        side.set_visible(False)
    figure = axes.get_figure()
    assert figure is not None
    bar = figure.colorbar(mesh, ax=axes, fraction=0.06, pad=0.03, aspect=down / 0.12)
    bar.outline.set_visible(False)  # type: ignore[operator]
    bar.ax.tick_params(length=2, pad=2)
    bar.ax.locator_params(nbins=5)
