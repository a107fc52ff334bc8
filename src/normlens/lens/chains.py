"""The blocks of a trace in a row, each reading what the one before wrote; refused where one is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from normlens.capture import BESIDE
from normlens.lens.block import Block
from normlens.lens.network_map import MapError
from normlens.lens.wiring import UNREAD
from normlens.models import Side

if TYPE_CHECKING:
    from normlens.lens.trace import Trace

STRETCH = "layers= takes a stretch of layers that all have attention."


def kind_of(trace: Trace, kind: str | None) -> str | None:
    """The kind of attention whose layers are followed; None for an encoder-decoder, of which both sides are."""
    kinds = list(dict.fromkeys(wire.kind for wire in trace.wires)) or [block.kind for block in trace.blocks]
    if kind is None and {"encoder", "decoder", "cross"} <= set(kinds):
        return None
    return kind or next((one for one in ("self", *kinds) if one in kinds), "self")


def chain(trace: Trace, kind: str, layers: int | Sequence[int] | None = None) -> list[Block]:
    """The blocks of a kind, from the first layer to the last."""
    of_kind = trace.layers(kind)
    numbers = range(of_kind.depth) if layers is None else sorted({layers} if isinstance(layers, int) else set(layers))
    numbers = [number + of_kind.depth if number < 0 else number for number in numbers]
    if not numbers or numbers != list(range(numbers[0], numbers[-1] + 1)):
        raise MapError("layers= takes layers that follow each other.", got=str(numbers))
    blocks = []
    for number in numbers:
        if number not in of_kind.blocks:
            before = f"layers=range({numbers[0]}, {number}) goes as far as it can be followed" if blocks else ""
            why = next((w.reason for w in of_kind.wires if w.layer == number and w.reason), "it was not kept")
            raise MapError(
                f"{kind} layer {number} is missing: {why}.", do=before or "layers= takes those that are there."
            )
        blocks.append(of_kind[number])
    _check(blocks)
    _check_between(trace, blocks, whole=layers is None)
    return blocks


def _check(blocks: Sequence[Block]) -> None:
    """Every layer has the same tokens on both axes."""
    kind = blocks[0].kind
    for block in blocks:
        if block.tgt != block.src or block.sizes != blocks[0].sizes:
            raise MapError(
                f"{kind} layer {block.layer} does not map tokens to the same tokens, so layers cannot be multiplied.",
                got=f"queries of the {block.tgt}, keys of the {block.src}",
                cause="cached or added positions, windows, or layers that pool tokens.",
            )


def _check_between(trace: Trace, blocks: Sequence[Block], *, whole: bool) -> None:
    """Nothing was seen before, between or beside the layers that may mix tokens too."""
    unread = next((wire for wire in trace.wires if wire.kind == UNREAD), None)
    if unread is not None and whole:
        raise MapError(f"tokens may be mixed in '{unread.attention}' too: {unread.reason}.", do=STRETCH)
    paths = {(wire.kind, wire.layer): wire.path for wire in trace.wires}
    for block in blocks:
        path = paths.get((block.kind, block.layer))
        if path is not None and BESIDE in path.reasons.get("output", ""):
            raise MapError(f"tokens may be mixed beside {block.kind} layer {block.layer} too: {BESIDE}.")
    names = [block.name for block in blocks]
    for before, after in pairwise([None, *names] if blocks[0].layer == 0 else names):
        between = _between(before, str(after))
        if between:
            raise MapError(f"tokens may be mixed in {between} too, where no attention was seen.", do=STRETCH)


def _between(before: str | None, after: str) -> str | None:
    """The layers of the model between two modules such as layers.3.attn and layers.7.attn; None: there are none."""
    numbers = [int(part) for part in re.findall(r"\d+", after)]
    if before is None:
        return f"the {numbers[0]} layers before '{after}'" if len(numbers) == 1 and numbers[0] > 0 else None
    if re.sub(r"\d+", "", before) != re.sub(r"\d+", "", after):
        return None
    earlier = [int(part) for part in re.findall(r"\d+", before)]
    moved = [b - a for a, b in zip(earlier, numbers, strict=True) if a != b]
    return f"the layers between '{before}' and '{after}'" if len(moved) == 1 and moved[0] > 1 else None


def side_of(trace: Trace, block: Block) -> tuple[Side, ...]:
    """The tokens of every sequence on the axes of a block."""
    sides = tuple(trace.side(block.tgt, index) for index in range(len(block.sizes)))
    known = tuple(side for side in sides if side is not None)
    if len(known) != len(sides) or any(len(s.tokens) != size for s, (size, _) in zip(known, block.sizes, strict=True)):
        raise MapError(f"the positions of {block.kind} attention are no tokens of the text.")
    return known
