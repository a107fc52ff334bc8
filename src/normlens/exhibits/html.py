"""A document as one page that stands alone: nothing is fetched (a content security policy forbids it).

The page, its style and its script are the real files in assets/. Whatever a model, a corpus or a token is called, it
stays text: jinja2 escapes it, after everything invisible in it was made visible.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from normlens.exhibits.document import Document
from normlens.exhibits.figures import Figure
from normlens.exhibits.numbers import DASH
from normlens.exhibits.plots import Drawing
from normlens.exhibits.svg import inlined
from normlens.exhibits.table import LONG, Table
from normlens.views import visible_line


def page(document: Document, drawings: Mapping[str, Drawing]) -> str:
    """One self-contained HTML page; `drawings` holds every figure by the name of its files."""
    return (
        _templates()
        .get_template("page.html")
        .render(
            document=document,
            drawings=drawings,
            style=Markup(_asset("report.css")),
            script=Markup(_asset("tables.js")),
            script_hash=script_hash(),
            numbers={"figure": 0, "table": 0},
        )
    )


def drawing_page(figure: Figure, drawing: Drawing, *, title: str, signature: str) -> str:
    """One self-contained HTML page of one figure."""
    template = _templates().get_template("drawing.html")
    return template.render(
        figure=figure, shown=drawing, title=title, signature=signature, style=Markup(_asset("report.css"))
    )


def script_hash() -> str:
    """The digest by which a content security policy allows the script of a page, and no other."""
    return base64.b64encode(hashlib.sha256(_asset("tables.js").encode()).digest()).decode()


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["text"] = _text
    environment.filters["folds"] = _folds
    environment.globals.update(is_table=lambda exhibit: isinstance(exhibit, Table), drawing=_drawing, next=_next)
    environment.globals.update(is_folded=_is_folded, lines=_lines)
    environment.tests["holds_dash"] = lambda cells: DASH in cells
    return environment


def _text(text: str) -> Markup:
    """Text inside HTML: nothing hidden, no markup, and percentages and ρ = 0.75 kept on one line."""
    kept = re.sub(r"(?<=\d) %", "\u00a0%", str(escape(visible_line(text))))
    return Markup(kept.replace("ρ = ", "ρ\u00a0=\u00a0"))


def _drawing(drawing: Drawing, alt: str) -> Markup:
    return Markup(inlined(drawing.svg, name=drawing.name, alt=alt))


def _next(numbers: dict[str, int], what: str) -> int:
    numbers[what] += 1
    return numbers[what]


def _is_folded(table: Table) -> bool:
    return table.folded or (len(table.to_read) > LONG and not table.column_groups)  # the latter scroll by themselves


def _lines(table: Table) -> list[tuple[str, list[str]]]:
    """(class, cells) of every line to read; a line of class "group" heads those below it."""
    lines: list[tuple[str, list[str]]] = []
    group = ""
    for row in table.to_read:
        if table.group_of(row) != group:
            group = table.group_of(row)
            lines.append(("group", [group]))
        strong = "best" if table.strong and row.get(table.strong) == "yes" else ""
        lines.append((strong, [column.written(row) for column in table.headed]))
    return lines


def _folds(exhibits: Any) -> list[tuple[str, list[Any]]]:
    """Exhibits that follow each other in the same fold, together."""
    runs: list[tuple[str, list[Any]]] = []
    for exhibit in exhibits:
        fold = "" if isinstance(exhibit, Table) else exhibit.folded
        if runs and runs[-1][0] == fold:
            runs[-1][1].append(exhibit)
        else:
            runs.append((fold, [exhibit]))
    return runs


@cache
def _asset(name: str) -> str:
    return files("normlens.exhibits").joinpath("assets", name).read_text(encoding="utf-8")
