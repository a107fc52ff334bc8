"""A trace as plain data for the views.

Room: results to figures. Tensors in, numpy out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from normlens import views
from normlens.corpora.categories import bare, is_punctuation
from normlens.errors import NormlensError
from normlens.models import Side

if TYPE_CHECKING:
    from normlens.lens.block import Block
    from normlens.lens.trace import Trace

NEEDED = ("weights", "transformed_norms", "summed_norms")
LONGEST = 80  # letters of a title, for each side


class NothingToShow(NormlensError):
    """A trace without what a picture needs."""


def figure(trace: Trace, index: int, maps: Mapping[str, Sequence[Any]] | None, look: Mapping[str, Any]) -> views.Figure:
    """Sequence `index` of a trace as a figure, looked at as asked."""
    one = trace[index]
    sides = {side.name: side for side in (*one.sides, *one.targets, *(s for more in one.others.values() for s in more))}
    blocks = [block for block in one.blocks if _drawable(block, sides)]
    if not blocks:
        raise NothingToShow(
            "No block of this trace can be drawn.",
            cause=(
                "fields= left out weights, transformed_norms or summed_norms; or the blocks look at windows "
                "or pooled positions, which no token stands for."
            ),
            do="trace again with the default fields; the numbers are in trace.blocks.",
        )
    shown = {block.tgt for block in blocks} | {block.src for block in blocks}
    sides = {name: side for name, side in sides.items() if name in shown}
    names = list(sides)
    panels = tuple(_panel(block, names.index(block.tgt), names.index(block.src)) for block in blocks)
    made = views.Figure(_title(one), str(trace.signature), tuple(_side(side) for side in sides.values()), panels)
    if maps:
        made = made.with_maps({name: [_array(array) for array in arrays] for name, arrays in maps.items()})
        look = {"measures": ("weights", *maps), **look}
    return made.looking(**look)


def _title(one: Trace) -> str:
    """The text, for translations with its target, as far as it fits on a line."""
    if one.sides[0].picture:
        return "image"
    return " → ".join(_shortened([bare(word) for word in side.words]) for side in (*one.sides, *one.targets))


def _shortened(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " …"


def _drawable(block: Block, sides: Mapping[str, Side]) -> bool:
    if not set(NEEDED) <= set(block.kept) or len(block.weights) != 1:
        return False
    known = tuple(len(sides[name].tokens) if name in sides else 0 for name in (block.tgt, block.src))
    return known == tuple(block.weights.shape[2:])


def _panel(block: Block, tgt: int, src: int) -> views.Panel:
    weights, norms, summed = (block.kept[field][0].float().cpu().numpy() for field in NEEDED)
    return views.attention(block.label, block.kind, tgt, src, weights, norms, summed, block.error, heads=block.heads)


def _side(side: Side) -> views.Side:
    marks = tuple(not special and is_punctuation(bare(t)) for t, special in zip(side.tokens, side.special, strict=True))
    spelled = tuple(bare(word) for word in side.words)
    return views.Side(side.name, side.tokens, side.special, side.word_ids, marks, spelled, side.picture)


def _array(array: Any) -> np.ndarray | None:
    """A numpy array of what a user computed, torch tensors included; a batch of one is that one."""
    if array is None:
        return None
    plain = np.asarray(array.detach().float().cpu() if hasattr(array, "detach") else array, dtype=np.float32)
    return plain[0] if plain.ndim == 4 and len(plain) == 1 else plain
