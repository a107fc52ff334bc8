"""A figure on its way to SVG and PNG, in the style that all drawings of the package share.

Room: matplotlib's files. Knows no study.

Figures are at most seven inches wide, the text width of a page, with letters of eight points or more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from normlens.views.plots.style import house_style, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure that can be drawn: what it is called, what it shows, and what it shows in words and numbers."""

    name: str  # of its files, without folder and suffix
    caption: str
    alt: str
    draw: Callable[[], Figure]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture with its two files."""

    picture: Picture
    svg: str
    png: bytes


def drawn(picture: Picture) -> Drawn:
    """Draw once, write twice; the places found for the first file are kept for the second."""
    with house_style(picture.name):
        figure = picture.draw()
        svg = written(figure, "svg")
        figure.set_layout_engine("none")
        png = written(figure, "png")
    return Drawn(picture, svg.decode("utf-8"), png)
