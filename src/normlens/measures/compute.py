"""From one attention block of a pass, or from what a trace has kept of it, to quantities."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from normlens import algebra
from normlens.capture import Attended
from normlens.errors import NormlensError
from normlens.measures.gated import with_gates
from normlens.measures.quantity import (
    DECLARED,
    FACTORS,
    RECORD,
    STAGES,
    WITH_FACTORS,
    MeasureError,
    Quantity,
    needed,
    needs_transformed,
)

Sizes = tuple[tuple[int, int], ...]  # queries and keys of each sequence, without padding


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What was asked for of one block: real positions first, 0 beyond the end of a shorter sequence."""

    kept: dict[str, Tensor]
    sizes: Sizes


def measured(
    attended: Attended,
    fields: Collection[str],
    heads: Sequence[int] | None,
    tgt: Bool[Tensor, "batch tgt"] | None = None,
    src: Bool[Tensor, "batch src"] | None = None,
    stages: Mapping[str, algebra.Stage] = MappingProxyType({}),
) -> Measured:
    """The fields of one block. `tgt` and `src` say which positions are real; None: all. `stages`: points of its layer.

    What follows from other fields (‖αf(x)‖ from α and ‖f(x)‖) is not kept beside them, and what the block lacks is
    left out.
    """
    fields = _existing(attended, fields)
    batch, _, rows, columns = attended.weights.shape
    tgt, src = (None if real is None or real.shape != size else real for real, size in
                ((tgt, (batch, rows)), (src, (batch, columns))))  # fmt: skip
    wanted = needed(fields)
    own = [quantity for quantity in wanted if not quantity.batched]
    asked = [name for name in fields if DECLARED[name].batched and not _follows(attended, name, fields)]
    inputs = dict.fromkeys(need for quantity in own for need in quantity.needs if _batched(need))
    record = _record(attended, heads, needed((*asked, *inputs)), stages)
    kept = {name: _value(record, name) for name in dict.fromkeys((*asked, *inputs))}
    kept = _without_padding(kept, tgt, src)
    sizes = tuple(zip(_lengths(tgt, batch, rows), _lengths(src, batch, columns), strict=True))
    width = {"head": kept_heads(attended, heads), "tgt": rows, "src": columns}
    for quantity in own:
        kept[quantity.name] = _by_sequence(quantity, kept, sizes, width)
    return Measured({name: kept[name] for name in fields if name in kept}, sizes)


def kept_heads(attended: Attended, heads: Sequence[int] | None) -> int:
    """How many heads are kept."""
    return attended.weights.shape[1] if heads is None else len(heads)


def derived(
    name: str, kept: Mapping[str, Tensor], sizes: Sizes, heads: int, own: Mapping[str, Quantity]
) -> Tensor | None:
    """A quantity that was not kept, from those that were; None when one that it needs is missing.

    `own`: the declarations, at the time, of the user's quantities that were kept.
    """
    values = {
        known: tensor
        for known, tensor in kept.items()
        if known in DECLARED and own.get(known) in (None, DECLARED[known])
    }
    shapes = [dict(zip(_axes(known), tensor.shape, strict=True)) for known, tensor in values.items()]
    width = {"head": heads}
    for axis, at in (("tgt", 0), ("src", 1)):
        width[axis] = next((shape[axis] for shape in shapes if axis in shape), max(size[at] for size in sizes))
    for quantity in needed((name,)):
        if quantity.name in values or not quantity.needs or not set(quantity.needs) <= set(values):
            continue
        if quantity.batched:
            value = quantity.compute(*(values[need] for need in quantity.needs))
            values[quantity.name] = _within(value, quantity.axes, sizes)
        else:
            values[quantity.name] = _by_sequence(quantity, values, sizes, width)
    return values.get(name)


def _existing(attended: Attended, fields: Collection[str]) -> list[str]:
    """The fields that the block has. What α and ‖f(x)‖ do not give is kept where both are asked for."""
    lacks, more = set[str](), list[str]()
    if attended.no_transformed is not None:
        lacks |= {name for name in fields if needs_transformed(name)}
    if attended.gates is not None:
        lacks.add("scales")
    if _has_factors(attended) and {"weights", "transformed_norms"} <= set(fields):
        more = ["weighted_norms", "scales"]
    return [name for name in dict.fromkeys((*fields, *more)) if name not in lacks]


def _has_factors(attended: Attended) -> bool:
    return attended.scales is not None or attended.gates is not None


