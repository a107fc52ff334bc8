"""Maps side by side, such as layer by head or word by word. Cells shrink as models grow; holes are hatched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normlens.exhibits.figures import Grid, Grids, Tone
from normlens.views import INK, NORM, PALE, SIGNED, WEIGHT, WIDTH, label, ramp, steps, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VECTOR = 1024  # maps of more cells than this become an image inside the SVG
READABLE = 0.29  # inches that a number of three digits needs
LETTERS, LONGEST = 8.0, 16  # points and letters of a word
WORDS = {1: 0.0, 2: 0.095, 3: 0.125}  # inches that a cell needs for its words when so many maps stand in a line
STOPS: dict[Tone, tuple[str, ...]] = {
    "weight": WEIGHT,
    "norm": NORM,
    "signed": SIGNED,
    "grey": ("#f7f7f7", "#d9d9d9", "#969696", "#525252", "#111111"),
    "error": ("#fcf8fb", "#f1d6e6", "#e0a9cb", "#c97aae", "#a94f8e", "#82306d", "#5a1d4b", "#35132d"),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """How many maps stand in a line, and the inches of a cell and of what is around a map."""

    across: int
    wide: float  # of a cell
    high: float
    left: float  # of the names of rows, where they stand once in a line
    beside: float  # of what else stands beside each map
    above: float  # of what stands above and below each map
    least: float = 0.0  # of a map with what stands beside it

    @property
    def letters(self) -> float:
        """Points of a word that fits beside a cell."""
        return min(LETTERS, 72 * 0.97 * self.wide)


def draw(grids: Grids) -> Figure:
    """The first row on top; as many maps in a line as can be read."""
    from matplotlib.figure import Figure

    rows = len(grids.grids[0].values)
    columns = max(grid.values.shape[1] for grid in grids.grids)
    layout = _layout(grids, rows, columns)
    lines = -(-len(grids.grids) // layout.across)
    wide, deep = max(layout.wide * columns, 0.9), max(layout.high * rows, 0.55)
    width = layout.left + layout.across * max(wide + layout.beside, layout.least)
    figure = Figure(figsize=(min(WIDTH, width), lines * (deep + layout.above)), layout="constrained")
    places = list(figure.subplots(lines, layout.across, squeeze=False).flat)
    for place, (axes, grid) in enumerate(zip(places, grids.grids, strict=False)):
        mesh = _map(axes, grid, grids, layout)
        _names(axes, grid, grids, layout, is_first=place % layout.across == 0)
        if grids.scale:
            bar = figure.colorbar(mesh, ax=axes, fraction=0.06, pad=0.03, aspect=deep / 0.12)
            bar.outline.set_visible(False)  # type: ignore[operator]
            bar.ax.tick_params(length=2, pad=2)
            bar.ax.locator_params(nbins=max(2, min(5, int(deep / 0.2))))
    for spare in places[len(grids.grids) :]:
        spare.set_visible(False)
    return figure


def _layout(grids: Grids, rows: int, columns: int) -> Layout:
    most = min(len(grids.grids), grids.across)

    def room(across: int, left: float, beside: float) -> float:
        """Inches for each of the cells in a line of so many maps."""
        return (WIDTH - left - beside * across) / across / columns

    if grids.words:
        left, above = (
            max((width_of(_word(name), LETTERS) for name in names), default=0.0) + 0.08
            for names in (grids.rows, grids.columns)
        )
        across = next(across for across in range(most, 0, -1) if room(across, left, 0.16) >= WORDS.get(across, 0.125))
        cell = min(0.22, room(across, left, 0.16))
        return Layout(across, cell, cell, left, 0.16, 0.6 + above * min(1.0, cell * 72 / LETTERS), 1.95)
    if not grids.scale:
        left, beside = max(width_of(name, LETTERS) for name in grids.rows) + 0.15, 0.35
        across = next((across for across in range(most, 0, -1) if room(across, left, beside) >= READABLE), 1)
        return Layout(across, min(0.42, room(across, left, beside)), 0.3, left, beside, 0.68, 2.0)
    most = -(-len(grids.grids) // -(-len(grids.grids) // most))  # four maps are two lines of two, not three and one
    has_numbers = any(grid.numbers for grid in grids.grids)
    wide = min(0.4 if has_numbers else 0.235, room(most, 0.0, 1.15))
    high = min(0.3 if has_numbers else 0.235, max(wide, 0.07), 6.5 / rows / -(-len(grids.grids) // most))
    return Layout(most, wide, high, 0.0, 1.15, 1.0 if any(grid.foot for grid in grids.grids) else 0.85)


def _map(axes: Axes, grid: Grid, grids: Grids, layout: Layout) -> Any:
    """The cells on their scale; what is not there is hatched."""
    from matplotlib.patches import Rectangle

    rows, columns = grid.values.shape
    edge = "#777777" if grids.words else PALE
    ground = Rectangle((0, 0), columns, rows, facecolor="white", edgecolor=edge, hatch="/////", linewidth=0, zorder=0)
    axes.add_patch(ground)
    values = np.ma.masked_invalid(grid.values)
    shades: Any = {
        "cmap": ramp(STOPS[grid.tone]),
        "vmin": -grid.top if grid.tone == "signed" else 0.0,
        "vmax": grid.top,
    }
    if rows * columns <= VECTOR and not grids.words:
        mesh: Any = axes.pcolormesh(values, edgecolors="white", linewidth=0.5, **shades)
    else:
        whole = (0, columns, rows, 0)
        mesh = axes.imshow(values, interpolation="none", aspect="auto", extent=whole, zorder=1, **shades)
    if grids.words:
        axes.vlines(range(columns + 1), 0, rows, color=PALE, linewidth=0.3, zorder=2)
        axes.hlines(range(rows + 1), 0, columns, color=PALE, linewidth=0.3, zorder=2)
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    _write(axes, grid, layout)
    for frame in grid.frames:  # just within its cell, so that a white frame stands apart from white gaps
        box = Rectangle((frame.column + 0.08, frame.row + 0.08), 0.84, 0.84, fill=False, zorder=4)
        box.set_edgecolor(_on(float(grid.values[frame.row, frame.column]), grid.top))
        box.set_linestyle((0, (1.6, 1.1)) if frame.dashed else "-")
        box.set_linewidth(min(1.3, 9 * layout.wide))
        axes.add_patch(box)
    return mesh


def _write(axes: Axes, grid: Grid, layout: Layout) -> None:
    """Numbers into cells that have room for them, upright where they are narrow."""
    turned = layout.wide < READABLE
    long, short = (layout.high, layout.wide) if turned else (layout.wide, layout.high)
    if not grid.numbers or long < READABLE or short < 0.12:
        return
    for (row, column), value in np.ndenumerate(grid.values):
        if np.isfinite(value):
            axes.text(
                column + 0.5,
                row + 0.5,
                f"{value:{grid.numbers}}".rstrip("."),
                color=_on(float(value), grid.top),
                rotation=90 if turned else 0,
                ha="center",
                va="center" if turned else "center_baseline",
                fontsize=8,
            )


def _names(axes: Axes, grid: Grid, grids: Grids, layout: Layout, *, is_first: bool) -> None:
    """The title, rows, columns and axes of a map, as many as there is room for."""
    rows, columns = grid.values.shape
    across = grid.columns or grids.columns or tuple(str(place) for place in range(columns))
    down = grids.rows if grids.scale or is_first else ("",) * rows
    if grids.words:
        shown, named = range(columns), range(rows)
        across, down = tuple(map(_word, across)), tuple(map(_word, down))
        axes.xaxis.set_ticks_position("top")
        axes.tick_params(labelsize=layout.letters)
        axes.tick_params(axis="x", rotation=90)
    else:
        shown = steps(columns, max(layout.wide * columns, 0.9), 0.17)
        named = steps(rows, max(layout.high * rows, 0.55), 0.15)
    axes.set_xticks([place + 0.5 for place in shown], [across[place] for place in shown])
    axes.set_yticks([place + 0.5 for place in named], [down[place] for place in named])
    axes.tick_params(length=0, pad=2)
    axes.set_title(label(grid.title, 90))
    axes.set_xlabel(
        "\n".join(line for line in (grids.column_axis, grid.foot) if line), loc="left" if grids.words else "center"
    )
    axes.set_ylabel(grids.row_axis if grids.scale or is_first else "")
    for side in axes.spines.values():
        side.set_visible(False)


def _word(word: str) -> str:
    return label(word, LONGEST) if word else ""


def _on(value: float, top: float) -> str:
    """A colour that can be seen on a cell of this value."""
    return "#ffffff" if abs(value) > 0.52 * top else INK
