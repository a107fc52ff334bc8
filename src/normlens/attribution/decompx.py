"""DecompX: the vector of every token carried through the whole network, to the logit of a prediction.

    scores_k = what token k has put into the logit        Σ_k scores_k + what belongs to no token = the logit

Attention and norms are linear with the weights and statistics of the pass, an activation is shared out among its units,
and biases are shared out among the tokens (Modarressi et al. 2023). That the sum is the model's own logit is proved in
every call.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from normlens.algebra import Rule
from normlens.attribution.linear import Lost, Program, Seed, Sharing, carried, rule, watched
from normlens.attribution.question import AttributionError, Method, Question, Scores
from normlens.capture import run_untapped

PAPER = "Modarressi et al. 2023"
ALLOWED = 1e-4


def decompx(question: Question, *, gated: Rule = "gate", sharing: Sharing = "ours") -> Scores:
    """What each token has put into the logit."""
    model, inputs = question.watcher.subject.model, question.inputs
    logit = float(question.logit(_logits(run_untapped(model, inputs).output))[0])
    watch, output = watched(model, inputs, rule, gated=gated)
    logits = _logits(output)
    number = watch.left or watch.register(logits)
    if isinstance(number, Lost):
        raise _refusal(question, f"it cannot be split in '{number.where}': {number.reason}")
    program = Program(watch.steps, number)
    if question.row is not None:
        program = program.at_row(question.row)
    program.fused()
    with torch.no_grad():
        parts, unowned = carried(
            program.shared(sharing), program.asked, question.sources, partial(_owned, places(question))
        )
    values, rest = _asked(question, parts), float(_asked(question, unowned[None])[0])
    total = float(values.double().sum()) + rest
    if not abs(total - logit) <= ALLOWED * max(1.0, abs(logit)):
        raise _refusal(question, f"its parts add up to {total:.6g}, and the logit is {logit:.6g}")
    return Scores(values, rest, logit)


def places(question: Question) -> dict[str, Tensor]:
    """The positions of the tokens that have a score, by side: padding has none."""
    kept, count = question.encoded.kept, len(question.encoded.sides[0].tokens)
    found = {"text": torch.arange(count) if kept is None else kept[0].nonzero()[:, 0].cpu()}
    if question.written is not None:
        found["written"] = torch.arange(question.written)
    return found


def _owned(places: dict[str, Tensor], seed: Seed, tokens: range) -> Tensor:
    """What some tokens own of a seed; with no tokens, the rows that none of them owns."""
    at = places.get(seed.side, torch.arange(0))
    if not tokens:
        rest = seed.whole[None].clone()
        rest[:, :, at] = 0
        return rest
    offset = len(places["text"]) if seed.side == "written" else 0
    parts = seed.whole.new_zeros(len(tokens), *seed.whole.shape)
    for index, token in enumerate(tokens):
        if 0 <= token - offset < len(at):
            position = at[token - offset]
            parts[index, :, position] = seed.whole[:, position]
    return parts


def _asked(question: Question, parts: Tensor) -> Tensor:
    """The asked combination of logits, of (source, 1, [1,] class)."""
    row = parts[:, 0] if question.row is None else parts[:, 0, 0]
    return sum((row[:, number] * factor for number, factor in question.wanted), row.new_zeros(len(row)))


def _logits(output: Any) -> Tensor:
    found = getattr(output, "logits", None)
    return output[0] if found is None else found


def _refusal(question: Question, reason: str) -> AttributionError:
    return AttributionError(
        f"The logits of '{question.watcher.subject.name}' have no parts: {reason}.",
        do="choose a method that does not need them, such as by='gradient_x_input' or by='leave_one_out'.",
    )


ROWS = (
    Method(
        "decompx", "DecompX", "What the vector of each token, carried through all layers, adds to the logit.",
        PAPER, decompx, adds_up=True,
    ),
    Method(
        "decompx_both", "DecompX, both halves",
        "DecompX where a gated feed-forward block is shared out between the gate and what it multiplies.",
        PAPER, partial(decompx, gated="both"), adds_up=True,
    ),
    Method(
        "decompx_authors", "DecompX, as published",
        "DecompX with biases shared as its authors do: those of attention once the residual is added.",
        PAPER, partial(decompx, sharing="theirs"), adds_up=True,
    ),
)  # fmt: skip
