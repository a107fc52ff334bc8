"""Numbers as coloured cells, and the tokens beside and above them: what heat maps, thumbnails and patches share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from normlens.views.plots.paint import ACCENT, FAINT, INK, ramp, token_label, width_of
from normlens.views.plots.sheet import SMALL, stops
from normlens.views.shown import Shown, Token

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VECTOR = 20_000  # more cells than this become an image inside SVG and PDF
SEAM = 0.15  # points by which cells overlap: without, viewers show the paper between them
Box = tuple[float, float, float, float]  # left, top, right, bottom


def cells(
    axes: Axes,
    values: Float[np.ndarray, "row column"],
    box: Box,
    one: Shown,
    *,
    vector: bool = True,
) -> None:
    """Values in the colours and on the scale of a map, in a box of the axes, row 0 on top."""
    left, top, right, bottom = box
    high, colours = one.top or 1.0, stops(one)
    low = -high if one.signed else 0.0
    if vector and values.size <= VECTOR:
        shades = np.clip(255 * (values - low) / (high - low), 0, 255).round().astype(int)
        _rectangles(axes, shades, box, colours)
    else:
        limits_before = axes.get_xlim(), axes.get_ylim()
        axes.imshow(values, cmap=ramp(colours), vmin=low, vmax=high, extent=(left, right, bottom, top), aspect="auto")
        axes.set(xlim=limits_before[0], ylim=limits_before[1])


def _rectangles(axes: Axes, shades: Int[np.ndarray, "row column"], box: Box, colours: tuple[str, ...]) -> None:
    """One path for each shade, of all its runs of cells: far fewer bytes than a path for each cell."""
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path

    left, top, right, bottom = box
    rows, columns = shades.shape
    across, down = np.linspace(left, right, columns + 1), np.linspace(top, bottom, rows + 1)
    begins = np.ones(shades.shape, dtype=bool)
    begins[:, 1:] = shades[:, 1:] != shades[:, :-1]
    row, start = np.nonzero(begins)
    end = np.append(start[1:], 0)
    end[end == 0] = columns  # the next run begins a row
    found, used, paths = shades[row, start], np.unique(shades), []
    for shade in used:
        these = found == shade
        x0, x1, y0, y1 = across[start[these]], across[end[these]], down[row[these]], down[row[these] + 1]
        corners = np.stack([np.stack(pair, -1) for pair in ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))], 1)
        codes = np.tile([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], int(these.sum()))
        paths.append(Path(corners.reshape(-1, 2), codes))
    painted = ramp(colours)(used / 255)
    axes.add_collection(PathCollection(paths, facecolors=painted, edgecolors=painted, linewidths=SEAM), autolim=False)


def names(tokens: Sequence[Token]) -> list[str]:
    return [token_label(token.label, special=token.special) for token in tokens]


def widest(tokens: Sequence[Token]) -> float:
    """Inches of the longest name: the widest is among those of most letters."""
    longest = sorted(set(names(tokens)), key=len)[-12:]
    return max((width_of(name, SMALL) for name in longest), default=0.0)


def write_token(
    axes: Axes, token: Token, left: float, top: float, *, align: str = "left", slant: float = 0.0, faint: bool = False
) -> None:
    """The name of a token, at half height of its letters; special tokens in italics, as in the page."""
    axes.text(
        left,
        top,
        token_label(token.label, special=token.special),
        fontsize=SMALL,
        color=FAINT if faint else ACCENT if token.special else INK,
        fontstyle="italic" if token.special else "normal",
        ha=align,
        va="center",
        rotation=slant,
        rotation_mode="anchor",
    )
