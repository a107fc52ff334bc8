"""How f stretches vectors: singular values of every head, expansion rate of every block, properties of the weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from jaxtyping import Float
from torch import Tensor

from normlens import algebra
from normlens.capture import Attended, ValueMap, value_maps
from normlens.lens.doctor import NoProbe
from normlens.lens.lens import Lens
from normlens.lens.probe import probe_inputs
from normlens.lens.wiring import Kind

T = TypeVar("T")
Reasons = dict[tuple[Kind, int], str]


@dataclass(frozen=True, slots=True, eq=False)
class SingularValues:
    """Singular values of f̃_h, x̃ = [x, 1], by (kind, layer). Every block of the model is in one of the two."""

    values: dict[tuple[Kind, int], Float[Tensor, "head value"]]  # head_dim + 1 of them, largest first
    reasons: Reasons  # blocks whose f is no linear map that can be found, and why


@dataclass(frozen=True, slots=True, eq=False)
class ExpansionRates:
    """‖f̃‖_F / √(d + 1) of all heads together, by (kind, layer). Every block of the model is in one of the two."""

    values: dict[tuple[Kind, int], float]
    reasons: Reasons


def singular_values(lens: Lens, *, probe: Mapping[str, Any] | None = None) -> SingularValues:
    """How much each head stretches vectors: the singular values of f_h as a linear map, in double precision.

    `probe`, a dict of model inputs, is for a model whose inputs cannot be guessed, as in `load`.
    """

    def of(weight: Tensor, bias: Tensor | None, attended: Attended) -> Tensor:
        return algebra.singular_values(weight, bias, attended.out_weight.cpu())

    return SingularValues(*_of_blocks(lens, probe, of))


def expansion_rates(
    lens: Lens, *, probe: Mapping[str, Any] | None = None, variant: algebra.Variant = "affine"
) -> ExpansionRates:
    """How much each block lengthens vectors, all heads together, b_O included; "authors" as in the code of the paper.

    `probe` as in `singular_values`.
    """

    def of(weight: Tensor, bias: Tensor | None, attended: Attended) -> float:
        out_bias = None if attended.out_bias is None else attended.out_bias.cpu()
        return algebra.expansion_rate(weight, bias, attended.out_weight.cpu(), out_bias, variant=variant)

    return ExpansionRates(*_of_blocks(lens, probe, of))


def _of_blocks(
    lens: Lens, probe: Mapping[str, Any] | None, of: Callable[[Tensor, Tensor | None, Attended], T]
) -> tuple[dict[tuple[Kind, int], T], Reasons]:
    """Something of the value map of every block, and why others have none. On the CPU: for double precision."""
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
    reasons: Reasons = {}
    for wire in lens.wires:
        reasons[wire.kind, wire.layer] = wire.reason or "the probe does not reach it"
    values: dict[tuple[Kind, int], T] = {}
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
        values[block] = of(found.weight.cpu(), None if found.bias is None else found.bias.cpu(), attended)
        del reasons[block]

    options = {} if lens.examination is None else lens.examination.options
    value_maps(lens.subject.model, inputs, receive, **options)
    return values, reasons
