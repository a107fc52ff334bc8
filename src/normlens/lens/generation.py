"""Let a model write, so that there is something to trace.

Room: calling the model's own `generate`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from normlens.models import InputError, Subject, encode


def generate(subject: Subject, prompt: Any, **options: Any) -> list[list[int]]:
    """Token ids the model writes for each prompt; those of a decoder-only model include the prompt.

    Prompts are continued one by one, so that no padding stands between a prompt and its continuation.
    """
    model: Any = subject.model
    can = getattr(model, "can_generate", None)
    if can is None or not can():
        raise InputError(
            f"'{subject.name}' ({type(model).__name__}) does not generate text.\n"
            "  Usual cause: a model without its language-model head.\n"
            "  Do: load the ...ForCausalLM or ...ForConditionalGeneration class; or give target= yourself."
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
        with torch.no_grad():
            written.append(model.generate(**inputs, **options)[0].tolist())
    return written
