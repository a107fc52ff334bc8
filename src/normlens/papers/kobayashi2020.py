"""What Kobayashi et al. printed in 2020, digit for digit, and what was measured beside it, cell by cell.

Every figure is printed in arXiv 2004.10102v1: Table 1 (Section 4.1), Figure 3 and Table 2 (4.2), two correlations in
Section 4.3, Table 4 and Figure 9 (appendix). The body of v2, the EMNLP version, was not at hand. Figures are kept as
text, because their last digit says how far they can be trusted. Layers and heads are counted from 1, as printed.

Not printed, but derived from the pairs of Table 2, which are pairs of all 144 heads: `DATA`. Pairs of [CLS] over 144
heads are the tokens, since every token is once a query of the one [CLS] of its sequence; those of [SEP] are exactly
twice as many, so that every sequence has two; all four together are Σ n². The 992 sequences are printed.

Not printed in numbers: Figure 3. Its curves carry no labels; the text says of [CLS], [SEP] and punctuation that they
"gain remarkably large attention weights" (a) and that their contributions "are generally small" (b). What can be held
against a measurement is read off the drawing, as weakly as possible: [SEP] receives more than half of the attention in
the two layers in the middle, and in more than half of the layers all other tokens contribute more than those three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from normlens.papers.comparison import STAND_IN, Cell, claim, figure, missing, reaches, unjudged
from normlens.studies import (
    Categories,
    Correlation,
    Dispersion,
    Findings,
    Frequency,
    Spread,
    extremes,
    mean_over,
    stretch,
)

MODEL = {  # bert-base-uncased, by its configuration
    "model_type": "bert",
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "hidden_size": 768,
    "vocab_size": 30522,
}
LAYERS, HEADS, HEAD_DIM = 12, 12, 64
LENGTH = 128  # tokens a sequence has at most
CLS, SEP, STOPS, OTHER = "[CLS]", "[SEP]", "comma & period", "other"

DATA = {
    "sequences": 992,
    "tokens": 121_134,
    "Σ n² over sequences": 15_139_560,
    "[CLS] tokens": 992,
    "[SEP] tokens": 1_984,
    "pairs per head, [CLS]": 121_134,
    "pairs per head, [SEP]": 242_268,
    "pairs per head, comma & period": 1_269_712,
    "pairs per head, other": 13_506_446,
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table of norms."""

    of: Literal["largest CV", "smallest CV", "average"]
    at: tuple[int, ...]  # layer and head, or layer, from 1; nothing for the average
    figures: tuple[str, ...]  # in the order of FIELDS; the average has no largest and smallest


FIELDS = ("mean", "deviation", "variation", "high", "low")  # of normlens.studies.Spread
TABLE_1 = (  # ‖f(x)‖; the average is over the 144 heads: of the means, of the deviations, of the CVs
    Line("largest CV", (2, 4), ("4.26", "1.59", "0.37", "12.66", "0.96")),
    Line("smallest CV", (2, 7), ("4.00", "0.50", "0.12", "6.15", "1.35")),
    Line("average", (), ("5.15", "1.17", "0.22")),
)
TABLE_4 = (  # ‖x‖; the average is over the 12 layers
    Line("largest CV", (12,), ("20.49", "4.62", "0.23", "32.84", "4.13")),
    Line("smallest CV", (7,), ("21.64", "1.40", "0.06", "23.03", "11.87")),
    Line("average", (), ("19.93", "2.39", "0.12")),
)
TABLE_2 = {  # category: pairs of all heads, Spearman's ρ(α, ‖f(x)‖)
    CLS: ("17443296", "-0.34"),
    SEP: ("34886592", "-0.69"),
    STOPS: ("182838528", "-0.25"),
    OTHER: ("1944928224", "-0.06"),
}
SECTION_4_3 = {"weight": "-0.08", "norm": "0.75"}  # Spearman's ρ(rank, α) and ρ(rank, ‖f(x)‖)
RANKS = "vocabulary order"  # the ranks of Section 4.3 by their footnote, as normlens.corpora.frequency names them
FIGURE_3 = "more than half, as drawn", "most layers, as drawn"
FIGURE_9 = "1.8"  # largest over smallest singular value of f, at least, in each of the heads shown
NAMES = dict(zip(FIELDS, ("mean μ", "deviation σ", "CV = σ/μ", "largest", "smallest"), strict=True))
NOT_RUN = "the norms of self-attention were not studied"
ABSENT = "no token of this category"


