"""What a tensor computed from an attention output is: linear in it, a statistic of it, or neither.

A product of something linear and a statistic is a norm, and linear given its own statistics. A mean alone is linear:
taken off again it centres. Whatever is neither ends the way of the output to its matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from normlens.capture.trail import Trail

Of = Callable[[Any], "Trail | Statistic | None"]
IsFixed = Callable[[Any], bool]

MULTIPLY = frozenset("mul rmul imul multiply".split())
DIVIDE = frozenset("div truediv itruediv true_divide divide".split())
ADD = frozenset("add radd iadd".split())
SUBTRACT = frozenset("sub isub subtract".split())
POWERS = frozenset("pow square abs".split())  # cell by cell; summed over a head or a row they are a statistic
REDUCE = frozenset("mean sum amax amin max min norm var std".split())
OF_STATISTICS = frozenset("sqrt rsqrt reciprocal clamp clamp_min clamp_max clip maximum minimum neg pow square".split())


@dataclass(frozen=True, slots=True, eq=False)
class Statistic:
    """Something computed from an attention output that is not linear in it, cell by cell."""

    kind: Literal["cells", "mean", "done"]  # not summed yet; the mean itself; a statistic
    of: Trail | None = None  # of a mean: that of what it is the mean of


def descended(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, of: Of, is_fixed: IsFixed, in_row: bool
) -> Trail | Statistic | None:
    """What the result of a call is; None when it is neither linear nor a statistic.

    `of`: what an operand is. `is_fixed`: whether it comes from the weights alone. `in_row`: the result does not mix
    positions.
    """
    word = name.strip("_")
    if word in FUSED:
        alone = sum(of(value) is not None for value in (*args, *kwargs.values())) == 1
        return FUSED[word](args, kwargs, of) if alone else None
    if word in REDUCE:
        return _reduced(word, args, kwargs, result, of, in_row)
    if any(key not in ("input", "other", "exponent", "min", "max", "out") for key in kwargs):
        return None
    if word in POWERS | OF_STATISTICS:
        return _pointwise(word, args, kwargs, of)
    left, right = args if len(args) == 2 else (kwargs.get("input", args[0] if args else None), kwargs.get("other"))
    if left is None or right is None:
        return None
    if word == "rsub":
        left, right, word = right, left, "sub"
    return _binary(word, left, right, result, of, is_fixed)


def is_in_place(name: str) -> bool:
    """Whether a call writes into its first operand."""
    return (name.endswith("_") and not name.endswith("__")) or (name.startswith("__i") and name != "__invert__")


def _binary(word: str, left: Any, right: Any, result: Any, of: Of, is_fixed: IsFixed) -> Trail | Statistic | None:
    mine, other = of(left), of(right)
    if word in ADD | MULTIPLY and not isinstance(mine, Trail):
        left, right, mine, other = right, left, other, mine
    if isinstance(mine, Trail) and result.shape != left.shape:
        return None
    if isinstance(mine, Trail) and word in MULTIPLY | DIVIDE:
        if isinstance(other, Trail):
            return Statistic("cells") if word in MULTIPLY else None
        if other is not None and other.kind != "done":
            return None
        is_normed = other is not None
        return mine.times(
            right, is_fixed=not is_normed and is_fixed(right), inverse=word in DIVIDE, is_normed=is_normed
        )
    if isinstance(mine, Trail) and word in ADD | SUBTRACT:
        return _sum(mine, other, left, right, word in SUBTRACT, is_fixed)
    if isinstance(other, Trail) or word not in ADD | SUBTRACT | MULTIPLY | DIVIDE:
        return None
    return _together(mine, other)


def _sum(
    mine: Trail, other: Trail | Statistic | None, left: Tensor, right: Any, is_minus: bool, is_fixed: IsFixed
) -> Trail | None:
    if isinstance(other, Statistic):
        is_mean = other.kind == "mean" and other.of is mine
        fits = right.ndim == left.ndim and all(size in (1, n) for size, n in zip(right.shape, left.shape, strict=True))
        return mine.centred(right) if is_minus and is_mean and fits and not mine.is_centred else None
    if isinstance(other, Trail):
        if mine.is_centred or mine.is_shifted or other.is_centred or other.is_shifted or right.shape != left.shape:
            return None
        return mine.and_(other.times(-1.0, is_fixed=True) if is_minus else other)
    if not is_fixed(right):
        return None
    return mine.plus(-right if is_minus else right)


def _pointwise(word: str, args: tuple[Any, ...], kwargs: dict[str, Any], of: Of) -> Trail | Statistic | None:
    operands = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    labels = [of(value) for value in operands]
    if not any(isinstance(label, Trail) for label in labels):
        return _together(*labels)
    mine = labels[0]
    if len(operands) > 1 or not isinstance(mine, Trail):
        return None
    if word == "neg":
        return mine.times(-1.0, is_fixed=True)
    return Statistic("cells") if word in POWERS else None


def _together(*labels: Statistic | Trail | None) -> Statistic:
    """Numbers made of statistics: as far from a sum as the farthest of them; a mean is none any more."""
    return Statistic("cells" if any(isinstance(x, Statistic) and x.kind == "cells" for x in labels) else "done")


def _reduced(
    word: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, of: Of, in_row: bool
) -> Trail | Statistic | None:
    operand: Any = args[0] if args else kwargs.get("input")
    label = of(operand)
    if label is None or any(isinstance(value, Tensor) for value in args[1:]):
        return None
    first = result if isinstance(result, Tensor) else result[0]
    if isinstance(label, Trail) and word in ("mean", "sum"):
        if first.numel() == operand.numel():  # over axes of one cell
            return label.moved(torch.reshape, "reshape", operand, (operand, tuple(first.shape)), {})
        return Statistic("mean", label) if word == "mean" and in_row else None
    if not in_row:
        return None
    return Statistic("done")


def _layer_norm(args: tuple[Any, ...], kwargs: dict[str, Any], of: Of) -> Trail | None:
    x, axes, weight, bias, eps = _call(args, kwargs, weight=None, bias=None, eps=1e-5)
    trail = of(x)
    if not isinstance(trail, Trail) or trail.is_centred:
        return None
    over, x = tuple(range(-len(axes), 0)), _at_least_single(x)
    mean, spread = x.mean(dim=over, keepdim=True), x.var(dim=over, keepdim=True, correction=0)
    return _affine(trail.centred(mean), (spread + eps).rsqrt(), weight, bias)


def _rms_norm(args: tuple[Any, ...], kwargs: dict[str, Any], of: Of) -> Trail | None:
    x, axes, weight, eps = _call(args, kwargs, weight=None, eps=None)
    trail = of(x)
    if not isinstance(trail, Trail):
        return None
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    square = _at_least_single(x).square().mean(dim=tuple(range(-len(axes), 0)), keepdim=True)
    return _affine(trail, (square + eps).rsqrt(), weight, None)


def _normalize(args: tuple[Any, ...], kwargs: dict[str, Any], of: Of) -> Trail | None:
    call = dict(zip(("input", "p", "dim", "eps"), args, strict=False)) | kwargs
    trail, dim = of(call["input"]), call.get("dim", 1)
    if not isinstance(trail, Trail) or dim not in (-1, call["input"].ndim - 1):
        return None
    length = call["input"].norm(call.get("p", 2.0), dim, keepdim=True).clamp_min(call.get("eps", 1e-12))
    return trail.times(length, is_fixed=False, inverse=True, is_normed=True)


def _group_norm(args: tuple[Any, ...], kwargs: dict[str, Any], of: Of) -> Trail | None:
    x, groups, weight, bias, eps = _call(args, kwargs, weight=None, bias=None, eps=1e-5)
    trail = of(x)
    if not isinstance(trail, Trail) or trail.is_centred or x.ndim != 2:
        return None
    parts = _at_least_single(x).unflatten(1, (groups, -1))
    mean, spread = parts.mean(dim=2, keepdim=True), parts.var(dim=2, keepdim=True, correction=0)
    wide = trail.moved(torch.unflatten, "unflatten", x, (x, 1, tuple(parts.shape[1:])), {})
    wide = wide.centred(mean).times((spread + eps).rsqrt(), is_fixed=False, is_normed=True)
    back = wide.moved(torch.flatten, "flatten", x, (x, 1), {})
    return _scaled(back, weight, bias)


def _affine(trail: Trail, spread: Tensor, weight: Any, bias: Any) -> Trail:
    return _scaled(trail.times(spread, is_fixed=False, is_normed=True), weight, bias)


def _scaled(trail: Trail, weight: Any, bias: Any) -> Trail:
    trail = trail if weight is None else trail.times(weight, is_fixed=True)
    return trail if bias is None else trail.plus(bias)


def _at_least_single(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _call(args: tuple[Any, ...], kwargs: dict[str, Any], **options: Any) -> list[Any]:
    """The first two arguments of a norm, and its options in their order."""
    names = ["input", "shape", *options]
    call = {**options, **dict(zip(names, args, strict=False)), **kwargs}
    shape = call.get("shape", call.get("normalized_shape", call.get("num_groups")))
    return [call["input"], shape, *(call[name] for name in options)]


FUSED: dict[str, Callable[[tuple[Any, ...], dict[str, Any], Of], Trail | None]] = {
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "normalize": _normalize,
}
