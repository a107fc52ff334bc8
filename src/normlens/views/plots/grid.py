"""Every layer and head at once, as thumbnails: layers are rows, heads are columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from normlens.views.figure import Figure
from normlens.views.plots.cells import VECTOR, cells
from normlens.views.plots.paint import INK, PALE, label
from normlens.views.plots.sheet import EDGE, GAP, SMALL, Block, Place, ends, said, scale, sheet
from normlens.views.plots.style import WIDTH
from normlens.views.shown import Shown
from normlens.views.shown import cells as cells_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Thumbnails = dict[tuple[int | None, int | None], Shown]
BESIDE, ABOVE, FOOT = 0.32, 0.2, 0.35  # inches for the names of layers and heads, and for the scale
SMALLEST, LARGEST = 0.24, 0.8  # inches of a thumbnail
APART = 0.1  # of a thumbnail: white between two
EDGING = 0.005  # inches between a thumbnail and its frame, which must not cover its first column
FINEST = 36  # cells across a thumbnail; of longer texts, neighbours share one


def grid(figure: Figure) -> Drawing:
    """One grid for each measure, side by side."""
    grids = cells_of(figure)
    room = (WIDTH - 2 * EDGE - GAP * (len(grids) - 1)) / len(grids) - BESIDE
    size = min(max(min(room / len(_heads(one)) for one in grids.values()), SMALLEST), LARGEST)
    shared = figure.look.scale == "shared"
    blocks = [_block(one, size, shared=shared) for one in grids.values()]
    begin = "as far as" if figure.signed & set(grids) else "from 0 to"
    scales = (
        "One scale for all thumbnails of a grid."
        if shared
        else f"Each thumbnail has its own scale, {begin} its largest cell."
    )
    longest = max(max(one.values.shape) for thumbnails in grids.values() for one in thumbnails.values())
    coarse = " Neighbouring cells share one, the largest." if longest > FINEST else ""
    return sheet(
        blocks,
        said(figure, f"Layers down, heads across; in each, rows are queries, columns are keys. {scales}{coarse}"),
    )


def _heads(thumbnails: Thumbnails) -> list[int | None]:
    return list(dict.fromkeys(head for _, head in thumbnails))


def _coarse(values: Float[np.ndarray, "row column"]) -> Float[np.ndarray, "coarse_row coarse_column"]:
    """At most `FINEST` cells across and down; of each group the one farthest from 0, so that thin lines are seen."""
    for axis in (0, 1):
        if values.shape[axis] > FINEST:
            starts = np.linspace(0, values.shape[axis], FINEST, endpoint=False).astype(int)
            high, low = np.maximum.reduceat(values, starts, axis), np.minimum.reduceat(values, starts, axis)
            values = np.where(high >= -low, high, low)
    return values


def _block(thumbnails: Thumbnails, size: float, *, shared: bool) -> Block:
    layers, heads = list(dict.fromkeys(layer for layer, _ in thumbnails)), _heads(thumbnails)
    first = next(iter(thumbnails.values()))
    rows, columns = first.values.shape
    across, down = size, size * min(max(rows / columns, 0.25), 4.0)
    vector = sum(_coarse(one.values).size for one in thumbnails.values()) <= VECTOR
    width, height = across * len(heads), down * len(layers)

    def paint(place: Place) -> None:
        from matplotlib.patches import Rectangle

        axes = place.axes(BESIDE, ABOVE, width, height)
        for (layer, head), one in thumbnails.items():
            left, top = heads.index(head) * across, layers.index(layer) * down
            right, bottom = left + across * (1 - APART), top + down * (1 - APART)
            cells(axes, _coarse(one.values), (left, top, right, bottom), one, vector=vector)
            axes.add_patch(
                Rectangle(
                    (left - EDGING, top - EDGING),
                    right - left + 2 * EDGING,
                    bottom - top + 2 * EDGING,
                    fill=False,
                    edgecolor=PALE,
                    linewidth=0.4,
                    clip_on=False,
                )
            )
        for number, layer in enumerate(layers):
            at = (number + 0.5 - APART / 2) * down
            axes.text(
                -0.05, at, "" if layer is None else f"L{layer}", fontsize=SMALL, color=INK, ha="right", va="center"
            )
        for number, head in enumerate(heads):
            at, name = (number + 0.5 - APART / 2) * across, "all" if head is None else f"H{head}"
            axes.text(at, -0.05, name, fontsize=SMALL, color=INK, ha="center", va="bottom")
        marks = ends(first) if shared else ("−largest", "0", "+largest") if first.signed else ("0", "largest cell")
        scale(place, first, BESIDE, ABOVE + height + 0.1, min(max(width, 1.1), 1.6), marks)

    name = f"{first.label}  {first.where}" if layers == [None] else first.label
    return Block(BESIDE + max(width, 1.1), ABOVE + height + FOOT, label(name, 60), paint)
