"""A figure and a table as parts of a page, counted through it.

Room: text to HTML. Knows no study and no aligner.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

from normlens.reports.markup import escaped
from normlens.reports.pictures import Drawn
from normlens.reports.svg import inlined


@dataclass(slots=True)
class Numbering:
    """Figures and tables are counted through the page."""

    figures: int = 0
    tables: int = 0


def figure(drawn: Drawn, numbering: Numbering) -> str:
    """A drawing with its caption and its files."""
    numbering.figures += 1
    picture = drawn.picture
    stem = html.escape(f"figures/{picture.name}")
    return (
        f'<figure id="figure-{numbering.figures}"><div class="drawing">'
        f"{inlined(drawn.svg, name=picture.name, alt=picture.alt)}</div>"
        f"<figcaption><b>Figure {numbering.figures}.</b> {escaped(picture.caption)} "
        f'<span class="links"><a href="{stem}.svg">svg</a> <a href="{stem}.png">png</a></span></figcaption></figure>'
    )


def table(title: str, head: str, body: str, numbering: Numbering, *, undefined: bool, folded: str | None = None) -> str:
    """Rows of HTML under their headings; folded behind its title and what is said of it, if anything is."""
    numbering.tables += 1
    name = f"table-{numbering.tables}"
    note = " “–” is not defined." if undefined else ""
    made = (
        f'<figure class="table"><figcaption id="{name}"><b>Table {numbering.tables}.</b> {escaped(title)}.{note}'
        f'</figcaption><div class="scroll" tabindex="0" role="group" aria-labelledby="{name}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></figure>"
    )
    if folded is None:
        return made
    return f"<details><summary>Table {numbering.tables}: {escaped(title + folded)}</summary>{made}</details>"
