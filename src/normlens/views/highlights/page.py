"""Highlighted text as one page that stands alone: nothing is fetched, and without scripts the sums can be read."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from normlens.views.highlights.data import Highlight, Highlights
from normlens.views.highlights.text import highlights_text
from normlens.views.html import asset
from normlens.views.text import visible_line


def highlights_page(texts: Sequence[Highlights]) -> str:
    """One self-contained HTML page of one text or several."""
    return (
        _templates()
        .get_template("highlights.html")
        .render(
            title=visible_line(texts[0].total.heading),
            texts=[_text(text) for text in texts],
            data=Markup(json.dumps([_data(text) for text in texts]).replace("<", "\\u003c")),
            style=Markup(asset("highlights.css")),
            script=Markup(asset("highlights.js")),
        )
    )


def highlights_fragment(texts: Sequence[Highlights]) -> str:
    """The page for a notebook, in a frame, and the same as text beneath it."""
    plain = "\n\n".join(highlights_text(text, color=False, width=100) for text in texts)
    return (
        f'<iframe title="normlens: {html.escape(visible_line(texts[0].title))}" '
        f'srcdoc="{html.escape(highlights_page(texts))}" '
        'style="width:100%;height:420px;border:0;display:block"></iframe>'
        f'<details><summary>the same as text</summary><pre style="line-height:1.2">{html.escape(plain)}</pre></details>'
    )


def _text(text: Highlights) -> dict[str, Any]:
    """What the template shows of a text: its total."""
    total, words = text.total, [token.word for token in text.tokens if token.word is not None]
    top = _top(total)
    return {
        "title": text.title,
        "says": text.says,
        "signed": text.signed,
        "steps": text.steps,
        "total": total,
        "told": text.told(total)[1:],
        "signature": text.signature,
        "units": [
            "token",
            *(["word"] if len(set(words)) < len(words) else []),
            *(["sentence"] if len({token.sentence for token in text.tokens} - {None}) > 1 else []),
        ],
        "scale": (number(-top) if text.signed else "0", number(top)),
        "shown": [_token(text, total, top, place) for place in range(len(text.tokens))],
    }


def _token(text: Highlights, total: Highlight, top: float, place: int) -> dict[str, Any]:
    token, seen = text.tokens[place], place < len(total.scores)
    score = float(total.scores[place]) if seen else 0.0
    classes = {"special": token.special, "against": score < 0, "unseen": not seen}
    starts = text.source or text.given
    return {
        "name": token.name,
        "text": visible_line(token.shown),
        "spaced": token.spaced,
        "classes": " ".join(["token", *(name for name, is_so in classes.items() if is_so)]),
        "share": f"{abs(score) / top:.4f}",
        "number": number(score) if seen else "–",
        "tip": f"{token.shown}  {number(score)}" if seen else "",
        "asked": text.asked.get(place),
        "starts": text.continuation if place == starts else None,
    }


def _data(text: Highlights) -> dict[str, Any]:
    return {
        "total": _step(text, text.total),
        "steps": [_step(text, step) for step in text.steps],
        "word": [token.word for token in text.tokens],
        "sentence": [token.sentence for token in text.tokens],
        "signed": text.signed,
    }


def _step(text: Highlights, step: Highlight) -> dict[str, Any]:
    return {
        "target": visible_line(step.target),
        "heading": step.heading,
        "told": text.told(step)[1:],
        "scores": [float(f"{score:.6g}") for score in step.scores],
    }


def number(value: float) -> str:
    """A score with its sign, as the script of the page writes it."""
    return f"{value:+.3g}".replace("-", "−") if value else "0"


def _top(one: Highlight) -> float:
    return float(np.abs(one.scores).max(initial=0)) or 1.0


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FunctionLoader(asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["line"] = visible_line
    return environment
