"""A table and the links to files as parts of the page.

Room: text to HTML. Knows no aligner.
"""

from __future__ import annotations

from collections.abc import Sequence

from normlens.reports import exhibits
from normlens.reports.exhibits import Numbering
from normlens.reports.markup import escaped
from normlens.reports.numbers import DASH

Line = tuple[str, list[str]]  # class of a row, and its cells


def table(title: str, headings: list[str], lines: Sequence[Line], numbering: Numbering, *, folded: bool = False) -> str:
    """Rows under their headings; a row of class "group" heads those below it."""
    head = "".join(f'<th scope="col"{_mark(place)}>{escaped(text)}</th>' for place, text in enumerate(headings))
    body = "".join(_row(kind, cells, len(headings)) for kind, cells in lines)
    undefined = any(DASH in cells for _, cells in lines)
    return exhibits.table(title, head, body, numbering, undefined=undefined, folded="" if folded else None)


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
