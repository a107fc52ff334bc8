"""Whether weight and length cancel, in sentences.

Room: results to words.
"""

from __future__ import annotations

import numpy as np

from normlens.reports.numbers import correlation as rho_said
from normlens.reports.numbers import count, listing
from normlens.reports.words.naming import noun, sign
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
            "the shorter its vector tends to be."
        )
    if together:
        lines.append(
            f"α and ‖f(x)‖ go together for {_rhos(found, together)}: the more weight such a token draws, the longer "
            "its vector tends to be."
        )
    if unclear:
        lines.append(f"No clear relation between α and ‖f(x)‖ for {_rhos(found, unclear)}.")
    return [*lines, *_head_by_head(found, against + together), *_undefined(found, undefined)]


def _rhos(found: Correlation, which: list[int]) -> str:
    first, *others = which
    said = [f"{noun(found.names[first])} (ρ = {rho_said(found.rho[first])})"]
    return listing(said + [f"{noun(found.names[index])} ({rho_said(found.rho[index])})" for index in others])


def _head_by_head(found: Correlation, which: list[int]) -> list[str]:
    parts, mixed = [], []
    for index in which:
        heads = found.rho_heads[index][np.isfinite(found.rho_heads[index])]
        if heads.size < 2:
            continue
        same = int((np.sign(heads) == np.sign(found.rho[index])).sum())
        middle = rho_said(float(np.median(heads)))
        parts.append(f"{count(same)} of {count(heads.size)} heads for {noun(found.names[index])} (median {middle})")
        if 2 * same <= heads.size:
            mixed.append(noun(found.names[index]))
    lines = [f"Taken head by head, ρ has the same sign in {listing(parts)}."] if parts else []
    if mixed:
        lines.append(
            f"For {listing(mixed)} most heads do not share the sign of the pooled ρ, which then tells of differences "
            "between heads rather than within them."
        )
    return lines


def _undefined(found: Correlation, which: list[int]) -> list[str]:
    empty = [noun(found.names[index]) for index in which if not found.pairs[index]]
    constant = [noun(found.names[index]) for index in which if found.pairs[index]]
    lines = []
    if empty:
        lines.append(f"ρ is not defined for {listing(empty)}: no token fell into it.")
    if constant:
        lines.append(f"ρ is not defined for {listing(constant)}: α or ‖f(x)‖ is the same in all its pairs.")
    return lines
