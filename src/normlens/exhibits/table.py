"""A table: rows of plain values, and how its columns are written for a reader."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from normlens.errors import NormlensError
from normlens.exhibits.numbers import DASH, count, number, percent, plain, rho
from normlens.views import visible, visible_line

Cell = str | int | float | None
Row = dict[str, Cell]
Form = Literal["text", "token", "number", "count", "percent", "rho", "decimal"]
WRITTEN: dict[Form, Callable[[Any], str]] = {
    "text": lambda value: visible_line(str(value)),
    "token": visible,
    "number": number,
    "count": count,
    "percent": percent,
    "rho": rho,
    "decimal": lambda value: f"{value:.1f}".replace("-", "−"),
}
LONG = 14  # a table of more rows is folded on the page, and not repeated in findings.json


class ExhibitError(NormlensError):
    """A sentence, table or figure that cannot be shown."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column for readers: which value of a row, under which heading, in which form."""

    name: str
    heading: str
    form: Form = "number"
    write: Callable[[Row], str] | None = None  # the text of a cell that is made of several values
    group: str = ""  # a heading above those of the columns beside each other that have it

    @property
    def is_text(self) -> bool:
        return self.form in ("text", "token")

    def written(self, row: Row) -> str:
        """The cell of this row as text; what is not defined is a dash."""
        if self.write is not None:
            return visible_line(self.write(row))
        value = row.get(self.name)
        return DASH if value is None else WRITTEN[self.form](value)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with a name for their files. Without `columns` every value is shown under its own name.

    Values become plain: numpy's numbers are Python's, NaN and infinity are None, True and False are "yes" and "no".
    Every row gets the same keys.
    """

    name: str
    title: str
    rows: Sequence[Row]
    columns: tuple[Column, ...] = ()
    shown: int | None = None  # rows on the page and in the terminal: None for all, 0 where the files are enough
    folded: bool = False  # behind its title on the page, also when it is short
    group: str = ""  # a value whose changes begin a group of rows, which it heads
    strong: str = ""  # a value that is "yes" in the rows to emphasise

    def __post_init__(self) -> None:
        keys = dict.fromkeys(key for row in self.rows for key in row)
        rows = [{key: _plain(self.name, key, row.get(key)) for key in keys} for row in self.rows]
        object.__setattr__(self, "rows", rows)
        unknown = [column.name for column in self.columns if rows and column.name not in keys]
        if unknown:
            raise ExhibitError(
                f"The table '{self.name}' has a column '{unknown[0]}' that no row has.",
                got=", ".join(map(str, keys)),
                do="name a value of the rows.",
            )

    @property
    def to_read(self) -> Sequence[Row]:
        """The rows that a reader is shown."""
        return self.rows if self.shown is None else self.rows[: self.shown]

    def group_of(self, row: Row) -> str:
        """The heading of the group that a row is in."""
        heading = visible_line(str(row[self.group])) if self.group else ""
        return heading[:1].upper() + heading[1:]

    @property
    def is_summary(self) -> bool:
        """Short enough to be repeated in findings.json."""
        return bool(self.rows) and self.shown is None and len(self.rows) <= LONG

    @property
    def headed(self) -> tuple[Column, ...]:
        """The columns to read; by default one for each value of the first row, in a form that fits it."""
        if self.columns or not self.rows:
            return self.columns
        return tuple(Column(name, visible_line(name.replace("_", " ")), self._form(name)) for name in self.rows[0])

    @property
    def column_groups(self) -> list[tuple[str, int]]:
        """The headings above the columns, and how many columns each is above; the first column stands alone.

        None where no column has one.
        """
        first, *others = self.headed or (Column("", ""),)
        groups = [(group, len(list(columns))) for group, columns in groupby(others, lambda column: column.group)]
        return [(first.group, 1), *groups] if any(column.group for column in self.headed) else []

    def _form(self, name: str) -> Form:
        values = [value for row in self.rows if (value := row.get(name)) is not None]
        if any(isinstance(value, str) for value in values):
            return "text"
        return "count" if all(isinstance(value, int) for value in values) else "number"


def _plain(table: str, key: str, value: Any) -> Cell:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int):
        return int(value)
    if getattr(value, "shape", None) == ():  # a number of numpy or torch
        number = value.item()
        return plain(number) if isinstance(number, float) else _plain(table, key, number)
    raise ExhibitError(
        f"The table '{table}' holds a value under '{key}' that is no text and no number.",
        got=f"{type(value).__name__}: {value!r:.80}",
        do="give a text, a number, True, False or None; for arrays, a row or a column for each number.",
    )
