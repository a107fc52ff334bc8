"""Read a torch call as attention algebra: a product of weights with values, or a projection by a matrix."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

PRODUCTS = frozenset({"matmul", "__matmul__", "bmm", "mm", "einsum"})


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """α·v with its leading axes flattened, and how the model laid out the result."""

    weights: Float[Tensor, "lead tgt src"]
    values: Float[Tensor, "lead src head_dim"]
    arrange: Callable[[Tensor], Tensor]  # (lead, tgt, head_dim) to the shape the model got
    form: Hashable  # products of equal form and shape are arranged alike
    queries: Callable[[Tensor], Tensor]  # weights-shaped, size 1 along src, to (lead, tgt)
    keys: Callable[[Tensor], Tensor]  # values-shaped, size 1 along head_dim, to (lead, src)
    weight_axes: tuple[int, int]  # axes of the weights, as the model had them, that are tgt and src
    value_axes: tuple[int, int]  # axes of the values that are src and head_dim
    query_side: int = 0  # which factor of the scores holds the queries, when they are a product
    scores: Float[Tensor, "lead tgt src"] | None = None  # what the softmax got, laid out as the weights


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """A product with an output matrix: the input as rows, the matrix, and the result as rows."""

    form: Hashable  # projections of equal form read their input alike
    matrix: Tensor  # the tensor the model passed, to find its name
    weight: Float[Tensor, "channel model"]
    bias: Float[Tensor, " model"] | None
    added: Tensor | None  # what the same call adds beside the bias, such as the residual
    rows: Callable[[Tensor], Tensor]  # input-shaped to (row, channel)
    out_rows: Callable[[Tensor], Tensor]  # output-shaped to (row, model)


def as_product(name: str, args: tuple[Any, ...], weights_at: int) -> Product | None:
    """Read `matmul`, `bmm` or `einsum` as α·v when operand number `weights_at` holds α."""
    if name == "einsum":
        equation, operands = einsum_parts(args)
        return _einsum_product(equation, operands, weights_at) if len(operands) == 2 else None
    left, right = args[0], args[1]
    if left.ndim < 2 or right.ndim < 2:
        return None
    if weights_at == 0:
        return _batched(left, right, lambda tensor: tensor, "weights first")
    return _batched(right.mT, left.mT, lambda tensor: tensor.mT, "values first")


def as_projection(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Projection | None:
    """Read a call as rows times an output matrix, plus a bias."""
    if name == "linear":
        matrix = args[1] if len(args) > 1 else kwargs["weight"]
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        return Projection("rows", matrix, matrix.mT, bias, None, _rows, _rows)
    if name == "addmm" and not kwargs:
        bias, added = (args[0], None) if args[0].ndim == 1 else (None, args[0])
        return Projection("rows", args[2], args[2], bias, added, _rows, _rows)
    if name in ("matmul", "__matmul__", "mm") and args[1].ndim == 2:
        return Projection("rows", args[1], args[1], None, None, _rows, _rows)
    if name in ("conv1d", "conv2d"):
        return _pointwise(args, kwargs)
    if name == "einsum":
        return _einsum_projection(*einsum_parts(args))
    return None


def _rows(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1, tensor.shape[-1])


def _batched(weights: Tensor, values: Tensor, turn: Callable[[Tensor], Tensor], order: str) -> Product:
    lead = torch.broadcast_shapes(weights.shape[:-2], values.shape[:-2])

    def flat(tensor: Tensor) -> Tensor:
        return tensor.expand(*lead, *tensor.shape[-2:]).reshape(-1, *tensor.shape[-2:])

    return Product(
        weights=flat(weights),
        values=flat(values),
        arrange=lambda context: turn(context.view(*lead, *context.shape[-2:])),
        form=(order, tuple(lead)),
        queries=lambda codes: flat(turn(codes).expand(*turn(codes).shape[:-2], weights.shape[-2], 1))[..., 0],
        keys=lambda codes: flat(turn(codes).expand(*turn(codes).shape[:-2], values.shape[-2], 1))[..., 0],
        weight_axes=(-2, -1) if order == "weights first" else (-1, -2),
        value_axes=(-2, -1) if order == "weights first" else (-1, -2),
        query_side=0 if order == "weights first" else 1,
    )


def _pointwise(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Projection | None:
    """A convolution of width one, grouped or not, is a matrix."""
    names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
    call = dict(zip(names, args, strict=False)) | kwargs
    matrix, groups = call["weight"], call.get("groups", 1)
    if any(size != 1 for size in matrix.shape[2:]) or any(size != 1 for size in _flat(call.get("stride", 1))):
        return None
    weight = torch.block_diag(*matrix.flatten(1).chunk(groups)).mT
    return Projection("channels", matrix, weight, call.get("bias"), None, _channels_last, _channels_last)


def _channels_last(tensor: Tensor) -> Tensor:
    return _rows(tensor.movedim(1, -1))


def _flat(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def einsum_parts(args: tuple[Any, ...]) -> tuple[str, list[Tensor]]:
    operands = args[1] if len(args) == 2 and isinstance(args[1], (tuple, list)) else args[1:]
    return args[0].replace(" ", ""), list(operands)


def einsum_letters(equation: str) -> tuple[str, str, str] | None:
    if "->" not in equation or "." in equation:
        return None
    inputs, out = equation.split("->")
    left, _, right = inputs.partition(",")
    unique = all(len(set(word)) == len(word) for word in (left, right, out))
    return (left, right, out) if unique and "," not in right else None


def _einsum_product(equation: str, operands: list[Tensor], weights_at: int) -> Product | None:
    letters = einsum_letters(equation)
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

    def flat(tensor: Tensor, letters: str, last: list[str], spread: list[str]) -> Tensor:
        turned = tensor.permute([letters.index(x) for x in lead + last])
        turned = turned.expand([sizes[x] if x in spread else n for x, n in zip(lead + last, turned.shape, strict=True)])
        return turned.flatten(0, -3) if lead else turned[None]

    return Product(
        weights=flat(weights, wide, tgt + src, []),
        values=flat(values, narrow, src + dim, []),
        arrange=arrange,
        form=(equation, weights_at, tuple(sizes.items())),
        queries=lambda codes: flat(codes, wide, tgt + src, lead + tgt)[..., 0],
        keys=lambda codes: flat(codes, narrow, src + dim, lead + src)[..., 0],
        weight_axes=(wide.index(tgt[0]), wide.index(src[0])),
        value_axes=(narrow.index(src[0]), narrow.index(dim[0])),
    )


def _einsum_projection(equation: str, operands: list[Tensor]) -> Projection | None:
    letters = einsum_letters(equation)
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
    return Projection(equation, operands[1], weight, None, None, rows, out_rows)
