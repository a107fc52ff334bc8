"""The very numbers a picture shows, given what is chosen. assets/shown.js does the same in the page, in the same order:

1. the mean over the chosen heads and layers;
2. words, if asked for: pieces of a key add up, those of a query are averaged, as in word alignment; where a map has not
   both queries and keys, pieces are averaged;
3. hidden tokens go; with `rescale` what is left of each row is brought back to the row's sum before (not in a
   difference, whose rows add up to nothing in particular).

A map with queries and keys is a matrix: rows are queries, columns are keys. Any other is a strip: a column for each
token (or head), a row for each head, or a single one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from normlens.measures import Role
from normlens.views.figure import Figure, Side
from normlens.views.look import Look
from normlens.views.maps import Axis, FigureError, Map, Panel


@dataclass(frozen=True, slots=True)
class Token:
    """One row or column of a picture: a token, a word, or a head."""

    at: tuple[int, ...]  # positions in its side, or the index of the head
    label: str
    special: bool


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """One map, ready to be drawn."""

    name: str
    label: str  # "α"
    where: str  # "L2, mean of 12 heads"
    role: Role | None
    signed: bool
    rows: tuple[Token, ...]
    columns: tuple[Token, ...]
    values: Float[np.ndarray, "row column"]
    top: float  # the end of its colour scale
    strip: bool  # rows are heads, or there is a single one
    across: Axis  # what the columns are


def shown(figure: Figure, look: Look | None = None) -> tuple[Shown, ...]:
    """One map for each measure, as the look asks."""
    look = (look or figure.look).resolved(figure)
    return tuple(_one(figure, look, _panels(figure, look, name), name) for name in look.measures)


def cells(figure: Figure, look: Look | None = None) -> dict[str, dict[tuple[int | None, int | None], Shown]]:
    """For a grid: per measure a map for each (layer, head); None where a measure knows no layers or no heads."""
    look = (look or figure.look).resolved(figure)
    grid: dict[str, dict[tuple[int | None, int | None], Shown]] = {}
    for name in look.measures:
        for panel in _panels(figure, look, name):
            one = panel.map(name)
            for head in _heads(panel, look) if one.has_heads and len(one.axes) > 1 else (None,):
                alone = look.changed(heads=() if head is None else (head,), measures=name)
                grid.setdefault(name, {})[panel.layer, head] = _one(figure, alone, [panel], name)
    return grid


def hides(figure: Figure, look: Look | None = None) -> bool:
    """Whether anything is out of sight; where all would be, nothing is."""
    look = (look or figure.look).resolved(figure)
    panel = figure.panels[figure.groups[str(look.kind)][0]]
    sides = [_tokens(figure.sides[index], look) for index in (panel.tgt, panel.src)]
    return any(len(kept) < len(everything) for kept, everything in sides)


def _panels(figure: Figure, look: Look, name: str) -> list[Panel]:
    """The chosen layers that have a measure; of layers that differ in their heads, those that are like the first."""
    beside = figure.beside(str(look.kind))
    if name in beside:
        return [beside[name]]
    group = [figure.panels[index] for index in figure.groups[str(look.kind)]]
    layers = [panel for panel in group if panel.layer is None or panel.layer in look.layers]
    chosen = [panel for panel in layers if _heads(panel, look) or not panel.heads]
    if not chosen:
        raise FigureError(
            f"no head {', '.join(map(str, look.heads))} in layer {', '.join(map(str, look.layers))}.",
            do="choose other heads.",
        )
    having = [panel for panel in chosen if name in panel.measures]
    if not having:
        raise FigureError(
            f"'{name}' is not there in {', '.join(panel.name for panel in chosen)}.", do="choose other layers."
        )
    return [panel for panel in having if _heads(panel, look) == _heads(having[0], look)]


def _heads(panel: Panel, look: Look) -> tuple[int, ...]:
    return tuple(head for head in panel.heads if not look.heads or head in look.heads)


def _one(figure: Figure, look: Look, panels: Sequence[Panel], name: str) -> Shown:
    panel, first = panels[0], panels[0].map(name)
    heads = _heads(panel, look) or panel.heads
    values = np.stack([_over_heads(one, name, look) for one in panels]).mean(axis=0, dtype=np.float64)
    columns, columns_all = _axis(figure, panel, first.axes[-1], heads, look)
    if first.is_matrix:
        rows, rows_all = _axis(figure, panel, "tgt", heads, look)
        values = _merged(_merged(values, columns_all, axis=1, mean=False), rows_all, axis=0, mean=True)
        values = values[[rows_all.index(row) for row in rows]]
    else:
        rows = (
            _axis(figure, panel, "head", heads, look)[0] if len(first.axes) == 2 else (Token((0,), first.label, False),)
        )
        values = _merged(values, columns_all, axis=1, mean=True)
    before = values.sum(axis=1, keepdims=True)
    values = values[:, [columns_all.index(column) for column in columns]]
    if look.rescale and first.is_matrix and not first.signed:
        after = values.sum(axis=1, keepdims=True)
        values = values * np.divide(before, after, out=np.ones_like(after), where=after != 0)
    own = float(np.abs(values).max(initial=0.0))
    top = max(own, _largest(figure, look, panel, name)) if look.scale == "shared" else own
    where = _where(panels, first, heads)
    return Shown(
        name,
        first.label,
        where,
        first.role,
        first.signed,
        rows,
        columns,
        values,
        top,
        not first.is_matrix,
        first.axes[-1],
    )


def _over_heads(panel: Panel, name: str, look: Look) -> Float[np.ndarray, "row column"]:
    """Rows and columns of a map: the mean over heads of a matrix, the heads themselves of a strip."""
    one, values = panel.map(name), panel.values(name)
    if one.has_heads:
        values = values[[panel.heads.index(head) for head in _heads(panel, look) or panel.heads]]
    if one.is_matrix:
        return values.mean(axis=0, dtype=np.float64) if one.has_heads else values
    return values if values.ndim == 2 else values[None]


def _axis(
    figure: Figure, panel: Panel, axis: Axis, heads: Sequence[int], look: Look
) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """What of an axis is in sight, and all of it."""
    if axis == "head":
        tokens = tuple(Token((at,), f"H{head}", False) for at, head in enumerate(heads))
        return tokens, tokens
    return _tokens(figure.sides[panel.tgt if axis == "tgt" else panel.src], look)


def _where(panels: Sequence[Panel], one: Map, heads: Sequence[int]) -> str:
    """Which layers and heads: "L2, mean of 12 heads", "L2H3", "mean of L1 and L2, all heads summed"."""
    names = [panel.name for panel in panels]
    layers = names[0] if len(names) == 1 else f"mean of {', '.join(names[:-1])} and {names[-1]}"
    if not one.has_heads:
        return f"{layers}, all heads summed" if one.role == "contribution" and panels[0].layer is not None else layers
    if len(heads) == 1:
        return f"{layers}H{heads[0]}" if len(names) == 1 else f"{layers}, H{heads[0]}"
    return f"{layers}, mean of {len(heads)} heads" if one.is_matrix else f"{layers}, each head"


def _largest(figure: Figure, look: Look, panel: Panel, name: str) -> float:
    """The end of a shared scale: the largest cell of this measure in any layer, over heads as they are shown."""
    group = [figure.panels[index] for index in figure.groups[str(look.kind)]]
    tops = []
    for one in group if panel in group else [panel]:
        if name in one.measures:
            values, several = one.values(name), one.map(name).has_heads and len(_heads(one, look)) > 1
            mean = several and one.map(name).is_matrix
            tops.append(np.abs(values.mean(axis=0) if mean else values).max(initial=0.0))
    return float(max(tops))


def _tokens(side: Side, look: Look) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """The tokens (or words) of a side that are in sight, and all of them; hiding never leaves an empty picture."""
    groups: list[list[int]] = []
    for position, word in enumerate(side.words):
        joins = look.unit == "words" and word is not None and groups and side.words[groups[-1][0]] == word
        groups[-1].append(position) if joins else groups.append([position])
    everything = tuple(
        Token(tuple(group), _label(side, group, look), all(side.special[position] for position in group))
        for group in groups
    )
    kept = tuple(token for token in everything if not _hidden(side, token, look))
    return kept or everything, everything


def _label(side: Side, group: list[int], look: Look) -> str:
    word = side.words[group[0]]
    if look.unit == "words" and word is not None and side.spelled:
        return side.spelled[word]
    return "".join(side.tokens[position] for position in group)


def _hidden(side: Side, token: Token, look: Look) -> bool:
    marks = side.punctuation or (False,) * len(side.tokens)
    return ("special" in look.hide and token.special) or (
        "punctuation" in look.hide and all(marks[position] for position in token.at)
    )


def _merged(
    values: Float[np.ndarray, "row column"], tokens: Sequence[Token], *, axis: int, mean: bool
) -> Float[np.ndarray, "_ _"]:
    if all(len(token.at) == 1 for token in tokens):
        return values
    starts = [token.at[0] for token in tokens]
    merged = np.add.reduceat(values, starts, axis=axis)
    sizes = np.array([len(token.at) for token in tokens])
    return merged / (sizes[:, None] if axis == 0 else sizes[None, :]) if mean else merged
