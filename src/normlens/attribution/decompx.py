"""DecompX: the vector of every token carried through the whole network, to the logit of a prediction.

    scores_k = what token k has put into the logit        Σ_k scores_k + what belongs to no token = the logit

Attention and norms are linear with the weights and statistics of the pass, an activation is shared out among its units,
and biases are shared out among the tokens (Modarressi et al. 2023). That the sum is the model's own logit is proved in
every call.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from normlens.algebra import Rule
from normlens.attribution.embeddings import check_precision
from normlens.attribution.linear import Leaf, Lost, Program, Seed, Sharing, carried, rule, slopes, watched
from normlens.attribution.question import AttributionError, Method, Question, Scores
from normlens.capture import run_untapped

PAPER = "Modarressi et al. 2023"
ALLOWED = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A question as a program of linear steps, whose last tensor holds the logits that are asked about."""

    question: Question
    program: Program
    logit: float  # the model's own

    @staticmethod
    def of(question: Question, gated: Rule = "gate") -> Opened:
        check_precision(question)
        model, inputs = question.watcher.subject.model, question.inputs
        logit = float(question.logit(run_untapped(model, inputs).output.logits)[0])
        watch, output = watched(model, inputs, rule, gated=gated)
        number = watch.left or watch.register(output.logits)
        if isinstance(number, Lost):
            raise refusal(question, f"it cannot be split in '{number.where}': {number.reason}")
        program = Program(watch.steps, number)
        _check_rows(question, program)
        if question.row is not None:
            program = program.at_row(question.row)
        program.fused()
        return Opened(question, program, logit)

    def asked(self, parts: Float[Tensor, "source ..."]) -> Float[Tensor, " source"]:
        """What parts of the logits are parts of: the asked combination."""
        row = parts[:, 0] if self.question.row is None else parts[:, 0, 0]
        return sum((row[:, number] * factor for number, factor in self.question.wanted), row.new_zeros(len(row)))

    def proved(self, values: Float[Tensor, " source"], unowned: float) -> Scores:
        """Scores that add up to the model's own logit."""
        total = float(values.double().sum()) + unowned
        if not abs(total - self.logit) <= ALLOWED * max(1.0, abs(self.logit)):
            raise refusal(self.question, f"the parts add up to {total:.6g}, and the logit is {self.logit:.6g}")
        return Scores(values, unowned, self.logit)


def decompx(question: Question, *, gated: Rule = "gate", sharing: Sharing = "ours") -> Scores:
    """What each token has put into the logit."""
    opened = Opened.of(question, gated)
    program, owned = opened.program, partial(_owned, places(question))
    with torch.no_grad():
        parts, unowned = carried(program.shared(sharing), program.asked, question.sources, owned)
    return opened.proved(opened.asked(parts), float(opened.asked(unowned[None])[0]))


def unshared(question: Question, *, gated: Rule = "gate") -> Scores:
    """The same with biases left to no token: linear in the embeddings, so one slope says it all."""
    opened = Opened.of(question, gated)
    steps, asked = opened.program.steps, opened.program.asked
    value, leaves = slopes(steps, asked, lambda logits: opened.asked(logits[None])[0], lambda step: False)
    values = sum((own_rows(question, leaf) for leaf in leaves), torch.zeros(question.sources))
    return opened.proved(values, value - float(values.double().sum()))


def _check_rows(question: Question, program: Program) -> None:
    """Refuse a model whose tokens begin in another form than (text, position, …)."""
    names = {"text": "input_ids", "written": "decoder_input_ids"}
    for step in program.steps:
        if isinstance(step.act, Seed) and names[step.act.side] in question.inputs:
            shape = tuple(question.inputs[names[step.act.side]].shape)
            if step.shape[:2] != shape:
                raise refusal(
                    question, f"'{step.where}' has its tokens as {step.shape}, which is not by text and position"
                )


def own_rows(question: Question, leaf: Leaf) -> Float[Tensor, " source"]:
    """What the rows of a seed add to what is asked, by their tokens."""
    seed, at = leaf.step.act, places(question)
    assert isinstance(seed, Seed)
    rows = leaf.adds.sum(dim=(0, 2)).cpu()
    sides = [rows[at[side]] if side == seed.side else torch.zeros(len(at[side])) for side in at]
    return torch.cat(sides)


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


def refusal(question: Question, reason: str) -> AttributionError:
    return AttributionError(
        f"The logits of '{question.watcher.subject.name}' have no parts: {reason}.",
        do="choose a method that does not need them, such as by='gradient_x_input' or by='leave_one_out'.",
    )


ROWS = (
    Method(
        "decompx",
        "DecompX",
        "What the vector of the token, carried through all layers, adds to the logit.",
        PAPER,
        decompx,
        adds_up=True,
    ),
    Method(
        "decompx_both",
        "DecompX, gates too",
        "DecompX where half of a gated feed-forward block is shared out by the gate; elsewhere the same as decompx.",
        PAPER,
        partial(decompx, gated="both"),
        adds_up=True,
    ),
    Method(
        "decompx_authors",
        "DecompX, as published",
        "DecompX with biases shared out as its authors do: those of attention once the residual is added.",
        PAPER,
        partial(decompx, sharing="theirs"),
        adds_up=True,
    ),
    Method(
        "decompx_unshared",
        "DecompX, biases apart",
        "DecompX with the biases left to no token, by one backward pass.",
        PAPER,
        unshared,
        adds_up=True,
    ),
)
