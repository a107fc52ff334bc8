"""Tables 1 and 4 and Figure 9: lengths, and what f does to them.

Room: from results to cells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from normlens.papers.cells import STAND_IN, Cell, claim, figure, missing, reaches, unjudged
from normlens.papers.expected import FIELDS, FIGURE_9, TABLE_1, TABLE_4, Line
from normlens.reports.shares import extremes, mean_over, stretch
from normlens.studies import Dispersion, Spread

NAMES = dict(zip(FIELDS, ("mean μ", "deviation σ", "CV = σ/μ", "largest", "smallest"), strict=True))
NOT_RUN = "the lengths of self-attention were not studied"


def table_1(found: Dispersion | None, *, is_other: bool) -> list[Cell]:
    """‖f(x)‖ by head. The lines of one head are measured at the paper's head, whichever head is extreme here."""
    spread = None if found is None else found.transformed
    return _table("Table 1", "‖f(x)‖", TABLE_1, spread, NOT_RUN, is_other)


def table_4(found: Dispersion | None, *, is_other: bool) -> list[Cell]:
    """‖x‖ by layer."""
    spread = None if found is None else found.inputs
    return _table("Table 4", "‖x‖", TABLE_4, spread, NOT_RUN if found is None else "‖x‖ was not seen", is_other)


def figure_9(found: Dispersion | None) -> Cell:
    """Largest over smallest singular value: of every head, since the paper's were drawn at random.

    It differs only where a layer has no head at all that the paper could have shown.
    """
    cell = "Figure 9", "largest / smallest singular value of f"
    if found is None or found.singular is None:
        return missing(*cell, "every head", f"at least {FIGURE_9}", NOT_RUN if found is None else "f was not found")
    ratios = [[stretch(values)[2] for values in heads] for heads in found.singular]
    ratios = [[ratio for ratio in heads if np.isfinite(ratio)] for heads in ratios]
    every = [ratio for heads in ratios for ratio in heads]
    if not every:
        return missing(*cell, "every head", f"at least {FIGURE_9}", "f was not found")
    smallest = min(every)
    shown = all(any(reaches(ratio, FIGURE_9) for ratio in heads) for heads in ratios)
    where = f"smallest of {len(every)} heads"
    one = claim(*cell, where, f"at least {FIGURE_9}", smallest, reaches(smallest, FIGURE_9))
    if one.verdict == "differs" and shown:
        return unjudged(one, "the paper speaks of heads drawn at random, not of all")
    return one


def place(at: Sequence[int]) -> str:
    """A layer, or a head of one, counted from 1."""
    return f"layer {at[0]}" + "".join(f", head {head}" for head in at[1:])


def _table(
    source: str, length: str, lines: tuple[Line, ...], spread: Spread | None, reason: str, is_other: bool
) -> list[Cell]:
    cells = []
    for line in lines:
        where = f"{place(line.at)} ({line.of})" if line.at else "average"
        why = reason if spread is None else STAND_IN if is_other and line.at else ""
        if line.at:
            unit = "head" if len(line.at) > 1 else "layer"
            cells.append(_which(source, f"{unit} of {line.of} of {length}", line, spread, why))
        for part, printed in zip(FIELDS, line.figures, strict=False):
            what = f"{NAMES[part]} of {length}"
            if spread is None or why:
                cells.append(missing(source, what, where, printed, why))
            else:
                cells.append(figure(source, what, where, printed, _measured(spread, part, line.at)))
    return cells


def _which(source: str, what: str, line: Line, spread: Spread | None, why: str) -> Cell:
    """Where the largest or smallest CV is."""
    ends = None if spread is None or why else extremes(spread.variation)
    if ends is None:
        return missing(source, what, "", place(line.at), why or "no CV is defined")
    here = tuple(index + 1 for index in ends[0 if line.of == "largest CV" else 1])
    return claim(source, what, "", place(line.at), place(here), here == line.at)


def _measured(spread: Spread, part: str, at: tuple[int, ...]) -> float:
    values = np.asarray(getattr(spread, part), dtype=np.float64)
    if not at:
        return float(mean_over(values.reshape(-1)))
    return float(values[tuple(index - 1 for index in at)])
