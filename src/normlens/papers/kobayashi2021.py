"""What Kobayashi et al. printed in 2021, and what was measured beside it, cell by cell.

"Incorporating Residual and Normalization Layers into Analysis of Masked Language Models", arXiv 2109.07152. Tables 1
and 2 and the expansion rates are printed; Figure 3 has its numbers, in percent, in the results beside the code. Figures
are kept as text, because their last digit says how far they can be trusted. Layers are counted from 1.

Table 1 and Figure 3 are of the 992 sequences of the 2020 paper with 12 % of their tokens masked, Table 2 of the same
without masks. The expansion rates are those of the authors' code, whose b_O stands in the last column of W̃_O.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from normlens.corpora import Categories, Category
from normlens.papers.comparison import STAND_IN, Cell, figure, missing, unjudged
from normlens.studies import Expansion, Findings, Mixing, mean_over

PAPER = "Kobayashi et al. (2021), arXiv 2109.07152"
MASKED = 0.12
CLS, SEP, MASK, NORMAL, OVERALL = "[CLS]", "[SEP]", "[MASK]", "other", "overall"
LABELS = {
    "attn_w": "Attn-W",
    "attn_n": "Attn-N",
    "attnres_w": "AttnRes-W",
    "attnres_n": "AttnRes-N",
    "attnresln_n": "AttnResLn-N",
}
TABLE_1 = {  # mean, highest and lowest in percent, pooled over tokens and layers
    "bert-base": {
        "attn_w": ("96.41", "99.99", "45.04"),
        "attn_n": ("85.28", "99.96", "4.89"),
        "attnres_w": ("48.21", "49.99", "22.52"),
        "attnres_n": ("22.25", "65.7", "2.04"),
        "attnresln_n": ("18.75", "61.25", "1.27"),
    },
    "roberta-base": {
        "attn_w": ("95.81", "100.00", "3.82"),
        "attn_n": ("84.42", "99.93", "13.84"),
        "attnres_w": ("47.91", "50.00", "1.91"),
        "attnres_n": ("19.55", "69.9", "1.82"),
        "attnresln_n": ("16.24", "73.39", "1.48"),
    },
}
FIGURE_3 = {  # percent, layers 1 to 12 of BERT-base
    "attn_w": {
        NORMAL: "98 97 96 97 98 98 98 98 98 96 93 94",
        MASK: "92 93 96 97 97 97 97 98 98 99 99 99",
        CLS: "93 66 62 85 98 99 99 99 99 99 99 99",
        SEP: "90 95 97 78 56 56 56 55 57 80 92 90",
        OVERALL: "97 96 96 97 97 97 97 97 97 96 94 95",
    },
    "attn_n": {
        NORMAL: "92 87 84 90 90 92 91 92 88 79 67 59",
        MASK: "92 93 94 94 91 92 94 95 93 95 96 93",
        CLS: "91 63 70 93 92 98 98 94 96 95 94 99",
        SEP: "68 75 89 77 65 60 68 60 71 92 92 91",
        OVERALL: "91 87 85 91 90 91 91 92 89 81 71 64",
    },
    "attnres_w": {OVERALL: "48 48 48 48 49 49 49 49 49 48 47 47"},
    "attnres_n": {
        NORMAL: "28 26 24 25 23 23 22 22 19 20 16 13",
        MASK: "30 36 30 31 29 30 29 32 25 21 17 14",
        CLS: "22 13 17 27 27 26 26 16 23 26 21 44",
        SEP: "22 19 19 11 8 6 8 6 11 35 32 23",
        OVERALL: "28 27 25 25 24 23 22 23 20 20 17 14",
    },
    "attnresln_n": {
        NORMAL: "25 20 19 21 20 20 19 19 17 18 15 11",
        MASK: "15 17 16 21 21 25 25 30 25 22 19 10",
        CLS: "15 5 8 16 18 20 20 11 15 21 17 39",
        SEP: "15 12 12 3 2 2 2 2 3 18 15 21",
        OVERALL: "24 20 19 21 19 20 20 20 17 19 15 11",
    },
}
TABLE_2 = {  # Spearman's ρ of frequency rank and ratio: all tokens, without special ones; BERT-base
    "attn_w": ("0.159", "0.144"),
    "attn_n": ("-0.387", "-0.413"),
    "attnres_w": ("0.159", "0.144"),
    "attnres_n": ("-0.839", "-0.860"),
    "attnresln_n": ("-0.544", "-0.577"),
}
RANKS = "vocabulary order"
EXPANSION = {  # the mean, then layer by layer
    "bert-base": "0.877 0.901 0.740 0.632 0.679 0.911 0.989 0.919 0.905 0.948 0.913 0.932 1.051",
    "bert-large": "0.798 0.970 0.702 0.612 0.625 0.631 0.708 0.729 0.761 0.680 0.633 0.673 0.821 0.886 0.916 0.855 "
    "0.855 0.865 0.755 0.800 0.872 1.008 0.851 0.868 1.081",
    "bert-mini": "1.238 0.782 0.652 1.033 2.484",
    "bert-tiny": "1.858 1.626 2.090",
}
SHAPES = {  # model type, layers, hidden size of the models of the paper
    "bert-base": ("bert", 12, 768),
    "bert-large": ("bert", 24, 1024),
    "bert-mini": ("bert", 4, 256),
    "bert-tiny": ("bert", 2, 128),
    "roberta-base": ("roberta", 12, 768),
}


def model_of(config: Any) -> str | None:
    """Which of the paper's models has this shape; None for another one."""
    shape = tuple(getattr(config, name, None) for name in ("model_type", "num_hidden_layers", "hidden_size"))
    return next((name for name, known in SHAPES.items() if known == shape), None)


