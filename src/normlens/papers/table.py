"""A comparison in the terminal: what must be known first, then every cell, then the count.

Room: cells to characters. No colour, no files.
"""

from __future__ import annotations

from itertools import groupby

from normlens.papers.cells import Cell, decimals
from normlens.papers.compare import Comparison
from normlens.reports.numbers import number
from normlens.reports.terminal import bullet
from normlens.views.text import visible_line

HEADINGS = ("what", "where", "paper", "measured", "difference", "verdict")
SAID = {"agrees": "agree", "differs": "differ"}
RIGHT = (2, 3, 4)  # columns of numbers


def show(comparison: Comparison) -> str:
    """Paper against measured, to print."""
    lines = [
        f"{comparison.paper}: paper against measured",
        f"{visible_line(comparison.model)} on {visible_line(comparison.data)}; "
        f"parts rebuilt the whole to {number(comparison.error, 2)}",
        "",
        *(bullet(note) for note in comparison.notes),
    ]
    table = [HEADINGS, *(_written(cell) for cell in comparison.cells)]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADINGS))]
    lines += ["", _line(HEADINGS, widths)]
    for source, cells in groupby(comparison.cells, key=lambda cell: cell.source):
        lines += [source, *(_line(_written(cell), widths) for cell in cells)]
    said = ", ".join(f"{count} {SAID.get(verdict, verdict)}" for verdict, count in comparison.counts.items() if count)
    lines += ["", f"{len(comparison.cells)} cells: {said}", visible_line(comparison.signature)]
    return "\n".join(lines) + "\n"


def _written(cell: Cell) -> tuple[str, ...]:
    digits = _digits(cell)
    measured = cell.measured if isinstance(cell.measured, str) else _number(cell.measured, digits)
    paper = _number(int(cell.paper), 0) if cell.paper.isdigit() else cell.paper.replace("-", "−")
    verdict = f"{cell.verdict}: {cell.reason}" if cell.reason else cell.verdict
    return cell.what, cell.where, paper, measured, _number(cell.difference, digits, sign="+"), verdict


def _digits(cell: Cell) -> int:
    """Two more than were printed, to see how near it came."""
    return 0 if isinstance(cell.measured, int) else (decimals(cell.paper) or 1) + 2


def _number(value: int | float | None, digits: int, sign: str = "") -> str:
    if value is None:
        return ""
    value = round(value, digits)
    return f"{value or 0:{sign if value else ''},.{digits}f}".replace("-", "−")


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [
        text.rjust(width) if column in RIGHT else text.ljust(width)
        for column, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return ("  " + "  ".join(cells)).rstrip()
