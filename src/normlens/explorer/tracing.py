"""The work itself: a text and a model to a trace, a trace to a result. Runs in a worker, and only there.

Room: where the explorer meets lens and views. No pipes, no HTTP. `tell(stage, done, of)` is called often; it raises
when the job was cancelled, which ends the work where it stands.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from normlens import lens as lenses
from normlens import models
from normlens.alignment.default import default_lens
from normlens.explorer import memory, result
from normlens.explorer.allowed import TRANSLATORS
from normlens.explorer.opened import checked
from normlens.explorer.refusal import Refusal
from normlens.lens import Block, Lens, Trace
from normlens.lens.generation import generate

Tell = Callable[[str, int, int], None]
KEPT = ("weights", "transformed_norms", "summed_norms")  # ‖αf(x)‖ follows from them


def load(model: dict[str, Any]) -> Lens:
    """The lens a worker is for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lenses.PartlyExact)  # the view itself says which blocks are there
        if not model["embedded"]:
            return lenses.load(model["source"])
        return default_lens(model["source"]) if model["source"] in TRANSLATORS else lenses.load()


def traced(lens: Lens, order: dict[str, Any], tell: Tell) -> Trace:
    """One pass over one text, counted block by block."""
    encoded = _encoded(lens, order, tell)
    tokens = {side.name: len(side.tokens) for side in (*encoded.sides, *encoded.targets)}
    too_many = [number for number in tokens.values() if number > order["tokens"]]
    if too_many:
        raise Refusal(
            422,
            f"The text has {too_many[0]:,} tokens; this explorer takes {order['tokens']:,}.",
            "shorten it; or start the explorer with a larger --max-tokens.",
        )
    memory.check(lens, tokens, order["memory"])
    of = sum(wire.exact for wire in lens.wires)
    blocks: list[Block] = []

    def keep(block: Block) -> None:
        blocks.append(block)
        tell("layers", len(blocks), max(of, len(blocks)))

    tell("layers", 0, of)
    lens.observe(encoded, keep, fields=KEPT)
    return Trace(tuple(blocks), lens.wires, encoded.sides, encoded.targets, lens.signature)


def opened(path: Path, order: dict[str, Any]) -> Trace:
    """A trace that somebody saved, once it is known to be nothing else."""
    size = path.stat().st_size
    if memory.FACTOR * size > order["memory"] - memory.used():
        raise memory.refusal(order["memory"])
    trace = checked(path)
    path.unlink()
    return trace


def finished(folder: Path, trace: Trace, base: Path | None, tell: Tell) -> dict[str, Any]:
    """Write what the page asks for, and say what it is."""
    tell("packing", 0, 0)
    if base is not None:
        figure = lenses.open(base).minus(trace)
        base.unlink()
    else:
        figure = trace.figure()
        trace.save(folder / result.TRACE)
    result.write(folder, figure)
    tell("packing", 1, 1)
    return {"title": figure.title, "difference": base is not None, "tokens": [len(s.tokens) for s in figure.sides]}


def _encoded(lens: Lens, order: dict[str, Any], tell: Tell) -> models.Encoded:
    subject, text, target = lens.subject, order["text"], order["target"]
    if not subject.is_seq2seq:
        if target is not None:
            raise Refusal(422, f"'{subject.name}' has one side, so it takes no target.", "leave the target out.")
        return models.encode(subject, (text, order["pair"]) if order["pair"] else text)
    if target is not None:
        return models.encode_both(subject, text, target)
    return models.encode_both(subject, text, _written(lens, text, order["tokens"], tell))


def _written(lens: Lens, text: str, most: int, tell: Tell) -> list[list[int]]:
    """What the model writes itself, token by token, so that it can be stopped."""
    source = len(models.encode(lens.subject, text).sides[0].tokens)
    if source > most:
        raise Refusal(422, f"The text has {source:,} tokens; this explorer takes {most:,}.", "shorten it.")
    room = min(2 * source + 20, most - 1, (models.longest(lens.subject) or most) - 1)

    def watch(ids: torch.Tensor, _: Any, **__: Any) -> torch.Tensor:
        tell("writing", ids.shape[1], room)
        return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)

    return generate(lens.subject, text, max_new_tokens=max(1, room), stopping_criteria=[watch])
