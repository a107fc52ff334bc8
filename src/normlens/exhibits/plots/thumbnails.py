"""A small map of every head in one image, however many heads there are; frames have the colours of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from normlens.exhibits.figures import Thumbnails
from normlens.exhibits.plots.grids import STOPS
from normlens.exhibits.plots.paint import style_of
from normlens.views import PALE, WIDTH, label, ramp, steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 0.72  # inches of a map and the gap behind it
LEFT, ABOVE, BELOW = 0.45, 0.5, 0.3  # inches beside the maps, above them, and of the legend
GAP = 8  # a gap is this part of a map


def draw(thumbnails: Thumbnails) -> Figure:
    """The first layer on top; places are counted in cells of the maps."""
    from matplotlib.collections import PatchCollection
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    layers, heads, rows, columns = thumbnails.maps.shape
    down, across = rows + max(1, rows // GAP), columns + max(1, columns // GAP)
    inches = min(LARGEST, (WIDTH - LEFT) / heads)
    shown = [name for name in _names(thumbnails) if any(name in layer for layer in thumbnails.groups)]
    size = max(LEFT + heads * inches, 2.4), ABOVE + layers * inches + (BELOW if shown else 0)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    whole = (0, heads * across, layers * down, 0)
    axes.imshow(_mosaic(thumbnails, down, across), interpolation="none", aspect="auto", extent=whole)
    there = np.argwhere(np.isfinite(thumbnails.maps).any(axis=(2, 3))).tolist()
    wide = min(1.6, 3.0 * inches) if shown else 0.5  # points
    x, y = (wide / 2 / 72 / inches * cells for cells in (across, down))  # so that no frame is over its map
    frames = [Rectangle((head * across - x, layer * down - y), columns + 2 * x, rows + 2 * y) for layer, head in there]
    colours = [_colour(thumbnails, layer, head) for layer, head in there]
    axes.add_collection(PatchCollection(frames, facecolor="none", edgecolor=colours, linewidth=wide))
    named = steps(heads, heads * inches, 0.2), steps(layers, layers * inches, 0.15)
    axes.set_xticks([head * across + columns / 2 for head in named[0]], [str(head) for head in named[0]])
    axes.set_yticks([layer * down + rows / 2 for layer in named[1]], [thumbnails.rows[layer] for layer in named[1]])
    axes.set_xlim(-1, heads * across)
    axes.set_ylim(layers * down, -1)
    axes.xaxis.set_ticks_position("top")
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    axes.tick_params(length=0, pad=2)
    axes.spines[:].set_visible(False)
    if shown:
        colours = [style_of(name, _names(thumbnails)).colour for name in shown]
        keys = [Rectangle((0, 0), 1, 1, facecolor="none", edgecolor=colour, linewidth=1.6) for colour in colours]
        figure.legend(
            keys,
            [label(name) for name in shown],
            loc="outside lower center",
            ncols=len(shown) if size[0] > 5 else 2,
            handlelength=0.9,
            handleheight=0.9,
        )
    return figure


def _mosaic(thumbnails: Thumbnails, down: int, across: int) -> Float[np.ndarray, "y x 4"]:
    """All maps as one image; gaps and holes are transparent."""
    layers, heads, rows, columns = thumbnails.maps.shape
    image = np.zeros((layers, down, heads, across, 4))
    shades = np.sqrt(np.ma.masked_invalid(np.clip(thumbnails.maps, 0, 1)))
    image[:, :rows, :, :columns] = ramp(STOPS[thumbnails.tone])(shades).swapaxes(1, 2)
    return image.reshape(layers * down, heads * across, 4)


def _names(thumbnails: Thumbnails) -> tuple[str, ...]:
    groups = dict.fromkeys(name for layer in thumbnails.groups for name in layer if name)
    return thumbnails.names or tuple(groups)


def _colour(thumbnails: Thumbnails, layer: int, head: int) -> str:
    name = thumbnails.groups[layer][head] if thumbnails.groups else ""
    return style_of(name, _names(thumbnails)).colour if name else PALE
