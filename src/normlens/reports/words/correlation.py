"""Whether weight and length cancel, in sentences.

Room: results to words.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from normlens.reports.numbers import correlation as rho_said
from normlens.reports.numbers import count, listing, many, span
from normlens.reports.words.naming import CLEAR, noun, sign
from normlens.studies.results import Correlation


def correlation(found: Correlation) -> list[str]:
    """Against each other, together, no clear relation, not defined; then the same head by head."""
    signs = {index: sign(float(found.rho[index]), int(found.pairs[index])) for index in range(len(found.names))}
    order = sorted(signs, key=lambda index: (-abs(found.rho[index]) if signs[index] is not None else 0.0, index))
    against, unclear, together, undefined = (
        [index for index in order if signs[index] == what] for what in (-1, 0, 1, None)
    )
    lines = []
    if against:
        lines.append(
            f"α and ‖f(x)‖ work against each other for {_rhos(found, against)}: the more weight such a token draws, "
            f"the shorter its vector tends to be.{_between(found, against)}"
        )
    if together:
        lines.append(
            f"α and ‖f(x)‖ go together for {_rhos(found, together)}: the more weight such a token draws, the longer "
            f"its vector tends to be.{_between(found, together)}"
        )
    if unclear:
        lines.append(f"No clear relation between α and ‖f(x)‖ for {_rhos(found, unclear)}.")
    return [*lines, *_head_by_head(found, against + together), *_undefined(found, undefined), *_constant(found)]


def _rhos(found: Correlation, which: list[int]) -> str:
    first, *others = which
    said = [f"{noun(found.names[first])} (ρ = {rho_said(found.rho[first])})"]
    return listing(said + [f"{noun(found.names[index])} ({rho_said(found.rho[index])})" for index in others])


def _between(found: Correlation, which: list[int]) -> str:
    """The caveat that belongs to a pooled ρ which single heads do not have: it must never be read without."""
    mixed = []
    for index in which:
        heads, same = _heads(found, index)
        if heads.size > 1 and (2 * same <= heads.size or abs(np.median(heads)) < CLEAR):
            middle = rho_said(float(np.median(heads)))
            mixed.append(f"{noun(found.names[index])} ({'median of single heads ' if not mixed else ''}{middle})")
    return f" But for {listing(mixed)} it tells of differences between heads rather than within them." if mixed else ""


def _head_by_head(found: Correlation, which: list[int]) -> list[str]:
    parts = []
    for index in which:
        heads, same = _heads(found, index)
        if heads.size > 1:
            middle = rho_said(float(np.median(heads)))
            parts.append(f"{count(same)} of {count(heads.size)} heads for {noun(found.names[index])} (median {middle})")
    return [f"Taken head by head, ρ has the same sign in {listing(parts)}."] if parts else []


def _heads(found: Correlation, index: int) -> tuple[Float[np.ndarray, " head"], int]:
    """ρ of the heads that have one, and how many share the sign of the pooled ρ."""
    heads = found.rho_heads[index][np.isfinite(found.rho_heads[index])]
    return heads, int((np.sign(heads) == np.sign(found.rho[index])).sum())


def _undefined(found: Correlation, which: list[int]) -> list[str]:
    empty = [noun(found.names[index]) for index in which if not found.pairs[index]]
    constant = [noun(found.names[index]) for index in which if found.pairs[index]]
    lines = []
    if empty:
        lines.append(f"ρ is not defined for {listing(empty)}: no token fell into it.")
    if constant:
        lines.append(f"ρ is not defined for {listing(constant)}: α or ‖f(x)‖ is the same in all its pairs.")
    return lines


def _constant(found: Correlation) -> list[str]:
    """Which single heads have no ρ, and why, a sentence for each category and side."""
    lines = []
    for category, side in dict.fromkeys((one.category, one.side) for one in found.constant):
        here = [one for one in found.constant if (one.category, one.side) == (category, side)]
        heads, layers = many(sum(one.heads for one in here), "head"), [one.layer for one in here]
        where = span(layers) if layers[-1] - layers[0] == len(layers) - 1 else f"layers {listing([*map(str, layers)])}"
        name = noun(found.names[category])
        lines.append(f"For {name} ρ is not defined in {heads} of {where}: {side} is the same in all pairs there.")
    return lines
