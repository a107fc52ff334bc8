"""ALTI-Logit: what each layer's attention adds to the logit directly, traced back to the tokens by ALTI.

    scores_k = Σ_l Σ_j  Δ_l(j) · M_{l-1}[j, k]  +  what token k's own embedding adds directly

Δ_l(j) is what the vector Σ_h α f_h(x_j) of layer l adds to the logit through the residual stream and the last norm with
its statistics; M_{l-1} is ALTI through the layers before. What feed-forward blocks and biases add belongs to no token.
"""

from __future__ import annotations

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from normlens.attribution.decompx import Opened, own_rows, places, refusal
from normlens.attribution.linear import Active, Leaf, Mixed, Seed, Step, slopes
from normlens.attribution.question import AttributionError, Method, Question, Scores
from normlens.models import separately


def alti_logit(question: Question) -> Scores:
    """What each token adds to the logit by way of attention and its own embedding."""
    if question.written is not None:
        raise AttributionError(
            "ALTI-Logit is for models with one side.",
            got=f"'{question.watcher.subject.name}', which has an encoder and a decoder.",
            do="by='decompx', which is for both.",
        )
    opened = Opened.of(question)
    program = opened.program
    cut = partial(_ends, passed=program.heads() | program.trunk())
    value, leaves = slopes(program.steps, program.asked, lambda logits: opened.asked(logits[None])[0], cut)
    own = sum((own_rows(question, leaf) for leaf in leaves if isinstance(leaf.step.act, Seed)), torch.zeros(()))
    if not bool(own.any()):
        raise refusal(question, "no residual stream leads from the embeddings to the logit")
    attention = [leaf for leaf in leaves if isinstance(leaf.step.act, Mixed)]
    values, before = own, _made_of(question, attention)
    for leaf, made_of in zip(attention, before, strict=True):
        values = values + _by_key(leaf)[places(question)["text"]] @ made_of
    return opened.proved(values, value - float(values.double().sum()))


def _ends(step: Step, passed: set[int]) -> bool:
    """Where the direct way ends: at attention, and at the units of a feed-forward block."""
    return isinstance(step.act, Mixed) or (isinstance(step.act, Active) and step.writes not in passed)


def _by_key(leaf: Leaf) -> Float[Tensor, " src"]:
    """What the vectors of each key add, over all heads and queries."""
    assert isinstance(leaf.step.act, Mixed)
    return (leaf.step.act.weights * (leaf.slope @ leaf.read[0].mT)).flatten(0, -2).sum(0).cpu()


def _made_of(question: Question, attention: list[Leaf]) -> list[Float[Tensor, "tgt src"]]:
    """What the positions in front of each layer are made of, by ALTI; the blocks must be those of the program."""
    (alone,) = separately(question.watcher.subject, question.encoded)
    trace = question.watcher.trace(alone.inputs, fields=("weights", "alti"))
    blocks, at = trace.self_attention, places(question)["text"]
    weights = [
        _by_head(leaf.step.act.weights)[:, at][:, :, at] for leaf in attention if isinstance(leaf.step.act, Mixed)
    ]
    is_same = len(weights) == len(blocks) and all(
        mine.shape == block.weights[0].shape and torch.allclose(mine, block.weights[0], atol=1e-5)
        for mine, block in zip(weights, blocks, strict=False)
    )
    if not is_same:
        raise refusal(question, "its attention is not one exact block after the other")
    through = trace.alti().layers[0].to(weights[0])
    return [torch.eye(len(at)), *through[:-1].cpu()]


def _by_head(weights: Tensor) -> Float[Tensor, "head tgt src"]:
    """The weights of one text, whether its heads have an axis of their own or share that of the texts."""
    return weights.flatten(0, -3)


ROWS = (
    Method(
        "alti_logit",
        "ALTI-Logit",
        "What attention to the token adds to the logit directly, layer by layer, with the layers before by ALTI.",
        "Ferrando et al. 2023",
        alti_logit,
        adds_up=True,
    ),
)
