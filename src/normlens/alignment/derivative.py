"""One forced pass from which each written piece can be traced back to the embeddings of the source.

Room: hooks and autograd. Leaves nothing on the model: the hooks are gone after an exception too, no parameter gets a
gradient. What the gradients mean is not known here.

The output layer reads each position for itself. So one short step back gives the gradients of all log p with respect
to what it reads, and the long way back, once for each piece, never meets the vocabulary.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from normlens.errors import NormlensError


class GradientError(NormlensError):
    """A model, or a setting, from which no gradient with respect to the source can be had."""


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """What one pass left to walk back on."""

    clean: Float[Tensor, "copy src dim"]  # embeddings of the source as the model has them
    changed: Float[Tensor, "copy src dim"]  # as it was given them
    last: Float[Tensor, "copy tgt *dim"]  # what the output layer reads; log p itself where that is not to be seen
    onward: Float[Tensor, "copy tgt *dim"]  # the gradient of log p of what is written there, with respect to `last`

    def slope(self, step: int) -> Float[Tensor, "copy src dim"]:
        """The gradient of log p of what position `step` writes, with respect to the embeddings."""
        with torch.inference_mode(False), torch.enable_grad():
            return torch.autograd.grad(self.last[:, step], self.changed, self.onward[:, step], retain_graph=True)[0]


def forced(
    model: Any, inputs: Mapping[str, Tensor], written: Int[Tensor, "copy tgt"], change: Callable[[Tensor], Tensor]
) -> Pass:
    """Run the model on a source whose embeddings went through `change`, forced to write `written`."""
    with torch.inference_mode(False), torch.enable_grad():
        inputs = {name: value.clone() for name, value in inputs.items()}  # made in inference mode, they break autograd
        clean, changed, last, logits = _run(model, inputs, tuple(written.shape), change)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        chances = logits.log_softmax(dim=-1).gather(-1, written.clone()[..., None]).squeeze(-1)
        if last is None:
            return Pass(clean, changed, chances, torch.ones_like(chances))
        return Pass(clean, changed, last, torch.autograd.grad(chances.sum(), last)[0])


def _run(
    model: Any, inputs: Mapping[str, Tensor], shape: tuple[int, ...], change: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    me, seen = threading.get_ident(), dict[str, Tensor]()

    def embed(module: nn.Module, args: Any, output: Tensor) -> Tensor | None:
        if threading.get_ident() != me or "clean" in seen:
            return None
        seen["clean"] = output.detach()
        seen["changed"] = change(seen["clean"]).detach().clone().requires_grad_()
        return seen["changed"]

    def read(module: nn.Module, args: tuple[Any, ...]) -> None:
        if threading.get_ident() == me and args and args[0].ndim == 3 and args[0].shape[:2] == shape:
            seen["last"] = args[0]

    encoder, head = model.get_encoder(), model.get_output_embeddings()
    with _table(model, encoder).register_forward_hook(embed):
        encoded = encoder(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], return_dict=True)
    if "clean" not in seen:
        raise GradientError(_unseen(model))
    with (nn.Identity() if head is None else head).register_forward_pre_hook(read):
        output = model(encoder_outputs=encoded, **inputs, use_cache=False, return_dict=True)
    if getattr(output, "logits", None) is None:
        raise GradientError(
            f"{type(model).__name__} has no output layer, so nothing is written whose chance could be asked for.",
            cause="the bare model, loaded without its head.",
            do="load it with AutoModelForSeq2SeqLM, or align with weights or norms.",
        )
    return seen["clean"], seen["changed"], seen.get("last"), output.logits


def _table(model: Any, encoder: Any) -> nn.Module:
    """The module that turns the ids of the source into embeddings."""
    for holder in (encoder, model):
        try:
            table = holder.get_input_embeddings()
        except (AttributeError, NotImplementedError):
            continue
        if isinstance(table, nn.Module):
            return table
    raise GradientError(_unseen(model))


def _unseen(model: Any) -> str:
    return (
        f"{type(model).__name__} does not read its source through a table of token embeddings.\n"
        "  Usual cause: a model whose source is no text, such as speech or images.\n"
        "  Do: align with weights or norms instead."
    )
