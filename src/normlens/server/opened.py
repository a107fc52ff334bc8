"""A saved trace from a stranger: everything in it is looked at before any of it is shown.

Room: distrust. The file is data only (safetensors holds no code), but its story can lie.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from normlens import lens as lenses
from normlens.errors import NormlensError
from normlens.lens import Trace
from normlens.server import memory
from normlens.server.refusal import Refusal

MOST_BLOCKS, MOST_TOKENS = 4096, 4096
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
        if not (isinstance(side.name, str) and _all(str, side.tokens) and _all(bool, side.special)):
            return "its tokens are not texts"
        if not (_all(str, side.words) and all(i is None or type(i) is int for i in side.word_ids)):
            return "its words are not texts"
        if any(i is not None and not 0 <= i < max(len(side.words), 1) for i in side.word_ids):
            return "its tokens belong to words that are not there"
    for block in trace.blocks:
        if not (_all(str, (block.kind, block.name, block.tgt, block.src)) and _all(int, (block.layer, *block.heads))):
            return "a block of it has no proper name"
        if not isinstance(block.error, float) or block.layer < 0:
            return "a block of it is not numbered"
    if not _all(str, [part for fact in trace.signature.facts for part in fact]):
        return "its signature is not text"
    return None


def _all(kind: type, values: Any) -> bool:
    return all(type(value) is kind for value in values)


def _first(error: NormlensError, path: Path) -> str:
    """The first line of what was said, without the server's path in it."""
    line = str(error).splitlines()[0].replace(f"'{path}'", "it").replace(str(path), "it")
    return line.removeprefix("it cannot be opened as a trace: ")[:300]
