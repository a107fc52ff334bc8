"""Read a torch call as attention algebra: a product of weights with values, or a projection by a matrix.

Room: shapes and letters. Nothing here runs a model or remembers anything.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

PRODUCTS = frozenset({"matmul", "__matmul__", "bmm", "einsum"})


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """α·v with its leading axes flattened, and how the model laid out the result."""

    weights: Float[Tensor, "lead tgt src"]
    values: Float[Tensor, "lead src head_dim"]
    arrange: Callable[[Tensor], Tensor]  # (lead, tgt, head_dim) to the shape the model got
    form: Hashable  # products of equal form and shape are arranged alike


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """A product with an output matrix: the input as rows, the matrix, and the result as rows."""

    form: Hashable  # projections of equal form read their input alike
    matrix: Tensor  # the tensor the model passed, to find its name
    weight: Float[Tensor, "channel model"]
    bias: Float[Tensor, " model"] | None
    rows: Callable[[Tensor], Tensor]  # input-shaped to (row, channel)
    out_rows: Callable[[Tensor], Tensor]  # output-shaped to (row, model)


def as_product(name: str, args: tuple[Any, ...], weights_at: int) -> Product | None:
    """Read `matmul`, `bmm` or `einsum` as α·v when operand number `weights_at` holds α."""
    if name == "einsum":
        equation, operands = _einsum_parts(args)
        return _einsum_product(equation, operands, weights_at) if len(operands) == 2 else None
    left, right = args[0], args[1]
    if left.ndim < 2 or right.ndim < 2:
        return None
    if weights_at == 0:
        return _batched(left, right, lambda context: context, "weights first")
    return _batched(right.mT, left.mT, lambda context: context.mT, "values first")


def as_projection(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Projection | None:
    """Read a call as rows times an output matrix, plus a bias."""
    if name == "linear":
        matrix = args[1] if len(args) > 1 else kwargs["weight"]
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        return Projection("rows", matrix, matrix.mT, bias, _rows, _rows)
    if name == "addmm" and not kwargs:
        return Projection("rows", args[2], args[2], args[0], _rows, _rows)
    if name in ("matmul", "__matmul__") and args[1].ndim == 2:
        return Projection("rows", args[1], args[1], None, _rows, _rows)
    if name in ("conv1d", "conv2d"):
        return _pointwise(args, kwargs)
    if name == "einsum":
        return _einsum_projection(*_einsum_parts(args))
    return None


def _rows(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1, tensor.shape[-1])


def _batched(weights: Tensor, values: Tensor, arrange: Callable[[Tensor], Tensor], order: str) -> Product:
    lead = torch.broadcast_shapes(weights.shape[:-2], values.shape[:-2])
    return Product(
        weights=weights.expand(*lead, *weights.shape[-2:]).reshape(-1, *weights.shape[-2:]),
        values=values.expand(*lead, *values.shape[-2:]).reshape(-1, *values.shape[-2:]),
        arrange=lambda context: arrange(context.view(*lead, *context.shape[-2:])),
        form=(order, tuple(lead)),
    )


def _pointwise(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Projection | None:
    """A convolution of width one, grouped or not, is a matrix."""
    names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
    call = dict(zip(names, args, strict=False)) | kwargs
    matrix, groups = call["weight"], call.get("groups", 1)
    if any(size != 1 for size in matrix.shape[2:]) or any(size != 1 for size in _flat(call.get("stride", 1))):
        return None
    weight = torch.block_diag(*matrix.flatten(1).chunk(groups)).mT
    return Projection("channels", matrix, weight, call.get("bias"), _channels_last, _channels_last)


def _channels_last(tensor: Tensor) -> Tensor:
    return _rows(tensor.movedim(1, -1))


def _flat(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _einsum_parts(args: tuple[Any, ...]) -> tuple[str, list[Tensor]]:
    operands = args[1] if len(args) == 2 and isinstance(args[1], (tuple, list)) else args[1:]
    return args[0].replace(" ", ""), list(operands)


def _letters(equation: str) -> tuple[str, str, str] | None:
    if "->" not in equation or "." in equation:
        return None
    inputs, out = equation.split("->")
    left, _, right = inputs.partition(",")
    unique = all(len(set(word)) == len(word) for word in (left, right, out))
    return (left, right, out) if unique and "," not in right else None


def _einsum_product(equation: str, operands: list[Tensor], weights_at: int) -> Product | None:
    letters = _letters(equation)
    if letters is None:
        return None
    wide, narrow, out = letters[weights_at], letters[1 - weights_at], letters[2]
    weights, values = operands[weights_at], operands[1 - weights_at]
    lead = [x for x in out if x in wide and x in narrow]
    src = [x for x in wide if x in narrow and x not in out]
    tgt = [x for x in out if x in wide and x not in narrow]
    dim = [x for x in out if x in narrow and x not in wide]
    if len(src) != 1 or len(tgt) != 1 or len(dim) != 1 or len(lead) + 2 != len(wide) or len(lead) + 2 != len(narrow):
        return None
    sizes = dict(zip(wide + narrow, (*weights.shape, *values.shape), strict=True))
    order = lead + tgt + dim

    def arrange(context: Tensor) -> Tensor:
        return context.view([sizes[x] for x in order]).permute([order.index(x) for x in out])

    return Product(
        weights=weights.permute([wide.index(x) for x in lead + tgt + src]).flatten(0, -3)
        if lead
        else weights.permute([wide.index(x) for x in tgt + src])[None],
        values=values.permute([narrow.index(x) for x in lead + src + dim]).flatten(0, -3)
        if lead
        else values.permute([narrow.index(x) for x in src + dim])[None],
        arrange=arrange,
        form=(equation, weights_at, tuple(sizes.items())),
    )


def _einsum_projection(equation: str, operands: list[Tensor]) -> Projection | None:
    letters = _letters(equation)
    if letters is None or len(operands) != 2:
        return None
    left, right, out = letters
    channel = [x for x in left if x in right and x not in out]
    model = [x for x in right if x not in left]
    kept = [x for x in left if x in out]
    if not channel or not model or len(channel) + len(model) != len(right) or any(x in right for x in kept):
        return None

    def rows(tensor: Tensor) -> Tensor:
        return tensor.permute([left.index(x) for x in kept + channel]).flatten(len(kept)).flatten(0, -2)

    def out_rows(tensor: Tensor) -> Tensor:
        return tensor.permute([out.index(x) for x in kept + model]).flatten(len(kept)).flatten(0, -2)

    weight = operands[1].permute([right.index(x) for x in channel + model]).flatten(0, len(channel) - 1).flatten(1)
    return Projection(equation, operands[1], weight, None, rows, out_rows)
