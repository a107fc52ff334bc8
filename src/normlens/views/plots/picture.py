"""The image a model read, its patches coloured by a measure.

Tokens before the patches ([CLS], registers) are cells beside the picture.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from normlens.picture import Picture
from normlens.views.bars import Bars, bars
from normlens.views.figure import Figure
from normlens.views.plots.bars import caption_of, number, told
from normlens.views.plots.cells import widest, write_token
from normlens.views.plots.paint import INK, MUTED, ramp
from normlens.views.plots.sheet import EDGE, GAP, SMALL, Block, Place, said, scale, sheet, stops
from normlens.views.plots.style import WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

SMALLEST, LARGEST = 1.4, 2.6  # inches of the picture
CELL, FOOT = 0.22, 0.37  # inches of a cell beside it, and for the scale beneath


def picture(figure: Figure) -> Drawing:
    """The picture as it is, then once for each measure, pale and coloured by it."""
    pin = figure.look.pin if figure.look.pin and figure.look.pin[0] == "tgt" else None
    figure = figure.looking(order="text", pin=pin)
    found = bars(figure)
    panel = figure.panels[figure.groups[str(figure.look.kind)][0]]
    seen = figure.sides[panel.src].picture
    assert seen is not None, "looking() refuses this view when there is no picture"
    beside = max(widest([token for token in one.tokens if token.at[0] < seen.first]) for one in found) + 0.6
    beside = beside if seen.first else 0.0
    each = (WIDTH - 2 * EDGE - GAP * len(found) - beside * len(found)) / (len(found) + 1)
    size = min(max(each, SMALLEST), LARGEST)
    image = _pixels(seen)
    height, width = image.shape[:2]
    across, down = size * min(1.0, width / height), size * min(1.0, height / width)
    pinned = pin[1] if pin and panel.tgt == panel.src else None

    def plain(place: Place) -> None:
        axes = _canvas(place, seen, across, down, image)
        _frame(axes, seen, pinned)

    blocks = [Block(across, down, "image", plain)]
    blocks += [_overlaid(one, seen, (across, down), beside, _pale(image), pinned) for one in found]
    return sheet(blocks, said(figure, *told(figure, found), "Colours end at the largest patch."))


def _overlaid(
    one: Bars,
    seen: Picture,
    size: tuple[float, float],
    beside: float,
    image: Float[np.ndarray, "height width 3"],
    pinned: int | None,
) -> Block:
    patches = np.full((seen.rows, seen.columns), np.nan)
    for token, value in zip(one.tokens, one.values, strict=True):
        if token.at[0] >= seen.first:
            patches.flat[token.at[0] - seen.first] = value
    top = float(np.nanmax(np.abs(patches), initial=0.0)) or 1.0

    def coloured(values: Float[np.ndarray, "*cell"]) -> Float[np.ndarray, "*cell 4"]:
        parts = np.clip(np.nan_to_num(values / top), -1.0, 1.0)
        colours = np.asarray(ramp(stops(one.map))((parts + 1) / 2 if one.map.signed else parts))
        colours[..., 3] = np.where(np.isnan(values), 0.0, 0.15 + 0.65 * np.abs(parts))
        return colours

    def paint(place: Place) -> None:
        axes = _canvas(place, seen, *size, image)
        axes.imshow(coloured(patches), extent=(0, seen.columns, seen.rows, 0), aspect="auto", interpolation="nearest")
        _frame(axes, seen, pinned)
        _before(place, one, seen, size[0] + 0.1, coloured, pinned)
        middle = ("0",) if one.map.signed else ()
        low = number(one, -top) if one.map.signed else "0"
        scale(place, one.map, 0.0, size[1] + 0.12, min(size[0], 1.6), (low, *middle, number(one, top)))

    return Block(size[0] + beside, size[1] + FOOT, caption_of(one), paint)


def _before(place: Place, one: Bars, seen: Picture, left: float, coloured, pinned: int | None) -> None:
    """The tokens before the patches: a cell, its name and its number, one beneath the other."""
    from matplotlib.patches import Rectangle

    there = [(token, value) for token, value in zip(one.tokens, one.values, strict=True) if token.at[0] < seen.first]
    if not there:
        return
    axes = place.axes(left, 0.0, CELL, (CELL + 0.06) * len(there))
    for row, (token, value) in enumerate(there):
        top = row * (CELL + 0.06)
        edge = (INK, 1.2) if token.at[0] == pinned else (MUTED, 0.4)
        colour = coloured(np.array([value]))[0]
        axes.add_patch(
            Rectangle((0, top), CELL, CELL, facecolor=colour, edgecolor=edge[0], linewidth=edge[1], clip_on=False)
        )
        write_token(axes, token, CELL + 0.05, top + CELL / 2 - 0.055)
        axes.text(CELL + 0.05, top + CELL / 2 + 0.055, number(one, value), fontsize=SMALL, color=INK, va="center")


def _canvas(
    place: Place, seen: Picture, across: float, down: float, image: Float[np.ndarray, "height width 3"]
) -> Axes:
    axes = place.axes(0.0, 0.0, across, down)
    axes.imshow(image, extent=(0, seen.columns, seen.rows, 0), aspect="auto")
    axes.set(xlim=(0, seen.columns), ylim=(seen.rows, 0))
    return axes


def _frame(axes: Axes, seen: Picture, pinned: int | None) -> None:
    from matplotlib.patches import Rectangle

    if pinned is not None and seen.first <= pinned < seen.first + seen.rows * seen.columns:
        row, column = divmod(pinned - seen.first, seen.columns)
        for colour, width in (("white", 2.4), (INK, 1.2)):
            axes.add_patch(Rectangle((column, row), 1, 1, fill=False, edgecolor=colour, linewidth=width, clip_on=False))


def _pixels(seen: Picture) -> Float[np.ndarray, "height width 3"]:
    from matplotlib.image import imread

    image = np.asarray(imread(io.BytesIO(seen.png), format="png"), dtype=np.float64)
    return np.repeat(image[..., None], 3, axis=-1) if image.ndim == 2 else image[..., :3]


def _pale(image: Float[np.ndarray, "height width 3"]) -> Float[np.ndarray, "height width 3"]:
    """Grey and light, so that only the measure has colour."""
    grey = image @ np.array([0.299, 0.587, 0.114])
    return np.repeat((0.35 + 0.65 * grey)[..., None], 3, axis=-1)