def _follows(attended: Attended, name: str, fields: Collection[str]) -> bool:
    needs = DECLARED[name].needs
    return bool(needs) and set(needs) <= set(fields) and not (name == "weighted_norms" and _has_factors(attended))


def _batched(name: str) -> bool:
    return name in RECORD or DECLARED[name].batched


@dataclass(slots=True, eq=False)
class _Record:
    """A block's own tensors, and what several quantities share, made when it is first asked for."""

    tensors: dict[str, Tensor]
    has_gram: bool  # whether some quantity needs it, so that ‖f(x)‖ is read off its diagonal
    stages: Mapping[str, algebra.Stage]
    normed: tuple[algebra.Stage, ...]  # those at which norms are asked for
    written: dict[str, Tensor]  # "all": what all heads wrote, where the output of the block shows it
    sent: algebra.Sent | None = None


def _record(
    attended: Attended,
    heads: Sequence[int] | None,
    wanted: Sequence[Quantity],
    stages: Mapping[str, algebra.Stage],
) -> _Record:
    tensors = {name: _at_least_single(getattr(attended, name)) for name in ("weights", *RECORD)}
    factors = {name: getattr(attended, name) for name in FACTORS}
    tensors |= {name: _at_least_single(factor) for name, factor in factors.items() if factor is not None}
    if attended.scores is not None:
        tensors["scores"] = attended.scores
    if heads is not None:
        index = torch.tensor(heads, device=tensors["weights"].device)
        tensors = {
            name: tensor[index] if name == "out_weight" else tensor[:, index] for name, tensor in tensors.items()
        }
    written = {}
    if heads is None and attended.output.dtype == tensors["values"].dtype:
        bias = attended.out_bias
        written["all"] = attended.output if bias is None else attended.output - bias
    normed = tuple(
        stages[need] for one in wanted if "summed_norms" in one.needs for need in one.needs if need in stages
    )
    has_gram = any("gram" in one.needs for one in wanted)
    return _Record(tensors, has_gram, stages, normed, written)


def _value(record: _Record, name: str) -> Tensor:
    if name not in record.tensors:
        record.tensors[name] = _made(record, name)
    return record.tensors[name]


def _made(record: _Record, name: str) -> Tensor:
    values, out_weight = record.tensors["values"], record.tensors["out_weight"]
    if name == "gram":
        return _sent(record).gram() if record.normed else algebra.gram(values, out_weight)
    if name == "norms":
        if record.has_gram:
            return algebra.transformed_norms(_value(record, "gram"))
        return algebra.lengths(values, out_weight)
    if name == "scales":  # nothing stands before the output matrix
        return record.tensors["weights"].new_ones(record.tensors["weights"].shape[:3])
    if name == "reaching":  # α times the scale of its query
        return record.tensors["weights"] * record.tensors["scales"].unsqueeze(-1)
    if name == "scores":  # unknown, so that a pair to which no head gives any weight is taken for masked
        return torch.where(record.tensors["weights"] != 0, 0.0, -torch.inf)
    quantity, factored = DECLARED[name], name in WITH_FACTORS
    if factored and "gates" in record.tensors:
        return with_gates(name, *(record.tensors[need] for need in ("weights", "values", "out_weight", "gates")))
    needs: list[Any] = [_stage_or_value(record, need) for need in quantity.needs]
    if factored and "scales" in record.tensors:
        needs[quantity.needs.index("weights")] = _value(record, "reaching")
    return quantity.compute(*needs)


def _stage_or_value(record: _Record, name: str) -> Any:
    if name == "sent":
        return _sent(record)
    return record.stages[name] if name in STAGES else _value(record, name)


def _sent(record: _Record) -> algebra.Sent:
    if record.sent is None:
        gates, weights = record.tensors.get("gates"), "reaching" if "scales" in record.tensors else "weights"
        values, out_weight = record.tensors["values"], record.tensors["out_weight"]
        record.sent = algebra.Sent(_value(record, weights), values, out_weight, gates, record.written, record.normed)
    return record.sent