def cells_of(findings: Findings, *, is_other: bool) -> list[Cell]:
    """Every cell that a model decides; without a verdict where the model is another one."""
    dispersion = findings["dispersion"].get("self")
    cells = [
        *table_1(dispersion, is_other=is_other),
        *figure_3(findings["categories"].get("self")),
        *table_2(findings["correlation"].get("self")),
        *section_4_3(findings["frequency"].get("self")),
        *table_4(dispersion, is_other=is_other),
        figure_9(dispersion),
    ]
    return [unjudged(cell, STAND_IN) for cell in cells] if is_other else cells


def table_1(result: Dispersion | None, *, is_other: bool) -> list[Cell]:
    """‖f(x)‖ by head. The lines of one head are measured at the paper's head, whichever head is extreme here."""
    spread = None if result is None else result.transformed
    return _table("Table 1", "‖f(x)‖", TABLE_1, spread, NOT_RUN, is_other)


def table_4(result: Dispersion | None, *, is_other: bool) -> list[Cell]:
    """‖x‖ by layer."""
    spread = None if result is None else result.inputs
    return _table("Table 4", "‖x‖", TABLE_4, spread, NOT_RUN if result is None else "‖x‖ was not seen", is_other)


def figure_9(result: Dispersion | None) -> Cell:
    """Largest over smallest singular value: of every head, since the paper's were drawn at random.

    It differs only where a layer has no head at all that the paper could have shown.
    """
    cell = "Figure 9", "largest / smallest singular value of f"
    if result is None or result.singular is None:
        return missing(*cell, "every head", f"at least {FIGURE_9}", NOT_RUN if result is None else "f was not found")
    ratios = [[stretch(values)[2] for values in heads] for heads in result.singular]
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


def table_2(result: Correlation | None) -> list[Cell]:
    """Pairs and ρ of each category, all heads pooled."""
    cells = []
    for name, (pairs, rho) in TABLE_2.items():
        index = result.names.index(name) if result is not None and name in result.names else None
        if result is None or index is None or not result.pairs[index]:
            reason = "the correlations of self-attention were not studied" if result is None else ABSENT
            cells += [
                missing("Table 2", what, name, p, reason) for what, p in (("pairs", pairs), ("ρ(α, ‖f(x)‖)", rho))
            ]
            continue
        cells.append(figure("Table 2", "pairs", name, pairs, int(result.pairs[index])))
        cells.append(figure("Table 2", "ρ(α, ‖f(x)‖)", name, rho, float(result.rho[index])))
    return cells


def figure_3(result: Categories | None) -> list[Cell]:
    """The two things that can be read off it."""
    half, most = FIGURE_3
    received = "Figure 3a", "share of α on [SEP]"
    contributed = "Figure 3b", "‖αf(x)‖ of other above all the rest"
    if result is None:
        reason = "the categories of self-attention were not studied"
        return [
            missing(*received, "middle layers", half, reason),
            missing(*contributed, "layers", most, reason),
        ]
    count = len(result.layers)
    middle = sorted({(count - 1) // 2, count // 2})
    where = " and ".join(str(layer + 1) for layer in middle)
    where = f"layers {where}, the smaller" if len(middle) > 1 else f"layer {where}"
    present = {name for name, tokens in zip(result.names, result.tokens, strict=True) if tokens}
    cells = []
    if SEP in present:
        share = float(result.weight_shares[result.names.index(SEP), middle].min())
        cells.append(claim(*received, where, half, share, share > 0.5))
    else:
        cells.append(missing(*received, where, half, ABSENT))
    if {CLS, SEP, OTHER} <= present:
        norms = mean_over(result.norms)
        marks = [result.names.index(name) for name in (CLS, SEP, STOPS) if name in present]
        below = int(np.sum(norms[marks].sum(axis=0) < norms[result.names.index(OTHER)]))
        cells.append(claim(*contributed, f"of {count} layers", most, below, 2 * below > count))
    else:
        cells.append(missing(*contributed, f"of {count} layers", most, ABSENT))
    return cells


def section_4_3(result: Frequency | None) -> list[Cell]:
    """ρ with the frequency rank, over every occurrence; judged with the paper's ranks alone."""
    cells = []
    for part, printed in SECTION_4_3.items():
        cell = "Section 4.3", "ρ(rank, α)" if part == "weight" else "ρ(rank, ‖f(x)‖)", "every occurrence"
        if result is None:
            cells.append(missing(*cell, printed, "frequency in self-attention was not studied"))
            continue
        one = figure(*cell, printed, float(getattr(result.occurrences, part)))
        other = "" if result.source == RANKS else f"its ranks are the {RANKS}, these are from {result.source}"
        cells.append(unjudged(one, other) if other else one)
    return cells
