"""One study of one kind of attention as part of the page: what was found, its figures, its tables, its files.

Room: results to HTML.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

from normlens.reports.kinds import explained
from normlens.reports.kinds import title as kind_title
from normlens.reports.markup import bullets, escaped
from normlens.reports.numbers import DASH
from normlens.reports.parts import pictures_of, results, said, tables_of
from normlens.reports.pictures import Drawn
from normlens.reports.rows.columns import READ, TITLES, written
from normlens.reports.rows.row import Row
from normlens.reports.svg import inlined
from normlens.studies import STUDIES
from normlens.studies.results import Categories, Findings, Frequency

LONG = 14  # a table of more rows is folded
TYPES = 12  # so many types are shown; the file has all


@dataclass(slots=True)
class Numbering:
    """Figures and tables are counted through the page."""

    figures: int = 0
    tables: int = 0


def section(findings: Findings, study: str, kind: str, drawn: dict[str, Drawn], numbering: Numbering) -> str:
    """The part of the page for one study and one kind."""
    result = results(findings, study)[kind]
    many = len({kind for study in STUDIES for kind in results(findings, study)}) > 1
    tables = tables_of(result)
    notes = [*_notes(result), *getattr(result, "notes", ())]
    parts = [
        f'<article id="{study}-{escaped(kind)}">',
        f"<h3>{escaped(kind_title(kind))}</h3>" if many else "",
        f'<p class="kind">{escaped(explained(kind, causal=kind in findings.causal, study=study))}</p>',
        bullets(said(result)),
        *(figure(drawn[picture.name], numbering) for picture in pictures_of(result)),
        *(_table(name, tables[name], numbering) for name in READ[study] if tables.get(name)),
        *(f'<p class="small">{escaped(note)}</p>' for note in notes),
        _files(tables, kind),
        "</article>",
    ]
    return "\n".join(part for part in parts if part)


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


def _table(name: str, rows: list[Row], numbering: Numbering) -> str:
    numbering.tables += 1
    shown = rows[:TYPES] if name == "frequency_types" else rows
    columns, cells = written(shown)
    title = TITLES[name]
    marks = ["" if column.number else ' class="text"' for column in columns]
    head = "".join(f'<th scope="col"{mark}>{escaped(c.heading)}</th>' for c, mark in zip(columns, marks, strict=True))
    body = "".join(f"<tr>{_cells(row, marks)}</tr>" for row in cells)
    undefined = " “–” is not defined." if any(DASH in row for row in cells) else ""
    name = f"table-{numbering.tables}"
    table = (
        f'<figure class="table"><figcaption id="{name}"><b>Table {numbering.tables}.</b> {escaped(title)}.{undefined}'
        f'</figcaption><div class="scroll" tabindex="0" role="group" aria-labelledby="{name}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></figure>"
    )
    if len(shown) <= LONG:
        return table
    return f"<details><summary>Table {numbering.tables}: {escaped(title)}, {len(shown)} rows</summary>{table}</details>"


def _cells(row: list[str], marks: list[str]) -> str:
    first, *rest = row
    others = "".join(f"<td{mark}>{escaped(cell)}</td>" for cell, mark in zip(rest, marks[1:], strict=True))
    return f'<th scope="row"{marks[0]}>{escaped(first)}</th>{others}'


def _files(tables: dict[str, list[Row]], kind: str) -> str:
    links = [
        f'{escaped(TITLES[name] if name not in READ_NAMES else name)} <a href="tables/{name}_{kind}.csv">csv</a> '
        f'<a href="tables/{name}_{kind}.json">json</a>'
        for name, rows in tables.items()
        if rows
    ]
    return f'<p class="files">Numbers: {"; ".join(links)}.</p>' if links else ""


READ_NAMES = {name for names in READ.values() for name in names}


def _notes(result: object) -> list[str]:
    """What a reader must know about these very numbers."""
    if isinstance(result, Frequency):
        return [f"Ranks: {result.source}."]
    if isinstance(result, Categories):
        short = [
            f"{name} in {found} of {result.total}"
            for name, found in zip(result.names, result.sequences, strict=True)
            if 0 < found < result.total
        ]
        return [f"Not every sequence has a token of every category: {'; '.join(short)}."] if short else []
    return []
