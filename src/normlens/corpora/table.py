"""Texts in a table: .csv with quotes, .tsv without.

A column is known by name when the first row holds names, by number (from 0) when it does not.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from itertools import chain

from normlens.corpora.item import CorpusError, Item, Layout

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}


def rows(text: Iterator[str], name: str, kind: str, layout: Layout, note: Callable[[str], None]) -> Iterator[Item]:
    """One item per row; rows of empty cells are passed over."""
    first = next(text, "")
    reader = _reader(chain([first], text), first, kind)
    try:
        header = next(reader, [])
        texts, label, has_names = _columns(header, name, layout, note)
        for row in reader if has_names else chain([header], reader):
            where = f"{name}:{reader.line_num}"
            if not any(cell.strip() for cell in row):
                continue
            if len(row) <= max(texts):
                raise CorpusError(
                    f"{where}: no column {max(texts)}: the row has {len(row)}, counted from 0.",
                    got=f"{row!r:.80}",
                    cause="a separator or a line end inside a text that is not quoted.",
                    do="correct the row, or convert the table to .jsonl.",
                )
            answer = row[label] if label is not None and label < len(row) else None
            yield Item(tuple(row[column] for column in texts), None, where, answer)
    except csv.Error as error:
        raise CorpusError(
            f"{name}:{reader.line_num}: this row of the table cannot be read.",
            got=f"{error}",
            cause="a quotation mark that is never closed, or a text too long for a table.",
            do='write a quotation mark inside a quoted text twice (""); or convert the table to .jsonl.',
        ) from error


def _reader(text: Iterator[str], first: str, kind: str):
    """Quotes belong to .csv; in .tsv they are part of the text. A spreadsheet may separate .csv by semicolons."""
    ended = (line + "\n" for line in text)
    if kind != ".csv":
        return csv.reader(ended, delimiter=DELIMITERS[kind], quoting=csv.QUOTE_NONE)
    return csv.reader(ended, delimiter=";" if ";" in first and "," not in first else ",", strict=True)


def _columns(
    header: list[str], name: str, layout: Layout, note: Callable[[str], None]
) -> tuple[list[int], int | None, bool]:
    """The columns of the texts, that of the labels, and whether the first row holds names."""
    names = [cell.strip() for cell in header]
    if layout.column is None and "text" not in names and len(names) == 1:
        note(f"{name}: its only column is read, and its first row taken as the name: {names[0]!r:.60}")
        wanted: list[str | int] = [names[0]]
    else:
        wanted = ["text" if layout.column is None else layout.column]
    if layout.pair_column is not None:
        wanted.append(layout.pair_column)
    elif layout.column is None and "text_pair" in names:
        wanted.append("text_pair")
    label = layout.label_column
    has_names = any(column in names for column in (*wanted, label))
    if label is None and has_names and "label" in names and "label" not in wanted:
        label = "label"
    found = [_column(column, names, name) for column in wanted]
    return found, None if label is None else _column(label, names, name), has_names


def _column(column: str | int, names: list[str], name: str) -> int:
    if column in names:
        return names.index(str(column))
    if str(column).isdecimal() and int(column) < len(names):
        return int(column)
    raise CorpusError(
        f"'{name}' has no column '{column}'.",
        got=f"{', '.join((f'{i}: {cell!r:.30}' for i, cell in enumerate(names))) or 'nothing'}.",
        do="give the column of the text with --column (column= in Python), by its name or by its number from 0, that "
        "of a second text with --pair-column (pair_column=), and that of a label with --label-column (label_column=).",
    )
