"""A figure on its way to SVG and PNG: one style, no global state left behind, the same bytes every time.

Room: matplotlib's settings and files. Knows no study.

Figures are at most seven inches wide, the text width of a page, with letters of eight points or more.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normlens.errors import NormlensError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 7.0  # inches
DOTS = 200  # per inch: of the PNG, and of point clouds inside the SVG
STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so every machine draws the same letters
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titlepad": 5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "figure.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.edgecolor": "#444444",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "xtick.labelcolor": "#111111",
    "ytick.labelcolor": "#111111",
    "hatch.linewidth": 0.4,
    "lines.linewidth": 1.5,
    "text.parse_math": False,  # a token may hold a dollar
    "svg.fonttype": "path",
    "svg.image_inline": True,
}


class DrawingMissing(NormlensError, ImportError):
    """matplotlib is not installed."""


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


def check() -> None:
    """Refuse before the work when there is nothing to draw with."""
    try:
        import matplotlib as matplotlib
    except ImportError as error:
        raise DrawingMissing(
            "The figures of a report need matplotlib, which is not installed.\n  Do: pip install 'normlens[report]'."
        ) from error


def drawn(picture: Picture) -> Drawn:
    """Draw once, write twice; the places found for the first file are kept for the second."""
    with _house_style(picture.name):
        figure = picture.draw()
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", dpi=DOTS, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        figure.set_layout_engine("none")
        figure.savefig(png, format="png", dpi=DOTS, metadata={"Software": None})
    return Drawn(picture, svg.getvalue().decode("utf-8"), png.getvalue())


@contextmanager
def _house_style(name: str) -> Iterator[None]:
    """Our settings on top of matplotlib's own; the reader's come back afterwards."""
    check()
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**STYLE, "svg.hashsalt": name})
        yield
