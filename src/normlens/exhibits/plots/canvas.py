"""A figure on its way to SVG and PNG, in the style that all drawings of the package share.

Figures are at most seven inches wide, the text width of a page, with letters of eight points or more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from normlens.views import house_style, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Drawing:
    """The two files of a figure."""

    name: str
    svg: str
    png: bytes


def drawn(name: str, draw: Callable[[], Figure]) -> Drawing:
    """Draw once, write twice; the places found for the first file are kept for the second."""
    with house_style(name):
        figure = draw()
        svg = written(figure, "svg")
        figure.set_layout_engine(None)
        png = written(figure, "png")
    return Drawing(name, svg.decode("utf-8"), png)
