"""A figure laid out in inches from its upper left corner, and maps whose cells carry numbers.

Room: one kind of drawing. Knows no aligner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from normlens.views.plots.paint import INK, ramp, steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ERROR = ("#fcf8fb", "#f1d6e6", "#e0a9cb", "#c97aae", "#a94f8e", "#82306d", "#5a1d4b", "#35132d")  # pale: few errors
READABLE = 0.29  # inches that a number of three digits needs


def sheet(width: float, height: float) -> Figure:
    """An empty figure."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def place(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at so many inches from the left and from the top."""
    across, down = figure.get_size_inches()
    axes = figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))
    axes.tick_params(length=0, pad=2)
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def on(value: float, top: float) -> str:
    """What can be seen on a cell of this value."""
    return "#ffffff" if value > 0.52 * top else INK


def cells(
    axes: Axes,
    values: Float[np.ndarray, "row column"],
    stops: tuple[str, ...],
    top: float,
    *,
    size: tuple[float, float],
    written: Callable[[float], str],
) -> Any:
    """Cells from 0 to `top` of a scale, each of so many inches, with their numbers where these can be read."""
    rows, columns = values.shape
    mesh = axes.pcolormesh(values, cmap=ramp(stops), vmin=0.0, vmax=top, edgecolors="white", linewidth=0.5)
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    wide, high = size
    turned = wide < READABLE
    if (high if turned else wide) >= READABLE and (wide if turned else high) >= 0.12:
        for (row, column), value in np.ndenumerate(values):
            axes.text(
                column + 0.5,
                row + 0.5,
                written(float(value)),
                color=on(float(value), top),
                rotation=90 if turned else 0,
                ha="center",
                va="center_baseline" if not turned else "center",
                fontsize=8,
            )
    return mesh


def named(axes: Axes, across: Sequence[object], down: Sequence[object], size: tuple[float, float]) -> None:
    """Names of columns and rows, as many as there is room for."""
    shown, kept = steps(len(across), size[0] * len(across), 0.17), steps(len(down), size[1] * len(down), 0.13)
    axes.set_xticks([at + 0.5 for at in shown], [str(across[at]) for at in shown])
    axes.set_yticks([at + 0.5 for at in kept], [str(down[at]) for at in kept])


def scale(figure: Figure, mesh: Any, left: float, top: float, height: float) -> None:
    """The scale of a map, to stand at its right."""
    bar = figure.colorbar(mesh, cax=place(figure, left, top, 0.08, height))
    bar.outline.set_visible(False)  # type: ignore[operator]
    bar.ax.tick_params(length=2, pad=2)
    if height < 0.8:
        bar.set_ticks([0, mesh.norm.vmax], labels=["0", f"{mesh.norm.vmax:.3g}"])
    else:
        bar.ax.locator_params(nbins=4)


def write(figure: Figure, left: float, top: float, text: str) -> None:
    """A line of text at so many inches from the left and from the top."""
    across, down = figure.get_size_inches()
    figure.text(left / across, 1 - top / down, text, va="top")


def long(words: Sequence[str], size: float) -> float:
    """Inches that the longest of some words takes in letters of so many points."""
    from matplotlib.textpath import TextPath

    return max((TextPath((0, 0), word, size=size).get_extents().width / 72 for word in words), default=0.0)


def framed(axes: Axes, column: int, row: int, colour: str = INK, dash: Any = "-", thick: float = 1.3) -> None:
    """A frame just within one cell, so that a white one stands apart from white gaps."""
    from matplotlib.patches import Rectangle

    frame = Rectangle((column + 0.08, row + 0.08), 0.84, 0.84, fill=False, edgecolor=colour, linestyle=dash)
    frame.set(linewidth=thick, zorder=4)
    axes.add_patch(frame)
