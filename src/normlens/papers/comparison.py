"""A paper's cells beside measured ones, whether they agree, and the same as a document to read."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from normlens.exhibits import (
    Article,
    Chapter,
    Column,
    Document,
    Row,
    Section,
    Table,
    as_csv,
    as_json,
    bullet,
    number,
    plain,
    text_table,
    write,
    write_file,
)
from normlens.studies import Findings
from normlens.views import visible_line

Verdict = Literal["agrees", "differs", "not measured", "not judged"]
VERDICTS: tuple[Verdict, ...] = ("agrees", "differs", "not measured", "not judged")
FILE = "findings.json"
STAND_IN = "stand-in model"  # the reason why nothing is said
Measured = int | float | str | None
AGREEMENT = {"agrees": "agree", "differs": "differ"}


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the paper. "not judged" is a number that is there, but that the paper says nothing about."""

    source: str  # "Table 1"
    what: str
    where: str
    paper: str  # as printed
    measured: Measured
    difference: int | float | None  # measured - paper, where both are numbers
    verdict: Verdict
    reason: str = ""  # why not measured, or not judged


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every cell, and what must be known to read them."""

    paper: str
    model: str
    data: str
    signature: str
    error: float  # how exactly the parts rebuilt the blocks
    other_data: str  # why the data is not the paper's; empty when it is
    other_model: str  # why the model is not the paper's; empty when it has its shape
    notes: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many cells have each verdict."""
        counter = Counter(cell.verdict for cell in self.cells)
        return {verdict: counter[verdict] for verdict in VERDICTS}

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "notes": list(self.notes), "counts": self.counts, "cells": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        """One mapping per cell; numbers with nine digits, all that 32-bit floats hold."""
        return [
            {name: plain(part) if isinstance(part, float) else part for name, part in asdict(cell).items()}
            for cell in self.cells
        ]

    @property
    def summary(self) -> str:
        """52 cells: 50 agree, 2 differ."""
        counts = ", ".join(f"{count} {AGREEMENT.get(name, name)}" for name, count in self.counts.items() if count)
        return f"{len(self.cells)} cells: {counts}"

    def table(self) -> Table:
        """Every cell, grouped by where the paper has it."""
        return Table("comparison", "Paper against measured", self.rows(), COLUMNS, group="source")

    def document(self) -> Document:
        """The comparison alone."""
        section = Section([self.summary, *self.notes], [self.table()])
        return Document(
            title=f"{self.paper}: paper against measured",
            lead="The experiments of the paper, run again; every number that it prints beside the one measured here.",
            facts=(("model", self.model), ("data", self.data), ("exactness", f"{number(self.error, 2)} (relative)")),
            chapters=(Chapter("comparison", "Paper against measured", (Article(section),)),),
            signatures=(self.signature,),
        )

    def show(self) -> str:
        """The comparison for a terminal."""
        lines = [
            f"{self.paper}: paper against measured",
            f"{visible_line(self.model)} on {visible_line(self.data)}; the parts rebuild every block to "
            f"{number(self.error, 2)}",
            "",
            *(bullet(note) for note in self.notes),
            "",
            text_table(replace(self.table(), title=""), rows=None, line=None),
            self.summary,
            visible_line(self.signature),
        ]
        return "\n".join(lines) + "\n"

    def save(self, findings: Findings, folder: Path) -> Path:
        """Write comparison.csv, comparison.json and the report of the run, with the comparison first; its page."""
        write_file(folder / "comparison.csv", as_csv(self.rows()))
        write_file(folder / "comparison.json", as_json(self.to_json()))
        report = findings.document()
        chapters = (*self.document().chapters, *report.chapters)
        return write(replace(report, chapters=chapters), folder, beside={FILE: as_json(findings.to_json())})


def rounds_to(measured: int | float, printed: str) -> bool:
    """Whether a number rounds to what was printed: half a unit of the last printed digit off, at most.

    >>> rounds_to(4.264, "4.26"), rounds_to(4.266, "4.26"), rounds_to(0.125, "0.12"), rounds_to(0.125, "0.13")
    (True, False, True, True)
    """
    return math.isfinite(measured) and abs(Decimal(measured) - Decimal(printed)) <= _half_unit(printed)


def reaches(measured: int | float, printed: str) -> bool:
    """Whether a number is at least what was printed, up to the same rounding."""
    return math.isfinite(measured) and Decimal(measured) >= Decimal(printed) - _half_unit(printed)


def decimals(printed: str) -> int:
    """Digits after the point."""
    return len(printed.partition(".")[2])


def figure(source: str, what: str, where: str, printed: str, measured: int | float) -> Cell:
    """A number against a number, to the digits that were printed."""
    if not math.isfinite(measured):
        return missing(source, what, where, printed, "it is not defined for this data")
    verdict: Verdict = "agrees" if rounds_to(measured, printed) else "differs"
    return Cell(source, what, where, printed, measured, _difference(measured, printed), verdict)


def claim(source: str, what: str, where: str, said: str, measured: Measured, holds: bool) -> Cell:
    """What the paper says in words, or a name it gives."""
    return Cell(source, what, where, said, measured, None, "agrees" if holds else "differs")


def missing(source: str, what: str, where: str, printed: str, reason: str) -> Cell:
    """Nothing to hold against the paper."""
    return Cell(source, what, where, printed, None, None, "not measured", reason)


def unjudged(cell: Cell, reason: str) -> Cell:
    """The same number, about which nothing is said."""
    if cell.verdict == "not measured":
        return cell
    return replace(cell, difference=None, verdict="not judged", reason=reason)


def _half_unit(printed: str) -> Decimal:
    return Decimal(5).scaleb(-decimals(printed) - 1)


def _difference(measured: int | float, printed: str) -> int | float:
    if isinstance(measured, int) and not decimals(printed):
        return measured - int(printed)
    return float(Decimal(measured) - Decimal(printed))


def _number(value: int | float | None, digits: int, sign: str = "") -> str:
    if value is None:
        return ""
    value = round(value, digits)
    return f"{value or 0:{sign if value else ''},.{digits}f}".replace("-", "−")


def _digits(row: Row) -> int:
    """Two more than were printed, to see how near it came."""
    return 0 if isinstance(row["measured"], int) else (decimals(str(row["paper"])) or 1) + 2


def _paper(row: Row) -> str:
    printed = str(row["paper"])
    return _number(int(printed), 0) if printed.isdigit() else printed.replace("-", "−")


def _measured(row: Row) -> str:
    value = row["measured"]
    return value if isinstance(value, str) else _number(value, _digits(row))


def _gap(row: Row) -> str:
    gap = row["difference"]
    return "" if isinstance(gap, str) else _number(gap, _digits(row), sign="+")


def _verdict(row: Row) -> str:
    return f"{row['verdict']}: {row['reason']}" if row["reason"] else str(row["verdict"])


COLUMNS = (
    Column("what", "what", "text"),
    Column("where", "where", "text"),
    Column("paper", "paper", "number", _paper),
    Column("measured", "measured", "number", _measured),
    Column("difference", "difference", "number", _gap),
    Column("verdict", "verdict", "text", _verdict),
)
