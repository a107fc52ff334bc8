"""A question asked again of other token embeddings, with gradients."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from normlens.attribution.question import AttributionError, Question
from normlens.models import as_found, takes_by_name

IDS = ("input_ids", "decoder_input_ids")  # in the order of the source tokens of a question
TOKENS_AT_ONCE = 2048  # in one pass, all copies of the text together


def embedded(question: Question) -> Float[Tensor, "source dim"]:
    """The vectors that the token ids of a question stand for, before positions are added."""
    check_precision(question)
    with torch.no_grad():
        clean = _run(question, 1, None)[1]
    return torch.cat([clean[name][0] for name in IDS if name in clean])


def asked_of(question: Question, vectors: Float[Tensor, "copy source dim"]) -> Float[Tensor, " copy"]:
    """The logit of a question for copies of its text whose tokens have these vectors."""
    options, asked = from_row(question)
    return asked.logit(_run(question, len(vectors), vectors, **options)[0].logits)


def from_row(question: Question) -> tuple[dict[str, Any], Question]:
    """Options of a pass that computes no logits before the row that is read, and the question of such logits."""
    model: Any = question.watcher.subject.model
    if question.row is None or question.written is not None or not takes_by_name(model, "logits_to_keep"):
        return {}, question
    return {"logits_to_keep": question.sources - question.row}, replace(question, row=0)


def last_states(
    question: Question, vectors: Float[Tensor, "copy source dim"]
) -> tuple[Float[Tensor, "copy position model"], Float[Tensor, " copy"]]:
    """What the head of the model reads, and the logit, for copies of the text whose tokens have these vectors."""
    options, asked = from_row(question)
    output = _run(question, len(vectors), vectors, output_hidden_states=True, **options)[0]
    states = getattr(output, "decoder_hidden_states" if question.written is not None else "hidden_states", None)
    if not states or states[-1].ndim != 3:
        name, what = question.watcher.subject.name, "one hidden state for each position" if states else "hidden states"
        raise AttributionError(f"'{name}' does not return {what}.", do="choose another method.")
    return states[-1], asked.logit(output.logits)


def reading(question: Question) -> Float[Tensor, " position"]:
    """Which positions the prediction is read from, as shares: one, or several where the head averages them."""
    vectors = embedded(question)[None]
    with torch.inference_mode(False), torch.enable_grad():
        states, logit = last_states(question, vectors.requires_grad_())
        (slope,) = torch.autograd.grad(logit.sum(), states, allow_unused=True)
    sizes = torch.zeros(1) if slope is None else slope[0].norm(dim=-1)
    if not float(sizes.sum()) > 0:
        name = question.watcher.subject.name
        raise AttributionError(
            f"No position was found that the prediction of '{name}' is read from.", do="choose another method."
        )
    return sizes / sizes.sum()


def slopes(
    question: Question, vectors: Float[Tensor, "copy source dim"]
) -> tuple[Float[Tensor, " copy"], Float[Tensor, "copy source dim"]]:
    """The logit for each copy, and its derivative by the vectors."""
    logits, gradients = [], []
    for part in vectors.split(at_once(vectors)):
        with torch.inference_mode(False), torch.enable_grad():
            given = part.detach().clone().requires_grad_()
            logit = asked_of(question, given)
            gradients.append(torch.autograd.grad(logit.sum(), given)[0])
        logits.append(logit.detach())
    return torch.cat(logits), torch.cat(gradients)


def at_once(vectors: Float[Tensor, "*copy source dim"]) -> int:
    """How many copies of a text go through the model together."""
    return max(1, TOKENS_AT_ONCE // vectors.shape[-2])


def check_precision(question: Question) -> None:
    """Gradients and parts of a model in half precision lose what is small: such a model is refused."""
    dtype = next(question.watcher.subject.model.parameters()).dtype
    if dtype not in (torch.float32, torch.float64):
        raise AttributionError(
            f"'{question.watcher.subject.name}' runs in {str(dtype).removeprefix('torch.')}, in which small gradients "
            "and parts are lost.",
            do="load it in single precision: --dtype float32, in Python dtype='float32'.",
        )


def _run(question: Question, copies: int, vectors: Tensor | None, **options: Any) -> tuple[Any, dict[str, Tensor]]:
    """What a pass returns, and the embeddings the model made itself, by the name of their ids."""
    model: Any = question.watcher.subject.model
    inputs = {name: repeated(value, copies) for name, value in question.inputs.items()}
    lengths = {name: inputs[name].shape[1] for name in IDS if name in inputs}
    given = {} if vectors is None else dict(zip(lengths, vectors.split(list(lengths.values()), dim=1), strict=True))
    with (
        as_found(model, hooks="output_hidden_states" in options),
        _replacing(model, {name: inputs[name] for name in lengths}, given) as clean,
    ):
        output = model(**inputs, **options)
    if clean.keys() != lengths.keys():
        raise AttributionError(
            f"'{question.watcher.subject.name}' does not read its tokens through a table of embeddings.",
            cause="ids that are cut, shifted or hashed before they are looked up.",
            do="choose a method without gradients.",
        )
    return output, clean


@contextmanager
def _replacing(model: nn.Module, ids: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """Hand the model other vectors for its ids meanwhile; yields the vectors it looked up itself."""
    me, clean = threading.get_ident(), dict[str, Tensor]()

    def look_up(module: nn.Module, args: tuple[Any, ...], output: Any) -> Tensor | None:
        if threading.get_ident() != me or not args or not isinstance(args[0], Tensor) or not isinstance(output, Tensor):
            return None
        for name, wanted in ids.items():
            if name not in clean and args[0].shape == wanted.shape and bool((args[0] == wanted).all()):
                clean[name] = output.detach()
                return given[name].to(output.dtype) if name in given else None
        return None

    tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    handles = [table.register_forward_hook(look_up) for table in tables]
    try:
        yield clean
    finally:
        for handle in handles:
            handle.remove()


def repeated(value: Any, copies: int) -> Any:
    """An input for so many copies of a text."""
    return value.repeat(copies, *[1] * (value.ndim - 1)) if isinstance(value, Tensor) and value.ndim else value
