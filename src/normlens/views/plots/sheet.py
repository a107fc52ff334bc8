"""Maps side by side on a sheet measured in inches: captions above them, notes beneath them.

Every place is computed, none is searched for: the same figure is always laid out the same, and nothing is cut off.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from normlens.views import figure as views
from normlens.views.plots.paint import INK, MUTED, NORM, SIGNED, WEIGHT, label, ramp, width_of
from normlens.views.shown import Shown, hides

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EDGE, GAP = 0.08, 0.35  # around the sheet, between blocks
NARROWEST = 3.4  # a column of a paper, so that the lines beneath have room
LINE, SMALL, CAPTION = 0.145, 7.0, 9.0  # height of a line beneath; points of small letters and of captions
HEAD = 0.26  # height of a caption


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the sheet: how large it is in inches, and what draws it."""

    width: float
    height: float
    caption: str
    paint: Callable[[Place], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block stands; inches count from its upper left corner."""

    sheet: Figure
    left: float
    top: float

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Bare axes there; their y axis points down."""
        across, up = self.sheet.get_size_inches()
        box = ((self.left + left) / across, 1 - (self.top + top + height) / up, width / across, height / up)
        axes = self.sheet.add_axes(box)
        axes.set_axis_off()
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        return axes


def sheet(blocks: Sequence[Block], said: Sequence[str]) -> Figure:
    """The blocks in a row, and the lines beneath them, broken where the sheet ends."""
    from matplotlib.figure import Figure

    needed = sum(max(block.width, width_of(block.caption, CAPTION)) for block in blocks) + GAP * (len(blocks) - 1)
    width = max(needed + 2 * EDGE, NARROWEST)
    lines = [line for text in said if text for line in _broken(label(text, 100_000), width - 2 * EDGE)]
    body = HEAD + max(block.height for block in blocks)
    made = Figure(figsize=(width, EDGE + body + 0.1 + LINE * len(lines) + EDGE))
    left = EDGE
    for block in blocks:
        place = Place(made, left, EDGE + HEAD)
        write(place, block.caption, 0.0, -0.09, CAPTION, INK)
        block.paint(place)
        left += max(block.width, width_of(block.caption, CAPTION)) + GAP
    foot = Place(made, EDGE, EDGE + body + 0.1)
    for number, line in enumerate(lines):
        write(foot, line, 0.0, LINE * (number + 0.8), SMALL, MUTED)
    return made


def _broken(text: str, room: float) -> list[str]:
    letters = int(0.97 * len(text) * room / width_of(text, SMALL))
    return textwrap.wrap(text, max(letters, 20))


def write(place: Place, text: str, left: float, base: float, points: float, colour: str) -> None:
    """A line of text, its baseline so far beneath the block's upper edge."""
    across, up = place.sheet.get_size_inches()
    at = ((place.left + left) / across, 1 - (place.top + base) / up)
    place.sheet.text(*at, text, fontsize=points, color=colour, ha="left", va="baseline")


def caption(one: Shown) -> str:
    return f"{label(one.label)}  {label(one.where, 60)}"


def stops(one: Shown) -> tuple[str, ...]:
    """The colours of a map."""
    return SIGNED if one.signed else WEIGHT if one.role == "attention" else NORM


def said(figure: views.Figure, *more: str) -> list[str]:
    """What a reader must know: what is hidden, what the view adds, the figure's note, and the signature."""
    look, hidden = figure.look, {"special": "special tokens", "punctuation": "punctuation"}
    rows = "brought back to their sum" if look.rescale and not figure.difference else "not rescaled"
    if look.rescale and figure.signed and not figure.difference:
        rows += " where nothing is below 0"
    hiding = f"Without {' and '.join(hidden[name] for name in look.hide)}, rows {rows}." if hides(figure) else ""
    return [" ".join(filter(None, (*more, hiding))), figure.note, figure.signature]


def scale(place: Place, one: Shown, left: float, top: float, width: float, ends: tuple[str, ...]) -> None:
    """A colour bar lying down, with what its ends (and its middle) stand for."""
    import numpy as np

    axes = place.axes(left, top, width, 0.09)
    shades = np.linspace(0, 1, 256)[None]
    axes.imshow(shades, cmap=ramp(stops(one)), vmin=0, vmax=1, extent=(0, width, 0.09, 0), aspect="auto")
    for number, end in enumerate(ends):
        part = number / (len(ends) - 1)
        align = "left" if part == 0 else "right" if part == 1 else "center"
        axes.text(part * width, 0.125, end, fontsize=SMALL, color=INK, ha=align, va="top")


def ends(one: Shown) -> tuple[str, ...]:
    """0 to the largest; for a signed map the largest on both sides of 0."""
    return (f"−{one.top:.3g}", "0", f"+{one.top:.3g}") if one.signed else ("0", f"{one.top:.3g}")
