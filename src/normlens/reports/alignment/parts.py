"""A figure, a table and the links to files as parts of the page.

Room: text to HTML. Knows no aligner.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from normlens.reports.markup import escaped
from normlens.reports.numbers import DASH
from normlens.reports.pictures import Drawn
from normlens.reports.section import Numbering
from normlens.reports.svg import inlined

Line = tuple[str, list[str]]  # class of a row, and its cells


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


def table(title: str, headings: list[str], lines: Sequence[Line], numbering: Numbering, *, folded: bool = False) -> str:
    """Rows under their headings; a row of class "group" heads those below it."""
    numbering.tables += 1
    head = "".join(f'<th scope="col"{_mark(place)}>{escaped(text)}</th>' for place, text in enumerate(headings))
    body = "".join(_row(kind, cells, len(headings)) for kind, cells in lines)
    name = f"table-{numbering.tables}"
    undefined = " “–” is not defined." if any(DASH in cells for _, cells in lines) else ""
    made = (
        f'<figure class="table"><figcaption id="{name}"><b>Table {numbering.tables}.</b> {escaped(title)}.{undefined}'
        f'</figcaption><div class="scroll" tabindex="0" role="group" aria-labelledby="{name}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></figure>"
    )
    return f"<details><summary>Table {numbering.tables}: {escaped(title)}</summary>{made}</details>" if folded else made


def files(name: str) -> str:
    """Where the numbers are."""
    csv, json = (f'<a href="tables/{name}.{kind}">{kind}</a>' for kind in ("csv", "json"))
    return f'<p class="files">Numbers: {name} {csv} {json}.</p>'


def _row(kind: str, cells: list[str], columns: int) -> str:
    if kind == "group":
        return f'<tr class="group"><th scope="rowgroup" colspan="{columns}">{escaped(cells[0])}</th></tr>'
    first, *rest = cells
    others = "".join(f"<td>{escaped(cell)}</td>" for cell in rest)
    mark = f' class="{kind}"' if kind else ""
    return f'<tr{mark}><th scope="row" class="text">{escaped(first)}</th>{others}</tr>'


def _mark(place: int) -> str:
    return "" if place else ' class="text"'
