"""One number per token: what bars and patches of a picture show. assets/shown.js does the same in the page.

Of a map with rows i (queries) and columns j (keys):

    no pin          share(j) = Σ_i m[i,j] / Σ_ij m[i,j]      of key j, over all queries
    pin ("tgt", i)  share(j) = m[i,j] / Σ_j m[i,j]           of key j, for query i alone
    pin ("src", j)  share(i) = m[i,j] / Σ_i m[i,j]           of query i, for key j alone

The totals include hidden columns (unless what is left was rescaled), so that hiding a token changes no other token's
share; of the rows they include those in sight. A signed map has no total: it keeps its values, and the mean over rows
where nothing is pinned. A strip, such as ‖f(x)‖ with a row for each head, is the mean of its rows, pinned or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from normlens.views.figure import Figure
from normlens.views.look import Look
from normlens.views.shown import Shown, Token, shown


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """One measure as one number per token."""

    map: Shown
    what: Literal["keys", "keys of the pin", "queries of the pin"]
    tokens: tuple[Token, ...]
    values: Float[np.ndarray, " token"]
    unit: Literal["share", "value"]
    top: float  # the end of the scale: the largest share of any measure, or the largest value of this one


def bars(figure: Figure, look: Look | None = None) -> tuple[Bars, ...]:
    """One set of bars for each measure; by size, the first measure decides the order of all that have its tokens."""
    look = (look or figure.look).resolved(figure)
    whole = shown(figure, look.changed(hide=()))
    found = [_one(one, all_of, look) for one, all_of in zip(shown(figure, look), whole, strict=True)]
    shares = [float(one.values.max(initial=0.0)) for one in found if one.unit == "share"]
    found = [replace(one, top=max(shares)) if one.unit == "share" else one for one in found]
    if look.order == "text":
        return tuple(found)
    order = np.argsort(-np.abs(found[0].values), kind="stable")
    return tuple(_ordered(one, order) if one.tokens == found[0].tokens else one for one in found)


def place(tokens: Sequence[Token], position: int) -> int | None:
    """Which row or column holds this position of its side; None when it is hidden."""
    return next((index for index, token in enumerate(tokens) if position in token.at), None)


def _one(one: Shown, whole: Shown, look: Look) -> Bars:
    axis, position = look.pin or (None, 0)
    pinned = axis is not None and not one.strip
    at = place(one.rows if axis == "tgt" else one.columns, position) if pinned else None
    counted = not (one.strip or one.signed)
    if at is None:
        values = one.values.sum(axis=0) if counted else one.values.mean(axis=0)
        rows = [whole.rows.index(row) for row in one.rows]
        total, tokens, what = whole.values[rows].sum(), one.columns, "keys"
    elif axis == "tgt":
        values, total = one.values[at], whole.values[whole.rows.index(one.rows[at])].sum()
        tokens, what = one.columns, "keys of the pin"
    else:
        values, total = one.values[:, at], one.values[:, at].sum()
        tokens, what = one.rows, "queries of the pin"
    if counted:
        values = values / total if total > 0 else values
    top = float(np.abs(values).max(initial=0.0))
    return Bars(one, what, tokens, values, "share" if counted else "value", top)


def _ordered(one: Bars, order: np.ndarray) -> Bars:
    return replace(one, tokens=tuple(one.tokens[index] for index in order), values=one.values[order])
