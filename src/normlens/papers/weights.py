"""Table 2, Figure 3 and Section 4.3: what draws weight, and what goes with it.

Room: from results to cells.
"""

from __future__ import annotations

import numpy as np

from normlens.papers.cells import Cell, claim, figure, missing, unjudged
from normlens.papers.expected import CLS, FIGURE_3, OTHER, RANKS, SECTION_4_3, SEP, STOPS, TABLE_2
from normlens.reports.shares import mean_over, weight_shares
from normlens.studies import Categories, Correlation, Frequency

ABSENT = "no token of this category"


def table_2(found: Correlation | None) -> list[Cell]:
    """Pairs and ρ of each category, all heads pooled."""
    cells = []
    for name, (pairs, rho) in TABLE_2.items():
        index = found.names.index(name) if found is not None and name in found.names else None
        if found is None or index is None or not found.pairs[index]:
            reason = "the correlations of self-attention were not studied" if found is None else ABSENT
            cells += [
                missing("Table 2", what, name, p, reason) for what, p in (("pairs", pairs), ("ρ(α, ‖f(x)‖)", rho))
            ]
            continue
        cells.append(figure("Table 2", "pairs", name, pairs, int(found.pairs[index])))
        cells.append(figure("Table 2", "ρ(α, ‖f(x)‖)", name, rho, float(found.rho[index])))
    return cells


def figure_3(found: Categories | None) -> list[Cell]:
    """The two things that can be read off it."""
    half, most = FIGURE_3
    drawn = "Figure 3a", "share of α on [SEP]"
    given = "Figure 3b", "‖αf(x)‖ of other above all the rest"
    if found is None:
        reason = "the categories of self-attention were not studied"
        return [
            missing(*drawn, "middle layers", half, reason),
            missing(*given, "layers", most, reason),
        ]
    count = len(found.layers)
    middle = sorted({(count - 1) // 2, count // 2})
    where = " and ".join(str(layer + 1) for layer in middle)
    where = f"layers {where}, the smaller" if len(middle) > 1 else f"layer {where}"
    present = {name for name, tokens in zip(found.names, found.tokens, strict=True) if tokens}
    cells = []
    if SEP in present:
        share = float(weight_shares(found)[found.names.index(SEP), middle].min())
        cells.append(claim(*drawn, where, half, share, share > 0.5))
    else:
        cells.append(missing(*drawn, where, half, ABSENT))
    if {CLS, SEP, OTHER} <= present:
        norms = mean_over(found.norms)
        marks = [found.names.index(name) for name in (CLS, SEP, STOPS) if name in present]
        below = int(np.sum(norms[marks].sum(axis=0) < norms[found.names.index(OTHER)]))
        cells.append(claim(*given, f"of {count} layers", most, below, 2 * below > count))
    else:
        cells.append(missing(*given, f"of {count} layers", most, ABSENT))
    return cells


def section_4_3(found: Frequency | None) -> list[Cell]:
    """ρ with the frequency rank, over every occurrence; judged with the paper's ranks alone."""
    cells = []
    for part, printed in SECTION_4_3.items():
        cell = "Section 4.3", "ρ(rank, α)" if part == "rho_weight" else "ρ(rank, ‖f(x)‖)", "every occurrence"
        if found is None:
            cells.append(missing(*cell, printed, "frequency in self-attention was not studied"))
            continue
        one = figure(*cell, printed, float(getattr(found, part)))
        other = "" if found.source == RANKS else f"its ranks are the {RANKS}, these are from {found.source}"
        cells.append(unjudged(one, other) if other else one)
    return cells
