"""Heat maps: rows are queries, columns are keys, one map for each measure; a map without both is a strip.

A pinned row or column is framed, and the rest is pale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from normlens.views.bars import place as place_of
from normlens.views.figure import Figure
from normlens.views.plots.cells import cells, widest, write_token
from normlens.views.plots.paint import INK, steps
from normlens.views.plots.sheet import EDGE, GAP, Block, Place, caption, ends, said, scale, sheet
from normlens.views.plots.style import WIDTH
from normlens.views.shown import Shown, Token, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

SLANT = 60.0  # degrees of the names above the columns
SMALLEST, LARGEST = 0.118, 0.3  # inches of a cell; at the smallest, names of 7 points just stand apart
LONGEST = 16.0  # inches of a map; of longer texts only some tokens are named
FOOT = 0.37  # inches for the scale beneath


def heat(figure: Figure) -> Drawing:
    """One map for each measure, side by side."""
    maps = shown(figure)
    room = (WIDTH - 2 * EDGE - GAP * (len(maps) - 1)) / len(maps)
    blocks = [_block(figure, one, room) for one in maps]
    scales = (
        "One scale for all layers of a measure." if figure.look.scale == "shared" else "Each map has its own scale."
    )
    some = (
        " Of the tokens only some are named." if max(max(one.values.shape) for one in maps) > LONGEST / SMALLEST else ""
    )
    axes = "" if all(one.strip for one in maps) else "Rows are queries, columns are keys. "
    return sheet(blocks, said(figure, f"{axes}{scales}{some}"))


def _block(figure: Figure, one: Shown, room: float) -> Block:
    rows, columns = one.values.shape
    beside, above = widest(one.rows) + 0.06, widest(one.columns)
    over, up = above * math.cos(math.radians(SLANT)) + 0.05, above * math.sin(math.radians(SLANT)) + 0.12
    cell = min(max((room - beside - over) / columns, SMALLEST), LARGEST)
    width, height = min(cell * columns, LONGEST), min(cell * rows, LONGEST)

    def paint(place: Place) -> None:
        axes = place.axes(beside, up, width, height)
        axes.set(xlim=(0, columns), ylim=(rows, 0))
        cells(axes, one.values, (0.0, 0.0, float(columns), float(rows)), one)
        for at in _named(one.rows, height):
            write_token(axes, one.rows[at], -0.05 / width * columns, at + 0.5, align="right")
        for at in _named(one.columns, width):
            write_token(axes, one.columns[at], at + 0.5, -0.06 / height * rows, slant=SLANT)
        _pin(axes, figure, one)
        scale(place, one, beside, up + height + 0.12, min(max(width, 0.9), 1.6), ends(one))

    return Block(beside + max(width + over, 0.95), up + height + FOOT, caption(one), paint)


def _named(tokens: Sequence[Token], room: float) -> list[int]:
    return steps(len(tokens), room, SMALLEST - 1e-6)


def _pin(axes: Axes, figure: Figure, one: Shown) -> None:
    from matplotlib.patches import Rectangle

    axis, position = figure.look.pin or ("tgt", -1)
    if one.strip and axis != one.across:
        return
    by_row = axis == "tgt" and not one.strip
    at = place_of(one.rows if by_row else one.columns, position)
    if at is None:
        return
    rows, columns = one.values.shape
    size = rows if by_row else columns
    for start, end in ((0, at), (at + 1, size)):
        band = ((0, start), columns, end - start) if by_row else ((start, 0), end - start, rows)
        axes.add_patch(Rectangle(*band, facecolor="white", alpha=0.65, linewidth=0))
    frame = ((0, at), columns, 1) if by_row else ((at, 0), 1, rows)
    axes.add_patch(Rectangle(*frame, fill=False, edgecolor=INK, linewidth=1.0, clip_on=False))
