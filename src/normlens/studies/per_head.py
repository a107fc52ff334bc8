"""One row per head: what a study says of every head, as columns of its table and of the profile of the heads.

PerHead(result.layers, (*by_measure("entropy", "entropy", result.entropy), HeadColumn("rank", "rank", result.rank)))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from normlens.exhibits import Column, ExhibitError, Form, Row, Table, head_name, listing

MEASURES = {"weights": "α", "norms": "‖αf(x)‖"}
OF_ROWS = ("head_name", "layer", "head")  # what every row begins with
HEADS = (Column("head_name", "head", "text"),)


@dataclass(frozen=True, slots=True, eq=False)
class HeadColumn:
    """One value of every head: a number, NaN for none, or a text, "" for none."""

    name: str
    heading: str
    values: np.ndarray  # (layer, head)
    form: Form = "number"
    shown: bool = True  # on the page; the files have every column
    study: str = ""  # that it comes from, in the profile of the heads


@dataclass(frozen=True, slots=True, eq=False)
class PerHead:
    """Columns over the same layers; a head without any value is no head."""

    layers: tuple[int, ...]
    columns: tuple[HeadColumn, ...]

    def __post_init__(self) -> None:
        names = [*OF_ROWS, *(column.name for column in self.columns)]
        twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
        if twice is not None:
            raise ExhibitError(
                f"Two columns of every head are called '{twice}'.",
                got=", ".join(names[len(OF_ROWS) :]),
                do=f"give each a name of its own; {', '.join(OF_ROWS)} are in every row.",
            )
        for column in self.columns:
            if column.values.ndim != 2 or len(column.values) != len(self.layers):
                raise ExhibitError(
                    f"The column '{column.name}' must have a row for each layer and a value for each head.",
                    got=f"an array of shape {column.values.shape} for {len(self.layers)} layers",
                    do="give an array (layer, head), NaN or an empty text where there is no head.",
                )

    def rows(self) -> list[Row]:
        """One for every head: its name, layer, number, and the values."""
        rows: list[Row] = []
        shape = max((column.values.shape for column in self.columns), default=(0, 0))
        for place, head in np.ndindex(shape):
            values = {column.name: _value(column.values[place, head]) for column in self.columns}
            if any(value is not None for value in values.values()):
                layer = self.layers[place]
                rows.append({"head_name": head_name(layer, head), "layer": layer, "head": head, **values})
        return rows

    def table(self, name: str, title: str, *, by: str = "", shown: int | None = None) -> Table:
        """The table of a section; `by` names the column whose largest value comes first."""
        rows = self.rows()
        if by:
            rows.sort(key=lambda row: -float(row[by] or 0))
        in_files = {column.name for column in self.columns if not column.shown}
        return Table(name, title, rows, tuple(c for c in self.headed if c.name not in in_files), shown=shown)

    @property
    def headed(self) -> tuple[Column, ...]:
        """Every column as it is read, the name of the head first."""
        return HEADS + tuple(Column(c.name, c.heading, c.form, group=c.study) for c in self.columns)

    def at(self, layers: tuple[int, ...], heads: int) -> PerHead:
        """The same over these layers and so many heads; where there was no head there is no value."""
        columns = []
        for column in self.columns:
            is_text = column.values.dtype.kind in "OU"
            values = np.full((len(layers), heads), "" if is_text else np.nan, object if is_text else np.float64)
            places = [layers.index(layer) for layer in self.layers]
            values[places, : column.values.shape[1]] = column.values
            columns.append(replace(column, values=values))
        return PerHead(layers, tuple(columns))


def by_measure(
    name: str, heading: str, values: Mapping[str, np.ndarray], form: Form = "number", *, shown: bool = True
) -> tuple[HeadColumn, ...]:
    """A value by weights and the same by norms, as two columns beside each other."""
    return tuple(
        HeadColumn(f"{name}_{measure}", f"{heading} {symbol}".strip(), values[measure], form, shown)
        for measure, symbol in MEASURES.items()
        if measure in values
    )


def texts(rows: Sequence[Sequence[str | None]]) -> np.ndarray:
    """Texts by layer and head as an array; layers may differ in their number of heads."""
    array = np.full((len(rows), max(map(len, rows), default=0)), "", dtype=object)
    for place, row in enumerate(rows):
        array[place, : len(row)] = [text or "" for text in row]
    return array


def few_names(layers: Sequence[int], cells: Iterable[tuple[int, int]]) -> str:
    """The names of some heads, given by (place of the layer, head), and how many more there are."""
    names = [head_name(layers[place], head) for place, head in cells]
    return listing(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def _value(value: object) -> str | float | None:
    if isinstance(value, str):
        return value or None
    number = float(value)  # pyright: ignore[reportArgumentType]
    return number if np.isfinite(number) else None
