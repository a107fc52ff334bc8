"""What each column of a table is called, means, and looks like; and which tables are for reading.

Room: words about tables. Used by the page and the terminal alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from normlens.reports.numbers import correlation, count, number, percent
from normlens.reports.rows.row import Cell, Row
from normlens.views.glyphs import visible
from normlens.views.text import visible_line

READ = {  # the tables a reader sees; the others are files
    "dispersion": ("dispersion", "inputs", "singular"),
    "categories": ("categories",),
    "correlation": ("correlation",),
    "frequency": ("frequency", "frequency_types"),
}
TITLES = {
    "dispersion": "Lengths ‖f(x)‖ of the transformed vectors, over all tokens",
    "inputs": "Lengths ‖x‖ of what the layers are given, over all tokens",
    "singular": "Singular values of f, in each layer the head of median CV",
    "categories": "What each category draws and gives, means over layers and heads",
    "correlation": "Spearman’s ρ between α and ‖f(x)‖, with all heads pooled, and taken head by head",
    "frequency": "Spearman’s ρ with the frequency rank",
    "frequency_types": "The most frequent types",
    "dispersion_heads": "every head",
    "inputs_layers": "every layer",
    "singular_heads": "singular values, every head",
    "singular_values": "singular values drawn",
    "categories_layers": "every layer",
    "categories_heads": "every head",
    "correlation_heads": "every head",
    "correlation_points": "points drawn",
    "frequency_points": "points drawn",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and how its cells are written."""

    heading: str
    written: Callable[[Any], str]
    number: bool = True


def _text(value: Any) -> str:
    return visible_line(str(value))


COLUMNS = {
    "row": Column("", _text, number=False),
    "where": Column("where", _text, number=False),
    "category": Column("category", _text, number=False),
    "token": Column("token", visible, number=False),
    "mean": Column("mean μ", number),
    "deviation": Column("deviation σ", number),
    "variation": Column("CV = σ/μ", number),
    "high": Column("largest", number),
    "low": Column("smallest", number),
    "count": Column("tokens", count),
    "largest": Column("largest", number),
    "smallest": Column("smallest, not 0", number),
    "ratio": Column("ratio", number),
    "tokens": Column("tokens", count),
    "sequences": Column("sequences", count),
    "weight_share": Column("share of α", percent),
    "norm_share": Column("share of ‖αf(x)‖", percent),
    "transformed": Column("mean ‖f(x)‖", number),
    "pairs": Column("pairs", count),
    "rho": Column("ρ, pooled", correlation),
    "rho_heads": Column("heads", count),
    "rho_negative": Column("with ρ < 0", count),
    "rho_median": Column("median ρ", correlation),
    "points": Column("points", count),
    "rho_weight": Column("ρ(rank, α)", correlation),
    "rho_norm": Column("ρ(rank, ‖f(x)‖)", correlation),
    "rank": Column("rank", count),
    "occurrences": Column("occurrences", count),
    "weight": Column("mean α", number),
}
HIDDEN = ("layer", "head", "drawn")  # said by "where", or the same in every row that is read


def written(rows: list[Row]) -> tuple[list[Column], list[list[str]]]:
    """A table for readers: its columns, and its cells as text."""
    keys = [key for key in (rows[0] if rows else ()) if key not in HIDDEN]
    columns = [COLUMNS[key] for key in keys]
    return columns, [[_cell(column, row[key]) for key, column in zip(keys, columns, strict=True)] for row in rows]


def _cell(column: Column, value: Cell) -> str:
    return "–" if value is None else column.written(value)
