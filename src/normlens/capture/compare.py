"""How far numbers are from the numbers they should be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from normlens.capture.record import Attended

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def tolerance(dtype: torch.dtype) -> float:
    """The largest relative error that rounding alone explains."""
    return TOLERANCE.get(dtype, 1e-5)


def output_tolerance(outputs: list[Tensor], dtype: torch.dtype = torch.float64) -> float:
    """The same for what a whole model of this precision returns, where the rounding of many layers adds up."""
    return 10 * max(tolerance(outputs[0].dtype if outputs else torch.float32), tolerance(dtype))


def relative_error(parts: Tensor, whole: Tensor) -> float:
    """‖parts − whole‖ / ‖whole‖ at every size; infinite where only the whole is 0, NaN where a number is not finite."""
    if not whole.numel():
        return 0.0
    size = max(parts.abs().max(), whole.abs().max())
    if size == 0:
        return 0.0
    parts, whole = parts / size, whole / size
    return float((parts - whole).norm() / whole.norm())


def rebuild_error(attended: Attended) -> float:
    """‖Σ_h Σ_j α f(x_j) + b_O − output‖ / ‖output‖, with every f(x) written out in double precision.

    Where a gate or a scale stands before W_O, what it multiplies is Σ_j α v(x_j) of each query.
    """
    weights, values, out_weight = (t.double() for t in (attended.weights, attended.values, attended.out_weight))
    if attended.scales is not None:
        weights = weights * attended.scales.double()[..., None]
    if attended.gates is not None:
        rebuilt = torch.einsum("bhtd,hdm->btm", (weights @ values) * attended.gates.double(), out_weight)
    else:
        rebuilt = torch.einsum("bhts,bhsm->btm", weights, torch.einsum("bhsd,hdm->bhsm", values, out_weight))
    if attended.out_bias is not None:
        rebuilt = rebuilt + attended.out_bias
    return relative_error(rebuilt, attended.output.double())


def relative_difference(left: list[Tensor], right: list[Tensor]) -> float:
    """Largest relative difference over pairs of tensors; infinite for other shapes, or NaN beside a number."""
    if [t.shape for t in left] != [t.shape for t in right]:
        return float("inf")
    gaps = [
        relative_error(a.double(), b.double())
        for a, b in zip(left, right, strict=True)
        if a.numel() and bool(torch.isfinite(b).all())
    ]
    return float("inf") if any(map(math.isnan, gaps)) else max(gaps, default=0.0)


def tensors(output: Any) -> list[Tensor]:
    """Every floating-point tensor in a model's output."""
    if isinstance(output, Tensor):
        return [output] if output.is_floating_point() else []
    parts = output.values() if isinstance(output, Mapping) else output if isinstance(output, (list, tuple)) else ()
    return [tensor for part in parts for tensor in tensors(part)]
