"""Two columns of tokens and the lines between them: queries on the left, keys on the right.

A line is as wide and as dark as its cell is large; lines too faint to see are left out, and a note says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from normlens.views.bars import bars
from normlens.views.bars import place as place_of
from normlens.views.figure import Figure
from normlens.views.plots.cells import widest, write_token
from normlens.views.plots.paint import ramp
from normlens.views.plots.sheet import Block, Place, caption, said, sheet, stops
from normlens.views.shown import Shown, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

STEP = 0.145  # inches from token to token
BETWEEN = 1.7  # inches for the lines
LEAST = 0.04  # of the scale: fainter lines are left out
WIDEST = 3.0  # points of a line at the end of the scale
DASHES = (0, (3, 1.5))


def lines(figure: Figure) -> Drawing:
    """One pair of columns for each measure, side by side; with a pin, the pinned token's lines alone."""
    blocks = [_lengths(figure, one) if one.strip else _pair(figure, one) for one in shown(figure)]
    tops = ", ".join(f"{one.label} {one.top:.3g}" for one in shown(figure) if not one.strip)
    shared = ", the largest of all layers" if figure.look.scale == "shared" else ""
    left_out = f"The widest line is {tops}{shared}; lines below {LEAST:.0%} of it are left out." if tops else ""
    below = any(one.signed for one in shown(figure))
    dashed = "Dashed: less." if figure.difference else "Dashed: below 0." if below else ""
    return sheet(blocks, said(figure, "Queries on the left, keys on the right." if tops else "", left_out, dashed))


def _pair(figure: Figure, one: Shown) -> Block:
    left, right = widest(one.rows) + 0.08, widest(one.columns) + 0.08
    height = STEP * max(one.values.shape)

    def paint(place: Place) -> None:
        axes = place.axes(left, 0.05, BETWEEN, height)
        kept = _kept(figure, one)
        _draw(axes, one, kept)
        seen = kept if figure.look.pin else np.ones_like(kept)
        for number, token in enumerate(one.rows):
            faint = not seen[number].any()
            write_token(axes, token, -0.05, STEP * (number + 0.5), align="right", faint=faint)
        for number, token in enumerate(one.columns):
            write_token(axes, token, BETWEEN + 0.05, STEP * (number + 0.5), faint=not seen[:, number].any())

    return Block(left + BETWEEN + right, 0.05 + height, caption(one), paint)


def _kept(figure: Figure, one: Shown) -> Bool[np.ndarray, "row column"]:
    """Which cells get a line."""
    large = np.abs(one.values) >= LEAST * one.top if one.top > 0 else np.zeros(one.values.shape, bool)
    if figure.look.pin is None:
        return large
    axis, position = figure.look.pin
    at = place_of(one.rows if axis == "tgt" else one.columns, position)
    if at is None:
        return large
    only = np.zeros(one.values.shape, bool)
    only[(at, slice(None)) if axis == "tgt" else (slice(None), at)] = True
    return large & only


def _draw(axes: Axes, one: Shown, kept: Bool[np.ndarray, "row column"]) -> None:
    from matplotlib.collections import LineCollection

    rows, columns = np.nonzero(kept)
    parts = one.values[rows, columns] / one.top if one.top > 0 else np.zeros(0)
    faint_first = np.argsort(np.abs(parts), kind="stable")
    rows, columns, parts = rows[faint_first], columns[faint_first], parts[faint_first]
    for dashes, these in (("-", parts >= 0), (DASHES, parts < 0)):
        if these.any():
            places = zip(rows[these], columns[these], strict=True)
            axes.add_collection(
                LineCollection(
                    [((0, STEP * (row + 0.5)), (BETWEEN, STEP * (column + 0.5))) for row, column in places],
                    linewidths=0.3 + (WIDEST - 0.3) * np.abs(parts[these]),
                    colors=_colours(one, parts[these]),
                    linestyles=[dashes],
                    capstyle="butt",
                ),
                autolim=False,
            )


def _colours(one: Shown, parts: Float[np.ndarray, " line"]) -> Float[np.ndarray, "line 4"]:
    colours = np.asarray(ramp(stops(one))(np.where(parts < 0, 0.1, 0.9) if one.signed else np.full(len(parts), 0.6)))
    colours[:, 3] = 0.12 + 0.83 * np.abs(parts)
    return colours


def _lengths(figure: Figure, one: Shown) -> Block:
    """A strip, such as ‖f(x)‖, joins nothing: a bar beside each token, the mean of its rows."""
    (found,) = bars(figure, figure.look.changed(measures=one.name, order="text"))
    right, height = widest(one.columns) + 0.08, STEP * len(found.tokens)

    def paint(place: Place) -> None:
        axes = place.axes(0.0, 0.05, 1.0, height)
        places = STEP * (np.arange(len(found.tokens)) + 0.5)
        axes.set_xlim(-1.0 if one.signed else 0.0, 1.0)
        colours = np.where(found.values < 0, stops(one)[1], stops(one)[7 if one.signed else 4])
        axes.barh(places, found.values / max(found.top, 1e-12), 0.75 * STEP, color=colours)
        for number, token in enumerate(found.tokens):
            write_token(axes, token, 1.05 if not one.signed else 1.1, STEP * (number + 0.5))

    return Block(
        1.0 + right, 0.05 + height, f"{caption(one)}, {-found.top if one.signed else 0:.3g} to {found.top:.3g}", paint
    )
