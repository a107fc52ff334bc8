"""What categories of tokens draw and give, in sentences.

Room: results to words.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from normlens.reports.numbers import count, listing, many, percent, span
from normlens.reports.shares import norm_shares, present, weight_shares
from normlens.reports.words.naming import noun, subject
from normlens.studies.results import Categories
from normlens.views.text import visible_line

CLEAR = 0.05  # five points between the share of weight and the share of what is moved


def categories(found: Categories) -> list[str]:
    """Who draws more than it gives, who gives more than it draws, who is absent, and what hides in "other"."""
    return [*_compared(found), *_loose(found)]


def _compared(found: Categories) -> list[str]:
    there = present(found)
    gap = weight_shares(found) - norm_shares(found)
    absent = [noun(name) for index, name in enumerate(found.names) if index not in there]
    missing = [f"No token of the corpus fell into {listing(absent)}."] if absent else []
    if not there or not np.isfinite(gap[there]).any():
        return missing
    if len(there) == 1:
        return [f"Every token fell into {noun(found.names[there[0]])}, so there is nothing to compare.", *missing]
    moving = np.asarray(np.isfinite(gap[there]).all(axis=0))
    still = [layer for layer, moves in zip(found.layers, moving, strict=True) if not moves]
    missing += [f"In {span(still)} nothing is moved at all, so there are no shares of it."] if still else []
    found, gap = _only(found, moving), gap[:, moving]
    return [_drawing(found, gap), *_giving(found, gap), *missing]


def _only(found: Categories, kept: Bool[np.ndarray, " layer"]) -> Categories:
    """The same without some of its layers."""
    layers = tuple(layer for layer, stays in zip(found.layers, kept, strict=True) if stays)
    arrays = {name: getattr(found, name)[:, kept] for name in ("weights", "norms", "transformed")}
    return replace(found, layers=layers, **arrays)


def _drawing(found: Categories, gap: Float[np.ndarray, "category layer"]) -> str:
    runs = {index: _run(gap[index]) for index in present(found)}
    most = max(runs, key=lambda index: (float(gap[index, runs[index]].mean()), -index))
    who, where = subject(found.names[most]), span([found.layers[row] for row in runs[most]])
    weight, norm = _shares(found, most, runs[most])
    if gap[most].max() < CLEAR:
        return (
            "No category draws clearly more of the weight than it gives of what is moved: the largest difference is "
            f"that of {noun(found.names[most])} in {where}, {percent(weight)} of the weight against {percent(norm)}."
        )
    part = f"{percent(_part(found, most))} of all tokens"
    drawn = f"{who.name} ({part}) {who.verb('draw')} {percent(weight)} of the weight"
    given = f"{who.verb('give')} {percent(norm)} of what is moved"
    if len(runs[most]) == len(found.layers):
        over = f" in {where}" if len(found.layers) == 1 else ", over all layers"
        return f"{drawn} and {given}{over}."
    all_weight, all_norm = _shares(found, most, list(range(len(found.layers))))
    rest = f"over all layers: {percent(all_weight)} and {percent(all_norm)}"
    return f"{drawn} in {where} and {given} there ({rest})."


def _giving(found: Categories, gap: Float[np.ndarray, "category layer"]) -> list[str]:
    least = min(present(found), key=lambda index: float(gap[index].mean()))
    if gap[least].mean() > -CLEAR:
        return []
    who = subject(found.names[least])
    weight, norm = _shares(found, least, list(range(len(found.layers))))
    over = "" if len(found.layers) == 1 else ", over all layers"
    return [
        f"{who.name} ({percent(_part(found, least))} of all tokens) {who.verb('draw')} {percent(weight)} of the weight "
        f"and {who.verb('give')} {percent(norm)} of what is moved{over}."
    ]


def _loose(found: Categories) -> list[str]:
    if not found.loose:
        return []
    tokens = listing([visible_line(token) for token in found.loose])
    return [
        f"{noun(found.names[-1])} holds the special token{'s' if len(found.loose) > 1 else ''} {tokens}, "
        f"{count(sum(found.loose.values()))} of its {many(int(found.tokens[-1]), 'token')}, which no other "
        "category takes. To keep special tokens apart, add --category 'special=@special', in Python "
        '"special": "@special".'
    ]


def _run(gap: Float[np.ndarray, " layer"]) -> list[int]:
    """The layers around the largest difference in which it is at least half as large."""
    peak = int(gap.argmax())
    first = last = peak
    while first > 0 and gap[first - 1] >= gap[peak] / 2 > 0:
        first -= 1
    while last < len(gap) - 1 and gap[last + 1] >= gap[peak] / 2 > 0:
        last += 1
    return list(range(first, last + 1))


def _shares(found: Categories, category: int, rows: list[int]) -> tuple[float, float]:
    return float(weight_shares(found)[category, rows].mean()), float(norm_shares(found)[category, rows].mean())


def _part(found: Categories, category: int) -> float:
    return float(found.tokens[category] / found.tokens.sum())
