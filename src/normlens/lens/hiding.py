"""A pass in which some keys are hidden from some queries, block by block and head by head.

The attention module of a block is handed its mask with the lowest number where a key is hidden, so the softmax gives
that key no weight and the others more. That it did is proved in every block of the pass.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from normlens.capture import switched
from normlens.errors import NormlensError
from normlens.lens.block import Block
from normlens.lens.lens import Lens
from normlens.lens.wiring import Kind
from normlens.models import Encoded

HiddenKeys = Mapping[tuple[Kind, int], Bool[Tensor, "batch head tgt src"]]  # by kind and layer; an axis may be 1 wide


class HidingError(NormlensError):
    """Keys of a block that cannot be hidden."""


def observe_hiding(lens: Lens, encoded: Encoded, hidden: HiddenKeys, *, hidden_states: bool = False) -> Any:
    """One pass in which the keys where `hidden` is true get no weight; what the model returned.

    Positions are those of the inputs, which must not be padded on the left.
    """
    done: set[tuple[Kind, int]] = set()

    def proved(block: Block) -> None:
        mask = hidden.get((block.kind, block.layer))
        if mask is None:
            return
        done.add((block.kind, block.layer))
        if bool((block.weights.masked_select(mask) != 0).any()):
            raise _refusal(lens, block.kind, block.layer, "hidden keys still receive attention")

    with _masks(lens, hidden):
        output = lens.observe(encoded, proved, fields=("weights",), hidden_states=hidden_states)
    missing = next((cell for cell in hidden if cell not in done), None)
    if missing is not None:
        raise _refusal(lens, *missing, "it is no exact block of this pass")
    return output


@contextmanager
def _masks(lens: Lens, hidden: HiddenKeys) -> Iterator[None]:
    """Every attention module gets its mask with the hidden keys in it; a module that runs again gets the next one."""
    model, handles = lens.subject.model, []
    by_module: dict[str, list[tuple[int, Kind, int]]] = {}
    for wire in lens.wires:
        by_module.setdefault(wire.attention, []).append((wire.use, wire.kind, wire.layer))
    try:
        for path, uses in by_module.items():
            cells = [(kind, layer) for _, kind, layer in sorted(uses)]
            masks = [hidden.get(cell) for cell in cells]
            if all(mask is None for mask in masks):
                continue
            module = model.get_submodule(path) if path else model
            if not path or "attention_mask" not in inspect.signature(module.forward).parameters:
                raise _refusal(lens, *cells[0], "its module takes no attention_mask")
            handles.append(module.register_forward_pre_hook(_hook(masks), with_kwargs=True))
        with switched(model, ("sdpa",)):  # which would leave the causal mask out where it can
            yield
    finally:
        for handle in handles:
            handle.remove()


def _hook(masks: list[Tensor | None]) -> Any:
    rest = iter(masks)

    def hide(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
        mask = next(rest, None)
        if mask is None:
            return None
        given = inspect.signature(module.forward).bind(*args, **kwargs)
        given.arguments["attention_mask"] = _joined(given.arguments.get("attention_mask"), mask, given.args[0])
        return given.args, given.kwargs

    return hide


def _joined(given: Tensor | None, hidden: Bool[Tensor, "batch head tgt src"], states: Any) -> Tensor:
    if isinstance(given, Tensor) and given.dtype == torch.bool:
        return given & ~hidden.to(given.device)
    if given is None:
        given = torch.zeros((), dtype=states.dtype, device=states.device)
    hidden = hidden.to(given.device)
    return given.expand(torch.broadcast_shapes(given.shape, hidden.shape)).masked_fill(
        hidden, torch.finfo(given.dtype).min
    )


def _refusal(lens: Lens, kind: Kind, layer: int, reason: str) -> HidingError:
    return HidingError(
        f"Keys of {kind} layer {layer} of '{lens.subject.name}' cannot be hidden: {reason}.",
        cause="the model makes its mask inside the attention, or adds it to something else.",
        do="choose a study that hides no keys.",
    )
