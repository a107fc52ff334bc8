"""A saved trace of somebody, checked before it is shown: the file holds no code, but what it says may be wrong."""

from __future__ import annotations

import math
from pathlib import Path

from normlens import lens as lenses
from normlens.errors import NormlensError
from normlens.explorer import memory
from normlens.explorer.refusal import Refusal
from normlens.lens import Trace

MOST = 4096  # blocks, or tokens of a side
LETTERS = 1000  # of a token, a name, a fact of the signature
PICTURE = 20_000_000  # bytes
DO = "open a .safetensors file that trace.save() or `normlens show --save` wrote."


def opened(path: Path, most: int) -> Trace:
    """The trace in this file, which is then deleted; anything else in it is refused, and so is more than fits."""
    memory.check("The numbers of the file", memory.FACTOR * path.stat().st_size, most)
    try:
        trace = lenses.open(path)
        wrong = _wrong(trace)
    except Exception as error:
        if memory.ran_out(error):
            raise
        cause = error.cause if isinstance(error, NormlensError) else None  # the other parts name the file
        raise Refusal(422, "The file cannot be opened as a trace.", cause=cause, do=DO) from error
    if wrong:
        raise Refusal(422, f"The file is not a trace: {wrong}.", do=DO)
    path.unlink()
    return trace


def _wrong(trace: Trace) -> str | None:
    """What is not as `trace.save` writes it."""
    sides, blocks, wires, facts = (*trace.sides, *trace.targets), trace.blocks, trace.wires, trace.signature.facts
    if not trace.sides or not blocks or any(len(side.tokens) > MOST for side in sides):
        return f"it has no text, no attention block, or more than {MOST} tokens"
    if max(len(blocks), len(wires), len(facts)) > MOST:
        return f"it has more than {MOST} blocks"
    texts = [text for side in sides for text in (side.name, *side.tokens)]
    texts += [text for block in blocks for text in (block.kind, block.name, block.tgt, block.src)]
    texts += [text for wire in wires for text in (wire.attention, wire.out or "", wire.reason or "")]
    texts += [text for fact in facts for text in fact]
    if not all(isinstance(text, str) and len(text) <= LETTERS for text in texts):
        return f"its tokens, names or facts are not texts of at most {LETTERS} letters"
    if not all(type(number) is int and number >= 0 for block in blocks for number in (block.layer, *block.heads)):
        return "its layers and heads are not numbered"
    if not all(type(block.error) is float and math.isfinite(block.error) for block in blocks):
        return "the error of a block is not a number"
    for side in sides:
        known = [word for word in side.word_ids if word is not None]
        if not all(type(word) is int and 0 <= word < len(side.words) for word in known):
            return "its tokens belong to words that are not there"
        if not all(type(flag) is bool for flag in side.special):
            return "its special tokens are not marked by true and false"
        if side.picture is not None and len(side.picture.png) > PICTURE:
            return "its picture is too large"
    return None
