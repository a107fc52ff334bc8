"""Bars: a number for each token, over all queries or for a pinned one.

Shares of all measures have one scale, so that attention weights and contributions can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normlens.views.bars import Bars
from normlens.views.bars import bars as bars_of
from normlens.views.figure import Figure
from normlens.views.plots.cells import widest, write_token
from normlens.views.plots.paint import INK, PALE, token_label
from normlens.views.plots.sheet import EDGE, GAP, SMALL, Block, Place, caption, said, sheet, stops
from normlens.views.plots.style import WIDTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

STEP = 0.15  # inches from bar to bar
NUMBER = 0.42  # inches for the number beside a bar


def bars(figure: Figure) -> Drawing:
    """One set of bars for each measure; names stand on the left of the first, and wherever tokens are others."""
    found = bars_of(figure)
    named = [number == 0 or one.tokens != found[number - 1].tokens for number, one in enumerate(found)]
    beside = [widest(one.tokens) + 0.06 if names else 0.0 for one, names in zip(found, named, strict=True)]
    room = (WIDTH - 2 * EDGE - GAP * (len(found) - 1) - sum(beside)) / len(found) - NUMBER
    room = min(max(room, 0.8), 1.9)
    blocks = [_block(one, room, left) for one, left in zip(found, beside, strict=True)]
    order = f"Ordered by {found[0].map.label}." if figure.look.order == "size" else ""
    return sheet(blocks, said(figure, *told(figure, found), order))


def _block(one: Bars, room: float, beside: float) -> Block:
    height = STEP * len(one.tokens)
    signed = one.map.signed
    side = NUMBER if signed else 0.0  # numbers below 0 stand on the left
    colours = np.where(one.values < 0, stops(one.map)[1], stops(one.map)[7 if signed else 4])

    def paint(place: Place) -> None:
        axes = place.axes(beside + side, 0.03, room - side, height)
        axes.set_xlim((-1.0 if signed else 0.0), 1.0)
        places = STEP * (np.arange(len(one.tokens)) + 0.5)
        parts = one.values / max(one.top, 1e-12)
        axes.barh(places, parts, 0.74 * STEP, color=colours)
        axes.plot([0, 0], [0, height], color=PALE, linewidth=0.7)
        inch = (2 if signed else 1) / (room - side)
        for at, part, value in zip(places, parts, one.values, strict=True):
            shift, align = (-0.04, "right") if part < 0 else (0.04, "left")
            axes.text(part + shift * inch, at, number(one, value), fontsize=SMALL, color=INK, ha=align, va="center")
        for at, token in zip(places, one.tokens, strict=True):
            if beside:
                write_token(axes, token, (-1 if signed else 0) - (0.05 + side) * inch, at, align="right")

    return Block(beside + room + NUMBER, 0.03 + height, caption_of(one), paint)


def caption_of(one: Bars) -> str:
    return caption(one.map).replace(", each head", f", mean of {len(one.map.rows)} heads")


def number(one: Bars, value: float) -> str:
    if one.unit == "share":
        return f"{value:.1%}"
    return f"{value:+.2g}".replace("-", "−") if one.map.signed else f"{value:.3g}"


def told(figure: Figure, found: tuple[Bars, ...]) -> list[str]:
    """What the bars are, in a sentence."""
    token = ""
    if figure.look.pin:
        axis, at = figure.look.pin
        panel = figure.panels[figure.groups[str(figure.look.kind)][0]]
        token = f"“{token_label(figure.sides[getattr(panel, axis)].tokens[at])}” (token {at})"
    what = next((one.what for one in found if not one.map.strip), None)
    sentences = {
        "keys": "Each key, over all queries",
        "keys of the pin": f"Each key, for the query {token}",
        "queries of the pin": f"Each query, for the key {token}",
    }
    if what is None:
        return []
    if any(one.unit == "share" for one in found):
        return [f"{sentences[what]}: its share of the total."]
    return [f"{sentences[what]}{': the mean' if what == 'keys' else ''}."]
