"""How well attention cuts texts whose segments are known, beside cuts that need no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from normlens.exhibits import Column, Row, Table, count, many, number, plain, text_table
from normlens.lens import Lens
from normlens.signature import Signature
from normlens.studies.cuts import CutScores, at_random, interval, joined, punctuated, scored, units
from normlens.studies.segmentation import Cutting, SegmentError, cut_again, segment

MODELS = {
    "attention α": {"by": "separators", "measure": "weights"},
    "contributions ‖αf(x)‖": {"by": "separators", "measure": "norms"},
    "similarity": {"by": "similarity"},
}
KNOWN = ", number known"
SCORES = {"p_k": "P_k", "window_diff": "WindowDiff", "f1": "F1"}
DRAWS = 20  # random cuts of each text, whose scores are averaged


@dataclass(frozen=True, slots=True, eq=False)
class SegmentationScores:
    """A row for each way to cut: means over texts with bootstrap intervals of 95 %."""

    rows: tuple[Row, ...]
    texts: int
    segments: float  # of a text, on average
    words: float
    signature: Signature

    @property
    def table(self) -> Table:
        columns = [Column("method", "cut by", "text")]
        for name, heading in SCORES.items():
            columns += [Column(name, heading), Column(f"{name}_interval", "95 %", "text")]
        return Table("segmentation", "Cuts against the known segments; P_k and WindowDiff are errors", self.rows,
                     tuple(columns))  # fmt: skip

    @property
    def sentence(self) -> str:
        """Whether the model cuts better than punctuation and than chance, by the F1 of boundaries."""
        by_name = {str(row["method"]): row for row in self.rows}
        ours = [row for name, row in by_name.items() if name.removesuffix(KNOWN) in MODELS]
        best = max(ours, key=lambda row: _value(row, "f1"))
        marks, chance = by_name["punctuation"], by_name["random" + KNOWN]
        told = f"best by F1 is {best['method']} with {number(_value(best, 'f1'))}"
        others = f"punctuation has {number(_value(marks, 'f1'))}, random cuts {number(_value(chance, 'f1'))}"
        if _value(best, "f1") > _value(marks, "f1_high"):
            verdict = "The model cuts these texts better than punctuation"
        elif _value(best, "f1_low") > _value(chance, "f1_high"):
            verdict = "The model cuts these texts better than chance and not better than punctuation"
        elif _value(best, "f1") > _value(chance, "f1"):
            verdict = "The model is ahead of chance, not clearly, and not better than punctuation"
        else:
            verdict = "The model cuts these texts no better than chance"
        return f"{verdict}: {told}; {others}."

    def show(self) -> str:
        """The table for a terminal."""
        lead = (
            f"{many(self.texts, 'text')} of {number(self.segments)} segments and {count(self.words)} words on average\n"
        )
        return f"{lead}{self.sentence}\n\n{text_table(self.table)}\n{self.signature}\n"

    def to_json(self) -> dict[str, Any]:
        return {
            "signature": str(self.signature),
            "texts": self.texts,
            "segments": plain(self.segments),
            "words": plain(self.words),
            "found": self.sentence,
            "scores": [dict(row) for row in self.rows],
        }


def segmentation_scores(
    lens: Lens,
    documents: Sequence[Sequence[str]],
    *,
    seed: int = 0,
    progress: Callable[[int], None] = lambda texts: None,
    **choices: Any,
) -> SegmentationScores:
    """Cut texts, each given as its known segments, in every way there is, and score the cuts.

    `choices` are those of `segment`, without `by`, `measure` and `segments`: each way is tried, once with its threshold
    and once told how many segments there are. Random cuts know that number too.
    """
    taken = sorted({"by", "measure", "segments"} & set(choices))
    if taken:
        raise SegmentError(f"{taken[0]} is not chosen here: every way is tried.", do=f"leave out {', '.join(taken)}.")
    known = [pair for pair in map(joined, documents) if pair[1]]
    if not known:
        raise SegmentError("no text has two segments.", do="give texts whose segments are known, two at least.")
    cutting = Cutting(**choices)
    random = np.random.default_rng(seed)
    found: dict[str, list[CutScores]] = {}
    signature = lens.signature
    for done, (text, cuts) in enumerate(known):
        size = len(units(text))
        for name, choice in MODELS.items():
            first = segment(lens, text, **(choices | choice))
            signature = first.signature
            second = cut_again(first, replace(cutting, **choice, segments=len(cuts) + 1))
            found.setdefault(name, []).append(scored(first.cuts, cuts, size))
            found.setdefault(name + KNOWN, []).append(scored(second, cuts, size))
        found.setdefault("punctuation", []).append(scored(punctuated(text), cuts, size))
        drawn = [astuple(scored(at_random(len(cuts), size, random), cuts, size)) for _ in range(DRAWS)]
        found.setdefault("random" + KNOWN, []).append(CutScores(*np.mean(drawn, axis=0).tolist()))
        found.setdefault("no cut", []).append(scored([], cuts, size))
        progress(done + 1)
    facts = dict(signature.facts)
    kept = {key: facts[key] for key in ("last layers", "threshold", "punctuation", "window") if key in facts}
    rows = tuple(_row(name, scores, seed) for name, scores in found.items())
    return SegmentationScores(
        rows,
        len(known),
        float(np.mean([len(cuts) + 1 for _, cuts in known])),
        float(np.mean([len(units(text)) for text, _ in known])),
        lens.signature.adding(**kept, texts=str(len(known)), seed=str(seed)),
    )


def _row(name: str, scores: Sequence[CutScores], seed: int) -> Row:
    row: Row = {"method": name}
    for key in SCORES:
        mean, low, high = interval(np.array([getattr(one, key) for one in scores], float), seed=seed)
        row |= {key: plain(mean), f"{key}_low": plain(low), f"{key}_high": plain(high)}
        row[f"{key}_interval"] = f"{number(low)}–{number(high)}" if np.isfinite(low) else None
    for key in ("precision", "recall", "cuts"):
        row[key] = plain(interval(np.array([getattr(one, key) for one in scores], float))[0])
    return row


def _value(row: Row, name: str) -> float:
    value = row.get(name)
    if value is None and name.endswith(("_low", "_high")):
        value = row.get(name.rpartition("_")[0])
    return float(value) if value is not None else float("nan")
