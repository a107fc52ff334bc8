"""Highlighted text in the terminal: coloured words, then a table of signed bars."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from normlens.views.glyphs import fit, width
from normlens.views.highlights.data import Highlight, Highlights
from normlens.views.text import SIGNED, visible_line

ROWS, LABEL, HALF = 24, 16, 12  # rows of the table, cells of a token, cells of a bar to one side
INK = {0: 15, 1: 15, 9: 15, 10: 15}  # white letters on the darkest steps; black on the others


def highlights_text(shown: Highlights, *, color: bool, width: int) -> str:
    """The text with its scores, the strongest tokens in a table, and what the scores add up to."""
    total = shown.total
    answer = len(shown.steps) > 1
    lines = [visible_line(f"{shown.title}. {shown.says}"), ""]
    if color:
        lines += [*_wrapped(_painted(shown, total), width), ""]
    lines += _table(shown, total)
    lines += ["", *shown.told(total)]
    if answer:
        lines += ["", "Each token of the answer:", *(line for step in shown.steps for line in _step(shown, step))]
    return "\n".join([*lines, "", visible_line(shown.signature)]) + "\n"


def _painted(shown: Highlights, one: Highlight) -> Iterator[tuple[str, int, bool]]:
    """Each token with its colours, its cells, and whether a space stands before it."""
    top = float(np.abs(one.scores).max(initial=0)) or 1.0
    for token, score in zip(shown.tokens, one.scores, strict=False):
        step = round((score / top + 1) / 2 * (len(SIGNED) - 1))
        text = token.shown
        yield f"\x1b[48;5;{SIGNED[step]};38;5;{INK.get(step, 16)}m{text}\x1b[0m", width(token.text), token.spaced


def _wrapped(pieces: Iterator[tuple[str, int, bool]], room: int) -> list[str]:
    lines, used = [""], 0
    for text, cells, spaced in pieces:
        if used and used + spaced + cells > room:
            lines, used, spaced = [*lines, ""], 0, False
        lines[-1] += (" " if spaced and used else "") + text
        used += cells + (spaced and used > 0)
    return lines


def _table(shown: Highlights, one: Highlight) -> list[str]:
    """The strongest tokens in the order of the text, each with a bar to the left below 0, to the right above."""
    scores = one.scores
    top = float(np.abs(scores).max(initial=0)) or 1.0
    places = np.sort(np.argsort(-np.abs(scores), kind="stable")[:ROWS])
    label = max([5, *(min(LABEL, width(shown.tokens[place].name)) for place in places)])
    lines = [f"{'token':{label}}  {'score':>9}"]
    for place in places:
        score = float(scores[place])
        filled = "█" * round(abs(score) / top * HALF)
        bar = f"{filled:>{HALF}}│" if score < 0 else f"{' ' * HALF if shown.signed else ''}│{filled}"
        lines.append(f"{fit(shown.tokens[place].name, label)}  {score:+9.3g}  {bar}")
    if len(scores) > ROWS:
        lines.append(f"The {ROWS} strongest of {len(scores)} tokens.")
    return lines


def _step(shown: Highlights, step: Highlight) -> list[str]:
    order = np.argsort(-np.abs(step.scores), kind="stable")[:4]
    named = ", ".join(f"{shown.tokens[place].shown} {step.scores[place]:+.3g}" for place in order)
    other = "" if step.target == step.prediction else f" (the model predicts {visible_line(step.prediction)})"
    return [f"  {fit(step.target, 14)} logit {step.logit:7.4g}  {named}{other}"]
