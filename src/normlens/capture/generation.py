"""Let a model write, so that there is something to trace."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from normlens.models import Encoded, InputError, Subject, encode, longest


def generate(subject: Subject, prompt: Any, **options: Any) -> list[list[int]]:
    """Token ids the model writes for each prompt; those of a decoder-only model include the prompt.

    Prompts are continued one by one, so that no padding stands between a prompt and its continuation.
    """
    model: Any = subject.model
    can = getattr(model, "can_generate", None)
    if can is None or not can():
        raise InputError(
            f"'{subject.name}' ({type(model).__name__}) does not generate text.",
            cause="a model without its language-model head.",
            do=(
                "load the ...ForCausalLM or ...ForConditionalGeneration class; or give the target yourself: "
                "--target, target= in Python."
            ),
        )
    encoded = encode(subject, prompt)
    written = []
    for row in range(len(encoded.sides)):
        kept = None if encoded.kept is None else encoded.kept[row]
        inputs = {
            name: value[row : row + 1] if kept is None or value.shape[1:2] != kept.shape else value[row : row + 1, kept]
            for name, value in encoded.inputs.items()
            if isinstance(value, Tensor)
        }
        room = (
            {} if {"max_new_tokens", "max_length"} & set(options) else {"max_new_tokens": _room(subject, encoded, row)}
        )
        with torch.no_grad():
            written.append(model.generate(**inputs, **room, **options)[0].tolist())
    return written


def _room(subject: Subject, encoded: Encoded, row: int) -> int:
    """How long a text may get when nobody said: twice the prompt and some, within the model's positions."""
    wanted = 2 * len(encoded.sides[row].tokens) + 20
    limit = longest(subject)
    return wanted if limit is None else max(1, min(wanted, limit - 1))
