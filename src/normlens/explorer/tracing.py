"""The work of a worker: a text and a model to a trace, a trace to a result, a result to a page.

`tell(stage, done, of)` is called often and raises when the job was cancelled.
"""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from normlens import lens as lenses
from normlens import models, views
from normlens.alignment import default_lens
from normlens.explorer import memory, results
from normlens.explorer.refusal import Refusal, gone
from normlens.explorer.settings import TRANSLATORS
from normlens.lens import Block, Lens, Trace, generate

Tell = Callable[[str, int, int], None]
KEPT = ("weights", "transformed_norms", "summed_norms")  # ‖αf(x)‖ follows from them


def load(model: dict[str, Any]) -> Lens:
    """The lens of a worker."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lenses.PartlyExact)  # the view says which blocks are there
        if not model["bundled"]:
            return lenses.load(model["source"])
        return default_lens(model["source"]) if model["source"] in TRANSLATORS else lenses.load()


def trace(lens: Lens, order: dict[str, Any], tell: Tell) -> Trace:
    """One pass over one text, reported block by block."""
    try:
        encoded = _encoded(lens, order, tell)
    except models.InputError as error:  # its advice is for the command line
        do = "shorten or change the text" + (", or type the target." if lens.subject.is_seq2seq else ".")
        raise Refusal(422, error.what, got=error.got, cause=error.cause, do=do) from error
    tokens = {side.name: len(side.tokens) for side in (*encoded.sides, *encoded.targets)}
    _check_tokens(max(tokens.values(), default=0), order["tokens"])
    count = " and ".join(f"{number:,}" for number in tokens.values())
    memory.check(f"{count} tokens", memory.needed(lens, tokens), order["memory"])
    of = sum(wire.exact for wire in lens.wires)
    blocks: list[Block] = []

    def keep(block: Block) -> None:
        blocks.append(block)
        tell("layers", len(blocks), max(of, len(blocks)))

    tell("layers", 0, of)
    lens.observe(encoded, keep, fields=KEPT)
    return Trace(tuple(blocks), lens.wires, encoded.sides, encoded.targets, lens.signature)


def finish(traced: Trace, order: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Write the files of a result, and return the facts about it."""
    tell("packing", 0, 0)
    folder, difference = Path(order["folder"]), order["difference"]
    figure = lenses.open(folder / results.FIRST).minus(traced) if difference else traced.figure()
    traced.save(folder / (results.SECOND if difference else results.TRACE))
    results.write(folder, figure)
    tell("packing", 1, 1)
    return {"title": figure.title, "difference": difference, "tokens": [len(side.tokens) for side in figure.sides]}


def write_page(order: dict[str, Any]) -> dict[str, Any]:
    """Write the page of a result to download, as it is shown in the browser."""
    source = Path(order["page_of"])
    paths = [source / name for name in (results.TRACE, results.FIRST, results.SECOND) if (source / name).exists()]
    if not paths:
        raise gone()
    memory.check("The traces", memory.FACTOR * sum(path.stat().st_size for path in paths), order["memory"])
    traces = [lenses.open(path) for path in paths]
    figure = traces[0].minus(traces[1]) if len(traces) > 1 else traces[0].figure()
    page = views.page(_shown_as(figure, order["look"]))
    (Path(order["folder"]) / results.PAGE).write_text(page, encoding="utf-8")
    return {}


def _shown_as(figure: views.Figure, look: str) -> views.Figure:
    """The figure with the look of a browser, JSON in base64url; one that does not fit the figure is ignored."""
    try:
        return figure.looking(**json.loads(base64.urlsafe_b64decode(look + "=" * (-len(look) % 4))))
    except Exception:  # a stranger's words: whatever is wrong with them, the page opens as it would without
        return figure


def _encoded(lens: Lens, order: dict[str, Any], tell: Tell) -> models.Encoded:
    subject, text, target = lens.subject, order["text"], order["target"]
    if subject.is_seq2seq:
        return models.encode_both(subject, text, target or _written(lens, text, order["tokens"], tell))
    if target is not None:  # its configuration says otherwise
        raise Refusal(422, f"'{subject.name}' has one side, so it takes no target.", do="leave the target out.")
    return models.encode(subject, (text, order["pair"]) if order["pair"] else text)


def _written(lens: Lens, text: str, most: int, tell: Tell) -> list[list[int]]:
    """The target that the model writes, token by token, so that it can be cancelled."""
    source = len(models.encode(lens.subject, text).sides[0].tokens)
    _check_tokens(source, most)
    longest = min(2 * source + 20, most - 1, (models.longest(lens.subject) or most) - 1)

    def watch(ids: torch.Tensor, _: Any, **__: Any) -> torch.Tensor:
        tell("writing", ids.shape[1], longest)
        return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)

    return generate(lens.subject, text, max_new_tokens=max(1, longest), stopping_criteria=[watch])


def _check_tokens(count: int, most: int) -> None:
    if count > most:
        what = f"The text has {count:,} tokens; this explorer takes {most:,}."
        raise Refusal(422, what, do="shorten it; or start the explorer with a larger --max-tokens.")
