"""What is larger here than there: one figure minus another.

Tokens are matched by position when both texts have the same number, else by the longest common subsequences of equal
tokens; blocks by kind and layer; heads by number. What has no partner is left out, and the note says so. Where the
heads of two models differ in number, their means are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

import numpy as np

from normlens.views.figure import Figure, Side
from normlens.views.look import Look
from normlens.views.maps import FigureError, Map, Panel

Matched = tuple[list[int], list[int]]


def difference(first: Figure, second: Figure) -> Figure:
    """`first` minus `second`, map by map."""
    notes: list[str] = []
    others = {side.name: (number, side) for number, side in enumerate(second.sides)}
    matched: dict[int, tuple[int, Matched]] = {}
    sides = list(first.sides)
    for number, side in enumerate(first.sides):
        if side.name in others:
            at, other = others[side.name]
            pairs = _pairs(side, other)
            if not pairs[0]:
                raise FigureError(
                    f"The two figures have no token of side '{side.name}' in common.",
                    do="compare texts that share words, or one text in two models with the same tokenizer.",
                )
            matched[number] = at, pairs
            sides[number] = _joined(side, other, pairs)
            lost = len(side.tokens) + len(other.tokens) - 2 * len(pairs[0])
            if lost:
                notes.append(f"{lost} token{'s' * (lost != 1)} of side '{side.name}' without a partner left out")
    panels = [panel for one in first.panels if (panel := _panel(one, second, matched, notes)) is not None]
    if not panels:
        raise FigureError(
            "The two cannot be compared: they have no attention block in common.",
            got=f"{_listed(first)}; and {_listed(second)}",
            do="compare an encoder with an encoder, a translation model with a translation model, and so on.",
        )
    alone = len(first.panels) + len(second.panels) - 2 * len(panels)
    if alone:
        notes.append(f"{alone} block{'s' * (alone != 1)} of only one of the two left out")
    title = first.title if first.title == second.title else f"{first.title} − {second.title}"
    same = first.signature == second.signature
    signature = first.signature if same else f"{first.signature} − {second.signature}"
    meaning = "Difference: red is more in the first, blue more in the second"
    note = "; ".join([meaning, *dict.fromkeys(notes)]) + "."
    return Figure(title, signature, tuple(sides), tuple(panels), Look(), note, difference=True)


def _listed(figure: Figure) -> str:
    return ", ".join(dict.fromkeys(f"{panel.kind} attention" for panel in figure.panels))


def _pairs(side: Side, other: Side) -> Matched:
    if len(side.tokens) == len(other.tokens):
        return list(range(len(side.tokens))), list(range(len(side.tokens)))
    blocks = SequenceMatcher(None, side.tokens, other.tokens, autojunk=False).get_matching_blocks()
    here = [block.a + step for block in blocks for step in range(block.size)]
    return here, [block.b + step for block in blocks for step in range(block.size)]


def _joined(side: Side, other: Side, pairs: Matched) -> Side:
    """The tokens both have; where they differ, both are written."""
    words: list[int | None] = [side.words[at] for at in pairs[0]]
    tokens = [a if (a := side.tokens[i]) == (b := other.tokens[j]) else f"{a}│{b}" for i, j in zip(*pairs, strict=True)]
    keep = tuple(tokens) == side.tokens
    spelled = list(side.spelled)
    for i, j in zip(*pairs, strict=True):
        here, there = side.words[i], other.words[j]
        if here is None or there is None or not (spelled and other.spelled):
            continue
        if side.spelled[here] != other.spelled[there]:
            spelled[here] = f"{side.spelled[here]}│{other.spelled[there]}"
    return Side(
        side.name,
        tuple(tokens),
        tuple(side.special[at] for at in pairs[0]),
        tuple(words),
        tuple(side.punctuation[at] for at in pairs[0]) if side.punctuation else (),
        tuple(spelled),
        side.picture if keep else None,
    )


def _panel(panel: Panel, second: Figure, matched: dict[int, tuple[int, Matched]], notes: list[str]) -> Panel | None:
    if panel.tgt not in matched or panel.src not in matched:
        return None
    (tgt, rows), (src, columns) = matched[panel.tgt], matched[panel.src]
    key = (panel.kind, panel.layer, tgt, src)
    other = next((one for one in second.panels if (one.kind, one.layer, one.tgt, one.src) == key), None)
    if other is None:
        return None
    alike = panel.heads == other.heads
    if not alike:
        notes.append(f"heads differ in number ({len(panel.heads)} and {len(other.heads)}), so their means are compared")
    maps = []
    for name in panel.measures:
        if name not in other.measures or (
            not alike and panel.map(name).axes[0] == "head" and not panel.map(name).is_matrix
        ):
            continue
        here, there = _cut(panel, name, rows[0], columns[0], alike), _cut(other, name, rows[1], columns[1], alike)
        if here.axes == there.axes:
            assert here.values is not None
            assert there.values is not None
            maps.append(replace(here, label=f"Δ {here.label}", values=here.values - there.values, signed=True))
    size = (len(rows[0]), len(columns[0]))
    heads = panel.heads if alike else (0,)
    errors = [error for error in (panel.error, other.error) if error is not None]
    return replace(panel, heads=heads, size=size, maps=tuple(maps), error=max(errors, default=None)) if maps else None


def _cut(panel: Panel, name: str, rows: Sequence[int], columns: Sequence[int], alike: bool) -> Map:
    """The matched queries and keys; the mean over heads where heads cannot be compared one by one."""
    one, values = panel.map(name), panel.values(name)
    for at, axis in enumerate(one.axes):
        if axis != "head":
            values = values.take(rows if axis == "tgt" else columns, axis=at)
    if one.has_heads and not alike:
        return replace(one, axes=one.axes[1:], values=values.mean(axis=0, dtype=np.float32), product=None)
    return replace(one, values=values, product=None)
