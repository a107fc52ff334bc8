"""Two neighbouring layers of a model in each other's place, for one pass, and everything put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from normlens.lens import Lens
from normlens.models import Encoded
from normlens.studies.seen import HIDDEN


def layers_of(lens: Lens, kind: str) -> nn.ModuleList | str:
    """The list of layers that a kind of attention is in, one layer each; or why there is none."""
    wires = sorted((wire for wire in lens.wires if wire.kind == kind), key=lambda wire: wire.layer)
    if any(not wire.attention for wire in wires) or not wires:
        return "its attention is not in modules of its own"
    first = wires[0].attention.split(".")
    for depth in range(len(first) - 1, 0, -1):
        path = ".".join(first[:depth])
        found = lens.subject.model.get_submodule(path)
        names = [f"{path}.{wire.layer}." for wire in wires]
        inside = all(wire.attention.startswith(name) for wire, name in zip(wires, names, strict=True))
        if isinstance(found, nn.ModuleList) and len(found) == len(wires) and inside:
            return found
    return "its layers are not a list of modules, one for each attention block"


@contextmanager
def swapped(layers: nn.ModuleList, first: int) -> Iterator[None]:
    """Layers `first` and `first + 1` in each other's place."""
    one, two = layers[first], layers[first + 1]
    layers[first], layers[first + 1] = two, one
    try:
        yield
    finally:
        layers[first], layers[first + 1] = one, two


def final_states(lens: Lens, encoded: Encoded, kind: str) -> Tensor | None:
    """The last hidden state of a plain pass, nothing watched; None where the model returns none."""
    inputs: dict[str, Any] = {**encoded.inputs, "output_hidden_states": True}
    with torch.no_grad():
        output = lens.subject.model(**inputs)
    states = getattr(output, HIDDEN[kind], None)
    return states[-1].detach() if states else None