def categories(tokenizer: Any) -> Categories:
    """Those of Figure 3, with the tokens that serve as [CLS], [SEP] and [MASK] here."""
    marks = {CLS: "cls_token", SEP: "sep_token", MASK: "mask_token"}
    return Categories(
        tuple(Category(name, frozenset({str(getattr(tokenizer, part, None) or name)})) for name, part in marks.items())
    )


def cells_of(plain: Findings, masked: Findings, model: str | None) -> list[Cell]:
    """Every cell that there is for a model of the paper; those of BERT-base, not judged, for another one."""
    shown = model or "bert-base"
    cells = [
        *table_1(masked["mixing"].get("self"), shown),
        *(figure_3(masked["mixing"].get("self")) if shown == "bert-base" else ()),
        *(table_2(plain["mixing"].get("self"), _source(plain)) if shown == "bert-base" else ()),
        *expansion(plain["expansion"].get("self"), shown),
    ]
    return cells if model else [unjudged(cell, STAND_IN) for cell in cells]


def _source(findings: Findings) -> str:
    return "" if findings.run.ranks is None else findings.run.ranks.source


def _lacks(result: Mixing | None, name: str) -> str:
    """Why a form was not measured."""
    if result is None:
        return "the mixing of self-attention was not studied"
    return result.missing.get(name, "it was not measured")


def table_1(result: Mixing | None, model: str) -> list[Cell]:
    """The ratios of all tokens and layers, masked."""
    cells = []
    for name, figures in TABLE_1.get(model, {}).items():
        one = None if result is None else result.forms.get(name)
        measured = (None,) * 3 if one is None else (one.mean, one.highest, one.lowest)
        for what, printed, value in zip(("mean", "highest", "lowest"), figures, measured, strict=True):
            cell = "Table 1", f"{what} mixing ratio, %", LABELS[name], printed
            cells.append(missing(*cell, _lacks(result, name)) if value is None else figure(*cell, 100 * value))
    return cells


def figure_3(result: Mixing | None) -> list[Cell]:
    """The ratios by layer and category, masked; the layers of a stand-in as far as it has them."""
    cells = []
    for name, rows in FIGURE_3.items():
        for category, printed in rows.items():
            for layer, text in enumerate(printed.split(), start=1):
                cell = "Figure 3", f"mixing ratio, %, {LABELS[name]}", f"{category}, layer {layer}", text
                value = _cell(result, name, category, layer - 1)
                cells.append(
                    missing(*cell, "there is no such layer, category or form")
                    if value is None
                    else figure(*cell, 100 * value)
                )
    return cells


def _cell(result: Mixing | None, name: str, category: str, layer: int) -> float | None:
    one = None if result is None else result.forms.get(name)
    if result is None or one is None or layer not in result.layers:
        return None
    place = result.layers.index(layer)
    if category == OVERALL:
        value = one.by_layer[place]
    elif category in result.categories:
        value = one.by_category[place, result.categories.index(category)]
    else:
        return None
    return float(value) if np.isfinite(value) else None


def table_2(result: Mixing | None, source: str) -> list[Cell]:
    """ρ with the frequency rank, without masks; judged with the paper's ranks alone."""
    cells = []
    other = "" if source == RANKS else f"its ranks are the {RANKS}, these are from {source}"
    for name, figures in TABLE_2.items():
        one = None if result is None else result.forms.get(name)
        measured = (None, None) if one is None else (one.rank, one.plain_rank)
        for where, printed, value in zip(("all tokens", "without special"), figures, measured, strict=True):
            cell = "Table 2", f"ρ(rank, ratio), {LABELS[name]}", where, printed
            cells.append(missing(*cell, _lacks(result, name)) if value is None else figure(*cell, value))
    return [unjudged(cell, other) for cell in cells] if other else cells


def expansion(result: Expansion | None, model: str) -> list[Cell]:
    """The rates of the authors' code."""
    cells = []
    for layer, printed in enumerate(EXPANSION.get(model, "").split()):
        cell = "Section 4.4", "expansion rate of f", f"layer {layer}" if layer else "mean", printed
        if result is None:
            cells.append(missing(*cell, "it was not studied"))
        elif not layer:
            cells.append(figure(*cell, float(mean_over(result.rates))))
        elif layer - 1 in result.layers:
            cells.append(figure(*cell, float(result.rates[result.layers.index(layer - 1)])))
        else:
            cells.append(missing(*cell, "there is no such layer"))
    return cells