def _by_sequence(quantity: Quantity, values: Mapping[str, Tensor], sizes: Sizes, width: Mapping[str, int]) -> Tensor:
    """A measure of the user's own: each sequence alone, so that padding and neighbours change no number."""
    parts = []
    for index, (tgt, src) in enumerate(sizes):
        size = {"batch": 1, "head": width["head"], "tgt": tgt, "src": src}
        needs = [_cut(values[need], _axes(need), index, size) for need in quantity.needs]
        parts.append(_checked(quantity, _called(quantity, needs), size))
    whole = parts[0].new_zeros(
        len(parts), *(width.get(axis, parts[0].shape[at]) for at, axis in enumerate(quantity.axes) if at)
    )
    for index, part in enumerate(parts):
        whole[(index, *(slice(length) for length in part.shape[1:]))] = part[0]
    return whole


def _axes(name: str) -> tuple[str, ...]:
    return RECORD[name] if name in RECORD else DECLARED[name].axes


def _cut(tensor: Tensor, axes: tuple[str, ...], index: int, size: Mapping[str, int]) -> Tensor:
    """One sequence of the batch, as a copy: what a function does to it stays with the function."""
    for at, axis in enumerate(axes):
        if axis == "batch":
            tensor = tensor.narrow(at, index, 1)
        elif axis in ("tgt", "src"):
            tensor = tensor.narrow(at, 0, size[axis])
    return tensor.detach().clone()


def _called(quantity: Quantity, needs: Sequence[Tensor]) -> Tensor:
    try:
        with torch.no_grad():
            result = quantity.compute(*needs)
            return torch.as_tensor(result).detach()
    except NormlensError:
        raise
    except Exception as error:
        raise MeasureError(
            f"measure '{quantity.name}' could not be computed: {type(error).__name__}: {error}",
            got=", ".join(f"{need} {tuple(tensor.shape)}" for need, tensor in zip(quantity.needs, needs, strict=True)),
            do="correct its function.",
        ) from error


def _checked(quantity: Quantity, result: Tensor, size: Mapping[str, int]) -> Tensor:
    expected = tuple(size.get(axis, result.shape[-1] if result.ndim else 0) for axis in quantity.axes)
    if tuple(result.shape) != expected:
        raise MeasureError(
            f"measure '{quantity.name}' returned the shape {tuple(result.shape)}, not {expected}.",
            cause=f"its axes are {quantity.axes}; a sequence comes as a batch of one.",
            do="return one number for each cell of these axes.",
        )
    if result.is_complex():
        raise MeasureError(f"measure '{quantity.name}' returned complex numbers.", do="return real ones.")
    result = _at_least_single(result)
    if not bool(torch.isfinite(result).all()):
        raise MeasureError(
            f"measure '{quantity.name}' returned NaN or infinite numbers.",
            cause="a division by 0 or the logarithm of 0: masked keys have α = 0.",
            do="give such cells a number in its function.",
        )
    if not quantity.signed and bool((result < 0).any()):
        raise MeasureError(f"measure '{quantity.name}' returned numbers below 0.", do="declare it with signed=True.")
    return result


def _without_padding(kept: dict[str, Tensor], tgt: Tensor | None, src: Tensor | None) -> dict[str, Tensor]:
    """Real positions first, in their order, and 0 where a shorter sequence has ended."""
    for side, real in (("tgt", tgt), ("src", src)):
        if real is None:
            continue
        order = torch.argsort(~real, dim=1, stable=True)
        in_place = bool((order == torch.arange(real.shape[1], device=order.device)).all())
        there = real.gather(1, order)
        for name, tensor in kept.items():
            if "batch" not in _axes(name) or side not in _axes(name):
                continue
            axis = _axes(name).index(side)
            shape = [len(real) if i == 0 else real.shape[1] if i == axis else 1 for i in range(tensor.ndim)]
            if not in_place:
                tensor = tensor.gather(axis, order.view(shape).expand(tensor.shape))
            kept[name] = tensor * there.view(shape)
    return kept


def _within(value: Tensor, axes: tuple[str, ...], sizes: Sizes) -> Tensor:
    """0 where a shorter sequence has ended."""
    for axis, lengths in (("tgt", [tgt for tgt, _ in sizes]), ("src", [src for _, src in sizes])):
        at = axes.index(axis) if axis in axes else 0
        if at and min(lengths) < value.shape[at]:
            there = torch.arange(value.shape[at])[None] < torch.tensor(lengths)[:, None]
            shape = [there.shape[0] if i == 0 else there.shape[1] if i == at else 1 for i in range(value.ndim)]
            value = value * there.view(shape).to(value)
    return value


def _lengths(real: Tensor | None, batch: int, width: int) -> Sequence[int]:
    return [width] * batch if real is None else real.sum(dim=1).tolist()


def _at_least_single(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()
