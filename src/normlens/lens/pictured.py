"""A trace as a figure: tensors to numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from normlens import views
from normlens.corpora import bare, is_punctuation
from normlens.errors import NormlensError
from normlens.measures import QUANTITIES
from normlens.models import Side

if TYPE_CHECKING:
    from normlens.lens.block import Block
    from normlens.lens.trace import Trace

LONGEST = 80  # letters of a title, for each side


class NothingToShow(NormlensError):
    """A trace without what a picture needs."""


def figure(trace: Trace, index: int, maps: Mapping[str, Sequence[Any]] | None, look: Mapping[str, Any]) -> views.Figure:
    """Sequence `index` of a trace as a figure that shows what is asked for."""
    one = trace[index]
    sides = {side.name: side for side in (*one.sides, *one.targets, *(s for more in one.others.values() for s in more))}
    blocks = [block for block in one.blocks if _drawable(block, sides)]
    asked = [look.get("measures", ())] if isinstance(look.get("measures"), str) else look.get("measures") or ()
    more = [name for name in asked if name in QUANTITIES]
    if not blocks:
        raise NothingToShow(
            "No block of this trace can be drawn.",
            cause="fields= kept nothing but vectors; or queries and keys are windows or pooled positions, not tokens.",
            do="trace again with the default fields; the numbers are in trace.blocks.",
        )
    shown = {block.tgt for block in blocks} | {block.src for block in blocks}
    sides = {name: side for name, side in sides.items() if name in shown}
    names = list(sides)
    panels = tuple(_panel(block, names.index(block.tgt), names.index(block.src), more) for block in blocks)
    made = views.Figure(_title(one), str(trace.signature), tuple(side_shown(side) for side in sides.values()), panels)
    if maps:
        made = made.with_maps({name: [_array(array) for array in arrays] for name, arrays in maps.items()})
        look = {"measures": ("weights", *maps), **look}
    return made.looking(**look)


def _title(one: Trace) -> str:
    """The text, for translations with its target, as far as it fits on a line."""
    if one.sides[0].picture:
        return "image"
    return " → ".join(titled(side) for side in (*one.sides, *one.targets))


def titled(side: Side) -> str:
    """The words of a side, as far as they fit on a line."""
    text = " ".join(bare(word) for word in side.words)
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " …"


def _drawable(block: Block, sides: Mapping[str, Side]) -> bool:
    if len(block.sizes) != 1 or not any(quantity.drawable for quantity in block.quantities.values()):
        return False
    return tuple(len(sides[name].tokens) if name in sides else 0 for name in (block.tgt, block.src)) == block.sizes[0]


def _panel(block: Block, tgt: int, src: int, more: Sequence[str]) -> views.Panel:
    """Everything the block holds that can be drawn, and what was asked for beside it."""
    held = {name: quantity for name, quantity in block.quantities.items() if quantity.drawable}
    held |= {name: QUANTITIES[name] for name in more if name not in held and QUANTITIES[name].drawable}
    stored = [
        name
        for name in held
        if name != "weighted_norms" or name in block.kept or not {"weights", "transformed_norms"} <= set(held)
    ]
    arrays = {name: block[name][0].float().cpu().numpy() for name in stored}
    maps = views.quantity_maps(arrays, held)
    return views.Panel(block.layer, block.kind, tgt, src, block.heads, block.sizes[0], maps, block.error)


def side_shown(side: Side) -> views.Side:
    """A side as figures have it."""
    marks = tuple(not special and is_punctuation(bare(t)) for t, special in zip(side.tokens, side.special, strict=True))
    spelled = tuple(bare(word) for word in side.words)
    return views.Side(side.name, side.tokens, side.special, side.word_ids, marks, spelled, side.picture)


def _array(array: Any) -> np.ndarray | None:
    """A numpy array of what a user computed, torch tensors included; a batch of one is that one."""
    if array is None:
        return None
    plain = np.asarray(array.detach().float().cpu() if hasattr(array, "detach") else array, dtype=np.float32)
    return plain[0] if plain.ndim == 4 and len(plain) == 1 else plain
