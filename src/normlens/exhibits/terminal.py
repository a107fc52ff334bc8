"""A document in the terminal: sentences first, then the tables to read. No colour."""

from __future__ import annotations

import textwrap
from itertools import accumulate

from normlens.exhibits.document import Document
from normlens.exhibits.numbers import many
from normlens.exhibits.table import Column, Row, Table
from normlens.views import visible_line, width

LINE = 110  # cells a sentence may take
ROWS = 12  # rows of a table; files and tables have all


def show(document: Document, lead: str) -> str:
    """A summary to print: what was measured, what each study found, and the signature."""
    parts = [lead]
    for chapter in document.chapters:
        for article in chapter.articles:
            title = f", {article.title.lower()}" if article.title else ""
            sentences = [*article.section.sentences, *article.section.notes]
            parts.append(f"{chapter.name}{title}\n" + "".join(bullet(line) + "\n" for line in sentences))
            parts += [text_table(table) for table in article.tables if table.shown != 0]
    return "\n".join([*parts, *map(visible_line, document.signatures)]) + "\n"


def bullet(sentence: str) -> str:
    """A sentence as an item of a list, broken where the line ends."""
    return textwrap.fill(visible_line(sentence), LINE, initial_indent="• ", subsequent_indent="  ")


def text_table(table: Table, rows: int | None = ROWS, line: int | None = LINE) -> str:
    """The one text table: its title, headings, and rows in columns, as many as fit; groups head their rows.

    A star marks the strong rows. Without `rows` and `line` the whole table is written.
    """
    kept = list(table.to_read)[:rows]
    columns = table.headed if line is None else _fitting(table.headed, kept, line)
    widths = [_width(column, kept) for column in columns]
    mark = "  " if table.strong else ""
    lines, group = [mark + _line([column.heading for column in columns], widths, columns)], ""
    for row in kept:
        if table.group_of(row) != group:
            group = table.group_of(row)
            lines.append(group)
        star = "* " if mark and row.get(table.strong) == "yes" else mark
        lines.append(star + _line([column.written(row) for column in columns], widths, columns))
    left_out = {"row": len(table.rows) - len(kept), "column": len(table.headed) - len(columns)}
    more = [many(count, f"more {name}") for name, count in left_out.items() if count]
    if more:
        lines.append(f"{' and '.join(more)} not shown")
    title = f"  {visible_line(table.title)}\n" if table.title else ""
    return title + "".join(f"  {line}".rstrip() + "\n" for line in lines)


def _fitting(columns: tuple[Column, ...], rows: list[Row], line: int) -> tuple[Column, ...]:
    """The first columns that fit into a line, two at least."""
    ends = accumulate(_width(column, rows) + 2 for column in columns)
    return columns[: max(2, sum(end <= line for end in ends))]


def _width(column: Column, rows: list[Row]) -> int:
    return max(_cells(text) for text in (column.heading, *(column.written(row) for row in rows)))


def _line(texts: list[str], widths: list[int], columns: tuple[Column, ...]) -> str:
    return "  ".join(
        text + " " * (room - _cells(text)) if column.is_text else " " * (room - _cells(text)) + text
        for text, column, room in zip(texts, columns, widths, strict=True)
    )


def _cells(text: str) -> int:
    return width(text) if text else 0
