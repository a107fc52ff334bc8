"""One printed figure beside one measured one, and whether they agree.

Room: plain values. Knows no study.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

Verdict = Literal["agrees", "differs", "not measured", "not judged"]
VERDICTS: tuple[Verdict, ...] = ("agrees", "differs", "not measured", "not judged")
STAND_IN = "stand-in model"  # the reason why nothing is said
Measured = int | float | str | None


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
