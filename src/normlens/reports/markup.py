"""Free text and templates as HTML.

Room: text to HTML. Whatever a model, a corpus or a token is called, it stays text.
"""

from __future__ import annotations

import html
import re
from functools import cache
from importlib.resources import files

from normlens.views.text import visible_line


def escaped(text: str) -> str:
    """Text inside HTML: nothing hidden, no markup, and percentages and ρ = 0.75 kept on one line."""
    kept = re.sub(r"(?<=\d) %", "\u00a0%", html.escape(visible_line(text)))
    return kept.replace("ρ = ", "ρ\u00a0=\u00a0")


def bullets(sentences: list[str]) -> str:
    """Sentences as a list; nothing when there are none."""
    items = "".join(f"<li>{escaped(sentence)}</li>" for sentence in sentences)
    return f'<ul class="findings">{items}</ul>' if items else ""


def pairs(facts: list[tuple[str, str]]) -> str:
    """Names and what they are."""
    return "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in facts)


def filled(template: str, slots: dict[str, str]) -> str:
    """A template with its {{slots}} filled, all at once: what is put in is never looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: slots[slot[1]], template)


@cache
def asset(name: str) -> str:
    """One of the files that the page is made of."""
    return files("normlens.reports").joinpath("assets", name).read_text(encoding="utf-8")
