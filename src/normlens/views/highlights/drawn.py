"""Highlighted text as a drawing: the words in boxes of colour, one line of them after another, and the scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from normlens.views.highlights.data import Highlight, Highlights
from normlens.views.plots.paint import INK, MUTED, label, ramp, token_label, width_of
from normlens.views.plots.style import WIDTH, Form, check, house_style, written

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS, LINE, GAP, MARGIN, PAD = 10.0, 0.27, 0.07, 0.06, 0.025  # letters; inches of a line, a space, borders
FAINT = 0.05  # share of the largest score below which a sign is not marked
PALE = ("#74aed4", "#f7f7f7", "#f0876a")  # against, nothing, for: pale enough for black letters


@dataclass(frozen=True, slots=True)
class Placed:
    """A token where it is drawn, in inches from the left and in lines from the top."""

    text: str
    special: bool
    score: float | None
    left: float
    wide: float
    line: int


def drawn(texts: Sequence[Highlights], form: Form) -> bytes:
    """Every text, and each prediction of an answer, as the bytes of a file."""
    check()
    from matplotlib.figure import Figure

    rows = [(text, step) for text in texts for step in text.steps]
    with house_style("highlights"):
        laid = [_laid(text, step) for text, step in rows]
        heights = [LINE * (2 + max((token.line for token in tokens), default=0)) for tokens in laid]
        total = sum(heights) + 0.45
        figure = Figure(figsize=(WIDTH, total))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, WIDTH)
        axes.set_ylim(total, 0)
        axes.set_axis_off()
        top = MARGIN
        for (text, step), tokens, height in zip(rows, laid, heights, strict=True):
            _draw(axes, text, step, tokens, top)
            top += height
        _scale(axes, texts[0], top + 0.16)
        return written(figure, form)


def _laid(text: Highlights, step: Highlight) -> list[Placed]:
    """Tokens from left to right, on as many lines as they need."""
    placed, left, line = [], MARGIN, 0
    for place, token in enumerate(text.tokens[: len(step.scores)]):
        written_as = token_label(token.text, special=token.special, longest=40)
        wide = max(width_of(written_as, POINTS), 0.04) + 2 * PAD
        left += GAP if token.spaced and left > MARGIN else 0
        if left + wide > WIDTH - MARGIN and left > MARGIN:
            left, line = MARGIN, line + 1
        placed.append(Placed(written_as, token.special, float(step.scores[place]), left, wide, line))
        left += wide
    return placed


def _draw(axes: Axes, text: Highlights, step: Highlight, tokens: Sequence[Placed], top: float) -> None:
    from matplotlib.patches import Rectangle

    colours, largest = ramp(PALE), float(np.abs(step.scores).max(initial=0)) or 1.0
    axes.text(MARGIN, top + LINE / 2, label(step.heading, longest=96), size=9, va="center", color=MUTED)
    for token in tokens:
        middle = top + LINE * (token.line + 1.5)
        share = (token.score or 0.0) / largest
        corner = (token.left, middle - LINE * 0.42)
        axes.add_patch(Rectangle(corner, token.wide, LINE * 0.84, color=colours((share + 1) / 2), linewidth=0))
        if share < -FAINT:  # the sign is not left to the colour alone
            low = middle + LINE * 0.38
            axes.plot([token.left, token.left + token.wide], [low, low], "--", color=INK, linewidth=0.7)
        style = "italic" if token.special else "normal"
        axes.text(token.left + PAD, middle, token.text, size=POINTS, va="center_baseline", color=INK, style=style)


def _scale(axes: Axes, text: Highlights, top: float) -> None:
    """What the colours mean, and the method."""
    wide = 1.1
    stops = np.linspace(-1 if text.signed else 0, 1, 64)[None]
    axes.imshow(
        stops, cmap=ramp(PALE), vmin=-1, vmax=1, extent=(MARGIN, MARGIN + wide, top + 0.06, top - 0.06), aspect="auto"
    )
    ends = "against (dashed) … for" if text.signed else "0 … the largest score"
    note = f"{ends}, scaled to the largest score of each text.  {text.title}"
    axes.text(MARGIN + wide + 0.1, top, label(note, longest=110), size=8, va="center", color=MUTED)
