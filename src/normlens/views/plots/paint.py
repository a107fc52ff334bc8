"""Colours and letters: what every drawing of the package shares.

Amber is the attention weight α, blue any other measure, in the same steps of lightness as in the page (color.js). A
difference goes from blue (less) over white (0) to red (more), which the colour-blind can tell apart.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Literal

from normlens.views.glyphs import visible
from normlens.views.text import visible_line

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

WEIGHT = ("#fbf9f5", "#efdab5", "#e6b879", "#d99546", "#c7731c", "#ad5604", "#8d3e0f", "#692d18", "#432019")
NORM = ("#f5fafb", "#b5e6f2", "#76cfed", "#3eb3e6", "#1894d6", "#1c75bd", "#28589b", "#2a3e72", "#232847")
SIGNED = ("#053061", "#2166ac", "#4393c3", "#92c5de", "#f7f7f7", "#f4a582", "#d6604d", "#b2182b", "#67001f")
STAND_INS = {"␊": "↵", "␍": "↵", "␉": "⇥", "␣": "_"}  # of what `visible` writes, where the font lacks it
PALE, INK, MUTED, FAINT, ACCENT = "#d4d4d4", "#111111", "#565c6b", "#a3a7b0", "#9a3b00"


def ramp(stops: tuple[str, ...]) -> Colormap:
    """A scale of colours through these stops; a hole stays transparent, so that the hatching behind it shows."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ramp", stops).with_extremes(bad="#ffffff00")


def label(text: str, longest: int = 24) -> str:
    """A name as it can be drawn: nothing hidden, no letter the font lacks, not too long."""
    return _drawable(visible_line(text), longest, "normal")


def token_label(token: str, *, special: bool = False, longest: int = 20) -> str:
    """A token as it can be drawn; special ones are written in italics, which have fewer letters."""
    return _drawable(visible(token), longest, "oblique" if special else "normal")


def width_of(text: str, points: float) -> float:
    """How many inches a line of text takes."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    path = TextPath((0, 0), text, size=points, prop=FontProperties(family=["DejaVu Sans"]))
    return float(path.get_extents().x1) / 72 if len(path.vertices) else 0.0


def steps(count: int, room: float, each: float) -> list[int]:
    """Which of `count` places get a label when each needs so many of the inches there are: every 1st, 2nd, 5th ..."""
    step = next(
        step for step in (1, 2, 4, 5, 10, 20, 25, 50, 100, 200, count) if count * each / step <= room or step >= count
    )
    return list(range(0, count, step))


def _drawable(text: str, longest: int, style: Literal["normal", "oblique"]) -> str:
    shown = "".join(_letter(char, _letters(style)) for char in text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _letter(char: str, there: frozenset[int]) -> str:
    """The letter, one that means the same (a bar for a wide bar), or a box."""
    alike = (char, STAND_INS.get(char, ""), unicodedata.normalize("NFKC", char))
    return next((text for text in alike if text and all(ord(one) in there for one in text)), "□")


@cache
def _letters(style: Literal["normal", "oblique"]) -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family=["DejaVu Sans"], style=style))).get_charmap())
