"""Run a model under the tap, leaving it as it was found.

Room: one forward pass. No norms, no tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from normlens.capture.record import Attended, Refused
from normlens.capture.tap import Tap

READABLE = ("eager", "sdpa", None)  # what the tap can see into; kernels outside torch are not among it


def run(
    model: nn.Module,
    inputs: Mapping[str, Any],
    on_block: Callable[[Attended], None],
    *,
    where: Callable[[], str] | None = None,
) -> tuple[Any, list[Refused]]:
    """One forward pass of `model`; each attention block goes to `on_block` as soon as it is complete.

    Returns the model's own output, and the attention that was seen but could not be completed.
    """
    tap = Tap(parameter_names(model), on_block, where=where)
    with torch.no_grad(), visible_attention(model), torch.compiler.set_stance("force_eager"), tap:
        output = model(**inputs)
    return output, tap.refused()


def parameter_names(model: nn.Module) -> dict[int, str]:
    """Parameter names by the address of their first number."""
    return {p.data_ptr(): name for name, p in model.named_parameters() if p.data_ptr()}


@contextmanager
def visible_attention(model: nn.Module) -> Iterator[None]:
    """For the time of one pass, a model on a kernel outside torch (flash, flex) runs its eager attention."""
    configs = {id(c): c for m in model.modules() if (c := getattr(m, "config", None)) is not None}
    before = {
        key: implementation
        for key, config in configs.items()
        if (implementation := getattr(config, "_attn_implementation", None)) not in READABLE
    }
    try:
        for key in before:
            configs[key]._attn_implementation = "eager"
        yield
    finally:
        for key, implementation in before.items():
            configs[key]._attn_implementation = implementation
