"""Findings beside what the paper printed, cell by cell.

Room: from results to cells. Only plain self-attention is looked at, the one kind the paper has.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from normlens.papers.cells import STAND_IN, VERDICTS, Cell, Verdict, figure, missing, unjudged
from normlens.papers.data import unlike
from normlens.papers.expected import CLS, DATA, HEAD_DIM, HEADS, LAYERS, SEP, TABLE_2
from normlens.papers.lengths import figure_9, table_1, table_4
from normlens.papers.weights import figure_3, section_4_3, table_2
from normlens.reports.rows.row import plain
from normlens.studies import Findings


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
        found = Counter(cell.verdict for cell in self.cells)
        return {verdict: found[verdict] for verdict in VERDICTS}

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "notes": list(self.notes), "counts": self.counts, "cells": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        """One mapping per cell; numbers with nine digits, all that 32-bit floats hold."""
        return [
            {name: plain(part) if isinstance(part, float) else part for name, part in asdict(cell).items()}
            for cell in self.cells
        ]


def compare(findings: Findings, *, other_model: str = "") -> Comparison:
    """Hold findings against the paper.

    `other_model` says why the model is not bert-base-uncased, if that is known; else its shape is looked at. Numbers of
    a stand-in stand beside the paper's without a verdict.
    """
    sums = checksums(findings)
    other_data, other_model = unlike(sums), other_model or _other_shape(findings)
    dispersion, is_other = findings.dispersion.get("self"), bool(other_model)
    of_model = [
        *table_1(dispersion, is_other=is_other),
        *figure_3(findings.categories.get("self")),
        *table_2(findings.correlation.get("self")),
        *section_4_3(findings.frequency.get("self")),
        *table_4(dispersion, is_other=is_other),
        figure_9(dispersion),
    ]
    if is_other:
        of_model = [unjudged(cell, STAND_IN) for cell in of_model]
    return Comparison(
        paper="Kobayashi et al. (2020), arXiv 2004.10102v1",
        model=findings.model,
        data=findings.corpus,
        signature=str(findings.signature),
        error=findings.error,
        other_data=other_data,
        other_model=other_model,
        notes=(*_reading(sums, other_data, other_model), *_notes(findings)),
        cells=(*_data(sums), *of_model),
    )


def checksums(findings: Findings) -> dict[str, int | None]:
    """What the run counted, under the names of `expected.DATA`; None for what it did not."""
    found: dict[str, int | None] = dict.fromkeys(DATA)
    found |= {"sequences": findings.items, "tokens": findings.tokens, "Σ n² over sequences": findings.squares}
    if (categories := findings.categories.get("self")) is not None:
        for name in {CLS, SEP} & set(categories.names):
            found[f"{name} tokens"] = int(categories.tokens[categories.names.index(name)])
    correlation = None if "self" in findings.causal else findings.correlation.get("self")  # else not every pair is seen
    if correlation is not None and (heads := len(correlation.layers) * correlation.rho_heads.shape[2]):
        for name, pairs in zip(correlation.names, correlation.pairs, strict=True):
            if name in TABLE_2 and pairs % heads == 0:
                found[f"pairs per head, {name}"] = int(pairs) // heads
    return found


def _data(sums: dict[str, int | None]) -> list[Cell]:
    """Exact, to the last token."""
    cells = []
    for name, paper in DATA.items():
        (what, _, where), got = name.partition(", "), sums[name]
        if got is None:
            cells.append(missing("Data", what, where, str(paper), "it was not counted"))
        else:
            cells.append(figure("Data", what, where, str(paper), got))
    return cells


def _other_shape(findings: Findings) -> str:
    """Why these cannot be the heads of bert-base-uncased."""
    found = findings.dispersion.get("self")
    if found is None:
        return "the lengths of its self-attention were not measured"
    layers, heads = found.transformed.mean.shape
    if (found.layers, heads) != (tuple(range(LAYERS)), HEADS) or not found.transformed.count.all():
        return f"{layers} layers of {heads} heads were measured, and bert-base-uncased has {LAYERS} of {HEADS}"
    if found.singular is None:
        return "the size of its heads is not known"
    size = found.singular.shape[2] - 1
    return "" if size == HEAD_DIM else f"its heads have {size} dimensions, and those of bert-base-uncased {HEAD_DIM}"


def _reading(sums: dict[str, int | None], other_data: str, other_model: str) -> list[str]:
    """What must be known before any cell is read."""
    lines = []
    if other_data:
        lines.append(f"The data is a stand-in. {other_data} The cells below are not expected to agree.")
    elif None in sums.values():
        lines.append("The data may be the paper's: the checksums that were counted agree, but not all were counted.")
    else:
        lines.append(f"The data is the paper's: all {len(DATA)} checksums agree.")
    if other_model:
        lines.append(
            f"The model is a stand-in: {other_model}. Its numbers stand beside the paper's, but none is judged, and "
            "nothing follows for the paper."
        )
    else:
        lines.append(
            "The model has the shape of bert-base-uncased. Whether its weights are the paper's is not checked: see its "
            "name and revision in the signature."
        )
    lines.append(
        "Layers and heads are counted from 1 here, as in the paper's tables: its layer 2, head 4 is L1H3 elsewhere in "
        "normlens. A number agrees when it rounds to what was printed; Figure 3 is read off its drawing."
    )
    return lines


def _notes(findings: Findings) -> list[str]:
    """What the run itself has to say about these numbers."""
    parts = (findings.dispersion.get("self"), findings.correlation.get("self"))
    return [*findings.notes, *(note for part in parts if part is not None for note in part.notes)]
