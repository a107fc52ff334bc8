"""One study of one kind of attention as part of the page: what was found, its figures, its tables, its files.

Room: results to HTML.
"""

from __future__ import annotations

from normlens.reports.exhibits import Numbering, figure, table
from normlens.reports.kinds import explained
from normlens.reports.kinds import title as kind_title
from normlens.reports.markup import bullets, escaped
from normlens.reports.numbers import DASH
from normlens.reports.parts import pictures_of, results, said, tables_of
from normlens.reports.pictures import Drawn
from normlens.reports.rows.columns import READ, TITLES, written
from normlens.reports.rows.row import Row
from normlens.studies import STUDIES
from normlens.studies.results import Categories, Findings, Frequency

LONG = 14  # a table of more rows is folded
TYPES = 12  # so many types are shown; the file has all


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


def _table(name: str, rows: list[Row], numbering: Numbering) -> str:
    shown = rows[:TYPES] if name == "frequency_types" else rows
    columns, cells = written(shown)
    marks = ["" if column.number else ' class="text"' for column in columns]
    head = "".join(f'<th scope="col"{mark}>{escaped(c.heading)}</th>' for c, mark in zip(columns, marks, strict=True))
    body = "".join(f"<tr>{_cells(row, marks)}</tr>" for row in cells)
    folded = f", {len(shown)} rows" if len(shown) > LONG else None
    return table(TITLES[name], head, body, numbering, undefined=any(DASH in row for row in cells), folded=folded)


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
