"""A saved trace from a stranger: everything in it is looked at before any of it is shown.

Room: distrust. The file is data only (safetensors holds no code), but its story can lie.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from normlens import lens as lenses
from normlens.errors import NormlensError
from normlens.explorer import memory
from normlens.explorer.refusal import Refusal
from normlens.lens import Trace

MOST_BLOCKS, MOST_TOKENS = 4096, 4096
MOST_LETTERS = 1000  # of a token, a name, a fact of the signature
MOST_PICTURE = 20_000_000  # bytes
DO = "open a .safetensors file that trace.save() or `normlens show --save` wrote."


def checked(path: Path) -> Trace:
    """The trace in this file, or a refusal; whatever the file holds, nothing else comes out."""
    try:
        trace = lenses.open(path)
        wrong = _wrong(trace)
    except NormlensError as error:
        raise Refusal(422, f"The file cannot be opened as a trace: {_first(error, path)}", DO) from error
    except Exception as error:
        if memory.ran_out(error):
            raise
        raise Refusal(422, "The file is not a trace: its description does not fit its numbers.", DO) from error
    if wrong:
        raise Refusal(422, f"The file is not a trace: {wrong}.", DO)
    return trace


def _wrong(trace: Trace) -> str | None:
    """What is not as `trace.save` writes it."""
    if not trace.sides or not trace.blocks:
        return "it has no text, or no attention block"
    if len(trace.blocks) > MOST_BLOCKS:
        return f"it has more than {MOST_BLOCKS} blocks"
    for side in (*trace.sides, *trace.targets):
        if len(side.tokens) > MOST_TOKENS:
            return f"it has more than {MOST_TOKENS} tokens"
        if not (_texts((side.name, *side.tokens)) and _all(bool, side.special)):
            return f"its tokens are not texts of at most {MOST_LETTERS} letters"
        if not all(i is None or type(i) is int for i in side.word_ids):
            return "its words are not numbered"
        words = len(side.words)
        if any(i is not None and not 0 <= i < words for i in side.word_ids):
            return "its tokens belong to words that are not there"
        if side.picture is not None and len(side.picture.png) > MOST_PICTURE:
            return "its picture is too large"
    for block in trace.blocks:
        if not (_texts((block.kind, block.name, block.tgt, block.src)) and _all(int, (block.layer, *block.heads))):
            return "a block of it has no proper name"
        if not isinstance(block.error, float) or not math.isfinite(block.error) or block.layer < 0:
            return "a block of it is not numbered"
    if len(trace.wires) > MOST_BLOCKS or not all(
        _texts((w.attention, w.out or "", w.reason or "")) for w in trace.wires
    ):
        return "its blocks are not named"
    facts = trace.signature.facts
    if len(facts) > MOST_LETTERS or not _texts([part for fact in facts for part in fact]):
        return f"its signature is not made of texts of at most {MOST_LETTERS} letters"
    return None


def _all(kind: type, values: Any) -> bool:
    return all(type(value) is kind for value in values)


def _texts(values: Any) -> bool:
    return _all(str, values) and all(len(value) <= MOST_LETTERS for value in values)


def _first(error: NormlensError, path: Path) -> str:
    """The first line of what was said, without the server's path in it."""
    line = str(error).splitlines()[0].replace(f"'{path}'", "it").replace(str(path), "it")
    return line.removeprefix("it cannot be opened as a trace: ")[:300]
