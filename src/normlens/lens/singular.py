"""The singular values of f for every head of a model: a property of its weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from normlens import algebra
from normlens.capture import Attended, ValueMap, value_maps
from normlens.lens.doctor import NoProbe
from normlens.lens.lens import Lens
from normlens.lens.probe import probe_inputs
from normlens.lens.wiring import Kind


@dataclass(frozen=True, slots=True, eq=False)
class SingularValues:
    """Singular values of f̃_h, x̃ = [x, 1], by (kind, layer). Every block of the model is in one of the two."""

    values: dict[tuple[Kind, int], Float[Tensor, "head value"]]  # head_dim + 1 of them, largest first
    reasons: dict[tuple[Kind, int], str]  # blocks whose f is no linear map that can be found, and why


def singular_values(lens: Lens, *, probe: Mapping[str, Any] | None = None) -> SingularValues:
    """How much each head stretches vectors: the singular values of f_h as a linear map, in double precision.

    `probe`, a dict of model inputs, is for a model whose inputs cannot be guessed, as in `load`.
    """
    inputs = probe if probe is not None else probe_inputs(lens.subject)
    if inputs is None:
        raise NoProbe(
            f"No made-up input was accepted by '{lens.subject.name}'.",
            cause="a model with inputs of its own.",
            do="give probe={...}, a dict of inputs it takes.",
        )
    if lens.examination is None:
        lens.prove(inputs)
    wires = {(wire.out, wire.use): wire for wire in lens.wires if wire.exact}
    reasons: dict[tuple[Kind, int], str] = {}
    for wire in lens.wires:
        reasons[wire.kind, wire.layer] = wire.reason or "the probe does not reach it"
    values: dict[tuple[Kind, int], Tensor] = {}
    uses: Counter[str] = Counter()

    def receive(attended: Attended, found: ValueMap | str) -> None:
        wire = wires.get((attended.out, uses[attended.out]))
        uses[attended.out] += 1
        if wire is None:
            return
        block = wire.kind, wire.layer
        reason = found if isinstance(found, str) else attended.no_transformed
        if isinstance(found, str) or reason is not None:
            reasons[block] = reason or ""
            return
        values[block] = _of_block(found, attended.out_weight)
        del reasons[block]

    options = {} if lens.examination is None else lens.examination.options
    value_maps(lens.subject.model, inputs, receive, **options)
    return SingularValues(values, reasons)


def _of_block(found: ValueMap, out_weight: Float[Tensor, "head head_dim model"]) -> Float[Tensor, "head value"]:
    """On the CPU: some devices have no double precision."""
    bias = None if found.bias is None else found.bias.cpu()
    return algebra.singular_values(found.weight.cpu(), bias, out_weight.cpu())
