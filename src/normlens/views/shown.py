"""What a look makes of a figure: the very numbers a picture shows.

Room: sums and means over a figure. No drawing. assets/shown.js does the same in the page, in the same order:

1. the mean over the chosen heads and layers;
2. words, if asked for: pieces of a source word add up, those of a target word are averaged, as in word alignment
   (‖f(x)‖ of a word is the mean of its pieces);
3. hidden tokens go; with `rescale` what is left of each row is brought back to the row's sum before (not in a
   difference, whose rows add up to nothing in particular).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from normlens.views.figure import Figure, Side
from normlens.views.look import Look
from normlens.views.maps import FigureError, Map, Panel, Tone


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
    tone: Tone
    signed: bool
    rows: tuple[Token, ...]
    columns: tuple[Token, ...]
    values: Float[np.ndarray, "row column"]
    top: float  # the end of its colour scale
    strip: bool  # rows are heads, not tokens


def shown(figure: Figure, look: Look | None = None) -> tuple[Shown, ...]:
    """One map for each measure, as the look asks."""
    look = (look or figure.look).resolved(figure)
    panels = _panels(figure, look)
    return tuple(_one(figure, look, panels, name) for name in look.measures)


def cells(figure: Figure, look: Look | None = None) -> dict[str, dict[tuple[int, int | None], Shown]]:
    """For a grid: per measure a map for each (layer, head); head None where a measure knows no heads."""
    look = (look or figure.look).resolved(figure)
    grid: dict[str, dict[tuple[int, int | None], Shown]] = {}
    for name in look.measures:
        for panel in _panels(figure, look):
            for head in _heads(panel, look) if panel.map(name).axes != "tgt src" else (None,):
                heads = () if head is None else (head,)
                one = look.changed(layers=_layer(panel), heads=heads, measures=name)
                grid.setdefault(name, {})[_layer(panel), head] = _one(figure, one, [panel], name)
    return grid


def hides(figure: Figure, look: Look | None = None) -> bool:
    """Whether anything is out of sight; where all would be, nothing is."""
    look = (look or figure.look).resolved(figure)
    panel = _panels(figure, look)[0]
    sides = [_tokens(figure.sides[index], look) for index in (panel.tgt, panel.src)]
    return any(len(kept) < len(everything) for kept, everything in sides)


def _panels(figure: Figure, look: Look) -> list[Panel]:
    """The chosen layers; of layers that differ in their heads, those that are like the first."""
    group = [figure.panels[index] for index in figure.groups[str(look.kind)]]
    chosen = [panel for panel in group if _layer(panel) in look.layers and _heads(panel, look)]
    if not chosen:
        raise FigureError(
            f"no layer of {look.layers} has a head of {look.heads}.",
            do="choose other heads.",
        )
    return [panel for panel in chosen if _heads(panel, look) == _heads(chosen[0], look)]


def _layer(panel: Panel) -> int:
    return int(panel.name.removeprefix("L"))


def _heads(panel: Panel, look: Look) -> tuple[int, ...]:
    return tuple(head for head in panel.heads if not look.heads or head in look.heads)


def _one(figure: Figure, look: Look, panels: Sequence[Panel], name: str) -> Shown:
    maps = [panel.map(name) for panel in panels]
    first, panel = maps[0], panels[0]
    strip = first.axes == "head src"
    layers = np.stack([_over_heads(p, m, look) for p, m in zip(panels, maps, strict=True)]).astype(np.float64)
    values = layers.mean(axis=0)
    columns, columns_all = _tokens(figure.sides[panel.src], look)
    values = _merged(values, columns_all, axis=1, mean=strip)
    if strip:
        rows = tuple(Token((n,), f"H{head}", False) for n, head in enumerate(_heads(panel, look)))
    else:
        rows, rows_all = _tokens(figure.sides[panel.tgt], look)
        values = _merged(values, rows_all, axis=0, mean=True)[[rows_all.index(row) for row in rows]]
    before = values.sum(axis=1, keepdims=True)
    values = values[:, [columns_all.index(column) for column in columns]]
    if look.rescale and not strip and not first.signed:
        after = values.sum(axis=1, keepdims=True)
        values = values * np.divide(before, after, out=np.ones_like(after), where=after != 0)
    own = float(np.abs(values).max(initial=0.0))
    top = max(own, _largest(figure, look, name)) if look.scale == "shared" else own
    where = _where(panels, first, look)
    return Shown(name, first.label, where, first.tone, first.signed, rows, columns, values, top, strip)


def _over_heads(panel: Panel, one: Map, look: Look) -> Float[np.ndarray, "row src"]:
    if one.axes == "tgt src":
        return one.values
    chosen = one.values[[panel.heads.index(head) for head in _heads(panel, look)]]
    return chosen if one.axes == "head src" else chosen.mean(axis=0, dtype=np.float64)


def _where(panels: Sequence[Panel], one: Map, look: Look) -> str:
    """Which layers and heads: "L2, mean of 12 heads", "L2H3", "mean of L1 and L2, all heads summed"."""
    names, heads = [panel.name for panel in panels], _heads(panels[0], look)
    layers = names[0] if len(names) == 1 else f"mean of {', '.join(names[:-1])} and {names[-1]}"
    if one.axes == "tgt src":
        return f"{layers}, all heads summed" if one.name == "summed_norms" else layers
    if len(heads) == 1:
        return f"{layers}H{heads[0]}" if len(names) == 1 else f"{layers}, H{heads[0]}"
    return f"{layers}, each head" if one.axes == "head src" else f"{layers}, mean of {len(heads)} heads"


def _largest(figure: Figure, look: Look, name: str) -> float:
    """The end of a shared scale: the largest cell of this measure in any layer, over heads as they are shown."""
    tops = []
    for index in figure.groups[str(look.kind)]:
        panel = figure.panels[index]
        values = panel.map(name).values
        several = panel.map(name).axes == "head tgt src" and len(_heads(panel, look)) > 1
        tops.append(np.abs(values.mean(axis=0) if several else values).max(initial=0.0))
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
