"""Findings in the terminal: sentences first, then the small tables.

Room: results to characters. No colour, no files.
"""

from __future__ import annotations

import textwrap

from normlens.reports.kinds import explained, title
from normlens.reports.numbers import many, number
from normlens.reports.parts import results, said, tables_of
from normlens.reports.rows.columns import READ, TITLES, written
from normlens.reports.rows.row import Row
from normlens.studies import STUDIES
from normlens.studies.results import Findings
from normlens.views.glyphs import width
from normlens.views.text import visible_line

LINE = 110  # cells a sentence may take
ROWS = 12  # rows of a table; the files of a report have all


def show(findings: Findings) -> str:
    """A summary to print: what was looked at, what was found, study by study, and the signature."""
    cut = f"at most {many(findings.length, 'token')} each"
    looked = f"{many(findings.items, 'item')}, {many(findings.tokens, 'token')}, {cut}"
    parts = [
        f"{visible_line(findings.model)} on {visible_line(findings.corpus)}\n"
        f"{looked}; parts rebuilt the whole to {number(findings.error, 2)}\n"
    ]
    for study in STUDIES:
        for kind, result in results(findings, study).items():
            sentences = [*said(result), *getattr(result, "notes", ())]
            tables = tables_of(result)
            parts.append(f"{study}, {title(kind).lower()}\n" + "".join(bullet(line) + "\n" for line in sentences))
            if kind in findings.causal and study != "dispersion":
                parts.append(_wrapped(explained(kind, causal=True, study=study)))
            parts += [_table(name, tables[name]) for name in READ[study] if tables.get(name)]
    parts += ["".join(bullet(note) + "\n" for note in findings.notes)] if findings.notes else []
    return "\n".join([*parts, visible_line(str(findings.signature))]) + "\n"


def bullet(sentence: str) -> str:
    """A sentence as an item of a list, broken where the line ends."""
    return textwrap.fill(visible_line(sentence), LINE, initial_indent="• ", subsequent_indent="  ")


def _table(name: str, rows: list[Row]) -> str:
    columns, cells = written(rows[:ROWS])
    lines = [[column.heading for column in columns], *cells]
    widths = [max(_cells(line[place]) for line in lines) for place in range(len(columns))]
    drawn = []
    for line in lines:
        drawn.append(
            "  ".join(
                " " * (cells - _cells(text)) + text if column.number else text + " " * (cells - _cells(text))
                for text, column, cells in zip(line, columns, widths, strict=True)
            ).rstrip()
        )
    left = f"{len(rows) - ROWS} more rows in the files of the report\n" if len(rows) > ROWS else ""
    return f"  {TITLES[name]}\n" + "".join(f"  {line}\n" for line in drawn) + (f"  {left}" if left else "")


def _cells(text: str) -> int:
    return width(text) if text else 0


def _wrapped(text: str) -> str:
    return textwrap.fill(text, LINE, initial_indent="  ", subsequent_indent="  ") + "\n"
