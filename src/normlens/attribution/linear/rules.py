"""A rule for every call of torch: how its result is made of the tokens, given how its operands are."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from normlens.attribution.linear.calls import SUMS, Call, is_carried, over_last, step
from normlens.attribution.linear.cells import cells, gated, one_root
from normlens.attribution.linear.labels import Carried, Cells, Frozen, Ids, Label, Lost, Own, Scores, Statistic
from normlens.attribution.linear.steps import Grouped, Joined, Matrix, Mixed, Moved, Normed, Scaled, Summed
from normlens.attribution.linear.watching import Watch
from normlens.capture import tensors_in, vocabulary

PRODUCTS = frozenset("matmul __matmul__ __rmatmul__ bmm mm einsum baddbmm".split())
FACTORS = frozenset("mul rmul imul multiply div truediv itruediv true_divide divide".split())
QUOTIENTS = frozenset("div truediv itruediv true_divide divide".split())
GROUPED = frozenset("grouped_mm _grouped_mm".split())
REDUCED = frozenset("mean sum".split())
STATISTICS = frozenset("var std norm vector_norm amax amin logsumexp".split())
ACROSS = frozenset(  # aligned with their operand, but not a function of each cell or row alone
    "softmax log_softmax softmin gumbel_softmax group_norm batch_norm instance_norm cumsum tril triu masked_scatter "
    "masked_scatter_".split()
)
NOT_CELLS = ACROSS | {"layer_norm", "rms_norm", "normalize", "lerp", "where", "masked_fill", "masked_fill_"}
FILLED = frozenset("masked_fill masked_fill_ where clamp clamp_ clamp_min clamp_max".split())
COMPUTED = SUMS | FACTORS | frozenset("remainder mod floordiv floor_divide where clamp clamp_min clamp_max".split())
MOVES = vocabulary.MOVES | vocabulary.PICKS | vocabulary.TURNS | vocabulary.RESHAPES | {"expand_as", "masked_fill"}


def rule(
    here: Watch, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> Label | list[Label] | None:
    """The label of a result, or of each of several results."""
    call = Call(here, name, func, args, kwargs, result)
    labels = [label for part in tensors_in((args, kwargs)) if (label := here.label(part)) is not None]
    if name == "embedding":
        ids = here.label(args[0])
        if isinstance(ids, Ids) and ids.moved:
            return call.lost("its tokens are moved or computed with before they are looked up")
        return Own(ids.side) if isinstance(ids, Ids) else call.lost()
    if name == "softmax":
        return Frozen()
    if all(isinstance(label, Ids) for label in labels):
        return _of_ids(call, [label for label in labels if isinstance(label, Ids)])
    labels = [label for label in labels if not isinstance(label, Ids)]
    if isinstance(result, Tensor) and not result.is_floating_point() and not result.is_complex():
        return Frozen() if all(isinstance(label, Frozen) for label in labels) else call.lost()
    if name == "topk":  # a choice of the pass, among experts
        return [Scores() if any(is_carried(label) for label in labels) else labels[0], Frozen()]
    lost = next((label for label in labels if isinstance(label, Lost)), None)
    if lost is not None:
        return lost
    if all(isinstance(label, Own) for label in labels) and _in_row(call):
        return labels[0]
    for kind in (Frozen, Scores):
        if all(isinstance(label, kind) for label in labels):
            return kind()
    if any(isinstance(label, Scores) for label in labels):
        return Scores() if all(isinstance(label, (Scores, Statistic, Frozen)) for label in labels) else call.lost()
    return _of_tokens(call)


def _of_ids(call: Call, labels: list[Ids]) -> Ids | None:
    """Token numbers that are still in their places, or are not; None: a question about them, such as a mask."""
    if call.name == "__setitem__":
        written = call.label(call.args[-1])
        return replace(labels[0], moved=True) if written is not None else labels[0]
    result, kept = call.result, call.name in MOVES or call.name in vocabulary.COPIES
    if kept and call.label(call.argument(0, "input")) is None:  # of these only the form matters
        return None
    if not isinstance(result, Tensor) or result.is_floating_point() or result.dtype == torch.bool:
        return None
    if not kept and call.word not in COMPUTED and call.name not in vocabulary.JOINS:
        return None
    first = next(part for part in tensors_in((call.args, call.kwargs)) if call.label(part) is not None)
    in_place = call.name in FILLED and result.shape == first.shape
    in_place = in_place or (kept and torch.equal(result.reshape(-1), first.reshape(-1)))
    return replace(labels[0], moved=not in_place or any(label.moved for label in labels))


def _of_tokens(call: Call) -> Label | list[Label] | None:
    name, word = call.name, call.word
    if name in vocabulary.SAME and isinstance(call.result, Tensor):
        return call.label(call.args[0])
    if name == "linear" or name == "addmm":
        return _matrix(call)
    if name in PRODUCTS:
        return _product(call)
    if name in GROUPED:
        return _grouped(call)
    if call.word == "index_add":
        return _added_at(call)
    if name == "layer_norm" or name == "rms_norm":
        return _norm(call)
    if name in vocabulary.JOINS:
        return _joined(call)
    if name in MOVES or name in vocabulary.COPIES:
        return _moved(call)
    if word in REDUCED or word in STATISTICS:
        return _reduced(call)
    if word in SUMS:
        return _summed(call)
    if word in FACTORS:
        return _scaled(call)
    if name in ("neg", "__neg__", "negative"):
        return _scaled(replace(call, name="mul", args=(call.args[0], -1.0)))
    if name in vocabulary.ALIGNED and name not in NOT_CELLS:
        return cells(call)
    return call.lost()


def _in_row(call: Call) -> bool:
    """Whether the result has the very rows of its operands, each made of its own row."""
    operands = [part for part in tensors_in((call.args, call.kwargs)) if call.label(part) is not None]
    result, first = call.result, operands[0]
    if not isinstance(result, Tensor) or first.ndim != 3 or result.ndim != 3 or result.shape[:2] != first.shape[:2]:
        return False
    if call.word in REDUCED | STATISTICS:
        return over_last(call)
    return call.name in vocabulary.ALIGNED and call.name not in ACROSS


def _matrix(call: Call) -> Label:
    if call.name == "addmm":
        if call.kwargs or len(call.args) != 3:
            return call.lost()
        bias, operand, weight = call.args
    else:
        operand, weight, bias = call.args[0], call.argument(1, "weight").mT, call.argument(2, "bias")
    if call.label(weight) is not None or call.label(bias) is not None or call.label(operand) is None:
        return call.lost("a matrix is made of the tokens")
    return step(call, Matrix(weight), (operand,), bias)


def _product(call: Call) -> Label:
    if call.name == "einsum" or call.name == "baddbmm":
        of_tokens = [part for part in tensors_in(call.args) if is_carried(call.label(part))]
        if len(of_tokens) == 2:
            return Scores()
        lone = call.name == "einsum" and not any(isinstance(call.label(p), Statistic) for p in tensors_in(call.args))
        return step(call, Moved(partial(_einsum, call, of_tokens[0]), (), {}), (of_tokens[0],)) if lone else call.lost()
    left, right = call.args[0], call.argument(1, "mat2" if "mat2" in call.kwargs else "other")
    if call.name == "__rmatmul__":
        left, right = right, left
    mine, other = is_carried(call.label(left)), is_carried(call.label(right))
    if mine and other:
        return Scores()
    if isinstance(call.label(right if mine else left), Statistic):
        return call.lost()
    if mine and right.ndim == 2 and call.label(right) is None:
        return step(call, Matrix(right), (left,))
    if left.ndim != right.ndim or left.ndim < 2:
        return call.lost()
    return step(call, Mixed(left, True) if other else Mixed(right, False), (right if other else left,))


def _einsum(call: Call, of_tokens: Tensor, part: Tensor) -> Tensor:
    equation, operands = call.args[0], list(tensors_in(call.args[1:]))
    return torch.einsum(equation, *(part if operand is of_tokens else operand for operand in operands))


def _added_at(call: Call) -> Label:
    """Rows added to others: the shape and the places are those of the pass."""
    base, dim, index, source = (call.argument(at, name) for at, name in enumerate(("self", "dim", "index", "source")))
    is_new = call.label(base) is None
    if call.kwargs or not is_carried(call.label(source)) or not (is_new or is_carried(call.label(base))):
        return call.lost()
    empty = torch.zeros_like(base)
    func = partial(_placed, empty, dim, index)
    if is_new:
        return step(call, Moved(func, (), {}), (source,), base.clone() if bool(base.any()) else None)
    alone = func(source.detach())
    call.here.put(alone, step(replace(call, result=alone), Moved(func, (), {}), (source,)))
    return step(call, Summed(1.0, 1.0), (base, alone))


def _placed(empty: Tensor, dim: int, index: Tensor, part: Tensor) -> Tensor:
    return empty.index_add(dim, index, part)


def _grouped(call: Call) -> Label:
    """The matrices of experts, each for the rows that were sent to it."""
    operand, weight, ends = call.argument(0, "input"), call.argument(1, "mat2"), call.argument(2, "offs")
    if ends is None or weight.ndim != 3 or call.argument(3, "bias") is not None:
        return call.lost()
    if call.label(weight) is not None or not is_carried(call.label(operand)):
        return call.lost()
    return step(call, Grouped(weight, tuple(ends.tolist())), (operand,))


def _norm(call: Call) -> Label:
    x, shape = call.args[0], call.argument(1, "normalized_shape")
    weight = call.argument(2, "weight")
    if len(shape) != 1 or not is_carried(call.label(x)):
        return call.lost()
    centred = call.name == "layer_norm"
    eps = call.argument(4 if centred else 3, "eps", 1e-5 if centred else None)
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    square = x.var(dim=-1, keepdim=True, correction=0) if centred else x.square().mean(dim=-1, keepdim=True)
    by = (square + eps).rsqrt()
    return step(
        call,
        Normed(centred, by if weight is None else by * weight),
        (x,),
        call.argument(3, "bias") if centred else None,
    )


def _joined(call: Call) -> Label:
    pieces, dim = call.argument(0, "tensors"), call.argument(1, "dim", 0)
    pieces = [piece for piece in pieces if piece.numel()]
    labels = [call.label(piece) for piece in pieces]
    if all(isinstance(label, Frozen) for label in labels if label is not None):
        return Frozen()
    if not all(label is None or is_carried(label) for label in labels):
        return call.lost()
    dim = dim % call.result.ndim
    made = [piece for piece, label in zip(pieces, labels, strict=True) if label is not None]
    sizes = tuple(tuple(p.shape) if label is None else None for p, label in zip(pieces, labels, strict=True))
    constants = [p if label is None else torch.zeros_like(p) for p, label in zip(pieces, labels, strict=True)]
    added = call.func(constants, dim=dim) if any(size is not None for size in sizes) else None
    return step(call, Joined(call.func, dim, sizes), tuple(made), added)


def _moved(call: Call) -> Label | list[Label] | None:
    operand, rest = call.argument(0, "input"), call.args[1:]
    label = call.label(operand)
    if label is None or any(is_carried(call.label(part)) for part in tensors_in((rest, call.kwargs))):
        return call.lost()
    if call.name == "masked_fill" and call.argument(2, "value") != 0:
        return call.lost()
    if isinstance(label, (Frozen, Statistic)):
        return label
    if call.name == "gather" and isinstance(label, Cells) and isinstance(call.label(call.argument(2, "index")), Frozen):
        return Frozen()  # the weights of the chosen experts
    func, options = call.func, {k: v for k, v in call.kwargs.items() if k != "input"}
    if call.name in ("view", "view_as", "reshape_as", "contiguous"):
        func = torch.Tensor.clone if call.name == "contiguous" else torch.Tensor.reshape
        rest = () if call.name == "contiguous" else (tuple(call.result.shape),)
    if isinstance(call.result, Tensor):
        return step(call, Moved(func, rest, options), (operand,))
    return [
        step(replace(call, result=part), Moved(func, rest, options, index), (operand,))
        for index, part in enumerate(call.result)
    ]


def _reduced(call: Call) -> Label:
    label = call.label(call.args[0] if call.args else None)
    if isinstance(label, (Statistic, Frozen)):
        return label
    if call.word in STATISTICS or (isinstance(label, Cells) and label.active and over_last(call)):
        return Statistic() if over_last(call) else call.lost()
    if not is_carried(label):
        return call.lost()
    return step(call, Moved(call.func, call.args[1:], call.kwargs), (call.args[0],))


def _summed(call: Call) -> Label:
    left, right = call.args[0], call.argument(1, "other")
    size = call.kwargs.get("alpha", 1)
    first, second = (1.0, -float(size)) if "sub" in call.word else (1.0, float(size))
    if call.word == "rsub":
        first, second = -float(size), 1.0
    mine, other = call.label(left), call.label(right)
    if isinstance(mine, Statistic) or isinstance(other, Statistic):
        return Statistic() if not is_carried(mine) and not is_carried(other) else call.lost()
    if not (mine is None or is_carried(mine)) or not (other is None or is_carried(other)):
        return call.lost()
    if mine is not None and other is not None:
        if one_root(mine, other):
            return cells(call)
        return step(call, Summed(first, second), (left, right))
    operand, constant, factor, of_constant = (
        (left, right, first, second) if other is None else (right, left, second, first)
    )
    if not isinstance(constant, Tensor) or (constant.numel() == 1 and not isinstance(call.label(operand), Own)):
        return cells(call)
    return step(call, Scaled(factor), (operand,), of_constant * constant)


def _scaled(call: Call) -> Label:
    left, right = call.args[0], call.argument(1, "other")
    mine, other = call.label(left), call.label(right)
    inverse = call.word in QUOTIENTS
    if all(label is None or isinstance(label, Statistic) for label in (mine, other)):
        return Statistic()
    if is_carried(mine) and is_carried(other):
        if one_root(mine, other):
            return cells(call)
        return call.lost("one part of it divides another") if inverse else gated(call, left, right)
    if not is_carried(mine):
        left, right, mine = right, left, other
        if inverse:
            return cells(call) if not isinstance(right, Tensor) else call.lost()
    if not isinstance(right, Tensor) or (right.numel() == 1 and call.label(right) is None):
        number = float(right)
        if isinstance(mine, Carried):
            return Carried(mine.register, mine.factor / number if inverse else mine.factor * number)
        if isinstance(mine, Cells):
            return cells(call)
        return step(call, Scaled(1 / number if inverse else number), (left,))
    if right.ndim > left.ndim:
        return call.lost()
    return step(call, Scaled(1 / right if inverse else right), (left,))
