"""A rule for every call of torch: how its result is made of the tokens, given how its operands are."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from normlens.algebra import activation_shares
from normlens.attribution.labels import Carried, Cells, Frozen, Ids, Label, Lost, Own, Scores, Statistic
from normlens.attribution.steps import Joined, Matrix, Mixed, Moved, Normed, Scaled, Summed
from normlens.attribution.watching import Watch
from normlens.capture import tensors_in, vocabulary

PRODUCTS = frozenset("matmul __matmul__ __rmatmul__ bmm mm einsum baddbmm".split())
SUMS = frozenset("add radd iadd sub subtract isub rsub".split())
FACTORS = frozenset("mul rmul imul multiply div truediv itruediv true_divide divide".split())
QUOTIENTS = frozenset("div truediv itruediv true_divide divide".split())
REDUCED = frozenset("mean sum".split())
STATISTICS = frozenset("var std norm vector_norm amax amin logsumexp".split())
LIMITS = frozenset("clamp clamp_ clamp_min clamp_max clip nan_to_num".split())
ACROSS = frozenset(  # aligned with their operand, but not a function of each cell or row alone
    "softmax log_softmax softmin gumbel_softmax group_norm batch_norm instance_norm cumsum tril triu masked_scatter "
    "masked_scatter_".split()
)
NOT_CELLS = ACROSS | {"layer_norm", "rms_norm", "normalize", "lerp", "where", "masked_fill", "masked_fill_"}
MOVES = vocabulary.MOVES | vocabulary.PICKS | vocabulary.TURNS | vocabulary.RESHAPES | {"expand_as", "masked_fill"}


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call of torch with labelled operands."""

    here: Watch
    name: str
    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any

    @property
    def word(self) -> str:
        return self.name.strip("_")

    def label(self, operand: Any) -> Label | None:
        return self.here.label(operand)

    def argument(self, at: int, name: str, default: Any = None) -> Any:
        return self.args[at] if len(self.args) > at else self.kwargs.get(name, default)

    def lost(self, reason: str = "") -> Lost:
        return self.here.lost(reason or f"it goes through '{self.name}'")


def rule(
    here: Watch, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> Label | list[Label] | None:
    """The label of a result, or of each of several results."""
    call = Call(here, name, func, args, kwargs, result)
    labels = [label for part in tensors_in((args, kwargs)) if (label := here.label(part)) is not None]
    if name == "embedding":
        ids = here.label(args[0])
        return Own(ids.side) if isinstance(ids, Ids) else call.lost()
    if name == "softmax":
        return Frozen()
    if all(isinstance(label, Ids) for label in labels):
        same = isinstance(result, Tensor) and (name in MOVES or name in vocabulary.COPIES)
        return labels[0] if same and not result.is_floating_point() else None
    labels = [label for label in labels if not isinstance(label, Ids)]
    if isinstance(result, Tensor) and not result.is_floating_point() and not result.is_complex():
        return Frozen() if all(isinstance(label, Frozen) for label in labels) else call.lost()
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


def _of_tokens(call: Call) -> Label | list[Label] | None:
    name, word = call.name, call.word
    if name in vocabulary.SAME and isinstance(call.result, Tensor):
        return call.label(call.args[0])
    if name == "linear" or name == "addmm":
        return _matrix(call)
    if name in PRODUCTS:
        return _product(call)
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
        return _cells(call)
    return call.lost()


def _in_row(call: Call) -> bool:
    """Whether the result has the very rows of its operands, each made of its own row."""
    operands = [part for part in tensors_in((call.args, call.kwargs)) if call.label(part) is not None]
    result, first = call.result, operands[0]
    if not isinstance(result, Tensor) or first.ndim != 3 or result.ndim != 3 or result.shape[:2] != first.shape[:2]:
        return False
    if call.word in REDUCED | STATISTICS:
        return _over_last(call)
    return call.name in vocabulary.ALIGNED and call.name not in ACROSS


def _over_last(call: Call) -> bool:
    operand, dim = call.args[0], call.kwargs.get("dim", call.argument(1, "dim"))
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    return len(dims) == 1 and dims[0] in (-1, operand.ndim - 1)


def _matrix(call: Call) -> Label:
    if call.name == "addmm":
        if call.kwargs or len(call.args) != 3:
            return call.lost()
        bias, operand, weight = call.args
    else:
        operand, weight, bias = call.args[0], call.argument(1, "weight").mT, call.argument(2, "bias")
    if call.label(weight) is not None or call.label(bias) is not None or call.label(operand) is None:
        return call.lost("a matrix is made of the tokens")
    return _step(call, Matrix(weight), (operand,), bias)


def _step(call: Call, act: Any, operands: tuple[Tensor, ...], added: Any = None) -> Label:
    numbers = [call.here.register(operand) for operand in operands]
    for number in numbers:
        if isinstance(number, Lost):
            return number
    return call.here.emit(act, tuple(numbers), operands, call.result, added)  # pyright: ignore


def _product(call: Call) -> Label:
    if call.name == "einsum" or call.name == "baddbmm":
        carried = [part for part in tensors_in(call.args) if _is_carried(call.label(part))]
        return Scores() if len(carried) == 2 else call.lost()
    left, right = call.args[0], call.argument(1, "mat2" if "mat2" in call.kwargs else "other")
    if call.name == "__rmatmul__":
        left, right = right, left
    mine, other = _is_carried(call.label(left)), _is_carried(call.label(right))
    if mine and other:
        return Scores()
    if isinstance(call.label(right if mine else left), Statistic):
        return call.lost()
    if mine and right.ndim == 2 and call.label(right) is None:
        return _step(call, Matrix(right), (left,))
    if left.ndim != right.ndim or left.ndim < 2:
        return call.lost()
    return _step(call, Mixed(left, True) if other else Mixed(right, False), (right if other else left,))


def _is_carried(label: Label | None) -> bool:
    return isinstance(label, (Own, Carried, Cells))


def _norm(call: Call) -> Label:
    x, shape = call.args[0], call.argument(1, "normalized_shape")
    weight = call.argument(2, "weight")
    if len(shape) != 1 or not _is_carried(call.label(x)):
        return call.lost()
    centred = call.name == "layer_norm"
    eps = call.argument(4 if centred else 3, "eps", 1e-5 if centred else None)
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    square = x.var(dim=-1, keepdim=True, correction=0) if centred else x.square().mean(dim=-1, keepdim=True)
    by = (square + eps).rsqrt()
    return _step(
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
    if not all(label is None or _is_carried(label) for label in labels):
        return call.lost()
    dim = dim % call.result.ndim
    made = [piece for piece, label in zip(pieces, labels, strict=True) if label is not None]
    sizes = tuple(tuple(p.shape) if label is None else None for p, label in zip(pieces, labels, strict=True))
    constants = [p if label is None else torch.zeros_like(p) for p, label in zip(pieces, labels, strict=True)]
    added = call.func(constants, dim=dim) if any(size is not None for size in sizes) else None
    return _step(call, Joined(call.func, dim, sizes), tuple(made), added)


def _moved(call: Call) -> Label | list[Label] | None:
    operand, rest = call.argument(0, "input"), call.args[1:]
    label = call.label(operand)
    if label is None or any(_is_carried(call.label(part)) for part in tensors_in((rest, call.kwargs))):
        return call.lost()
    if call.name == "masked_fill" and call.argument(2, "value") != 0:
        return call.lost()
    if isinstance(label, (Frozen, Statistic)):
        return label
    func, options = call.func, {k: v for k, v in call.kwargs.items() if k != "input"}
    if call.name in ("view", "contiguous"):
        func = torch.Tensor.reshape if call.name == "view" else torch.Tensor.clone
        rest = (tuple(call.result.shape),) if call.name == "view" else ()
    if isinstance(call.result, Tensor):
        return _step(call, Moved(func, rest, options), (operand,))
    return [
        _step(replace(call, result=part), Moved(func, rest, options, index), (operand,))
        for index, part in enumerate(call.result)
    ]


def _reduced(call: Call) -> Label:
    label = call.label(call.args[0] if call.args else None)
    if isinstance(label, (Statistic, Frozen)):
        return label
    if call.word in STATISTICS or (isinstance(label, Cells) and label.active and _over_last(call)):
        return Statistic() if _over_last(call) else call.lost()
    if not _is_carried(label):
        return call.lost()
    return _step(call, Moved(call.func, call.args[1:], call.kwargs), (call.args[0],))


def _summed(call: Call) -> Label:
    left, right = call.args[0], call.argument(1, "other")
    size = call.kwargs.get("alpha", 1)
    first, second = (1.0, -float(size)) if "sub" in call.word else (1.0, float(size))
    if call.word == "rsub":
        first, second = -float(size), 1.0
    mine, other = call.label(left), call.label(right)
    if isinstance(mine, Statistic) or isinstance(other, Statistic):
        return Statistic() if not _is_carried(mine) and not _is_carried(other) else call.lost()
    if not (mine is None or _is_carried(mine)) or not (other is None or _is_carried(other)):
        return call.lost()
    if mine is not None and other is not None:
        if _one_root(mine, other):
            return _cells(call)
        return _step(call, Summed(first, second), (left, right))
    operand, constant, factor, of_constant = (
        (left, right, first, second) if other is None else (right, left, second, first)
    )
    if not isinstance(constant, Tensor) or (constant.numel() == 1 and not isinstance(call.label(operand), Own)):
        return _cells(call)
    return _step(call, Scaled(factor), (operand,), of_constant * constant)


def _scaled(call: Call) -> Label:
    left, right = call.args[0], call.argument(1, "other")
    mine, other = call.label(left), call.label(right)
    inverse = call.word in QUOTIENTS
    if all(label is None or isinstance(label, Statistic) for label in (mine, other)):
        return Statistic()
    if _is_carried(mine) and _is_carried(other):
        if _one_root(mine, other):
            return _cells(call)
        return call.lost("one part of it divides another") if inverse else _gated(call, left, right)
    if not _is_carried(mine):
        left, right, mine = right, left, other
        if inverse:
            return _cells(call) if not isinstance(right, Tensor) else call.lost()
    if not isinstance(right, Tensor) or (right.numel() == 1 and call.label(right) is None):
        number = float(right)
        if isinstance(mine, Carried):
            return Carried(mine.register, mine.factor / number if inverse else mine.factor * number)
        if isinstance(mine, Cells):
            return _cells(call)
        return _step(call, Scaled(1 / number if inverse else number), (left,))
    if right.ndim > left.ndim:
        return call.lost()
    return _step(call, Scaled(1 / right if inverse else right), (left,))


def _one_root(mine: Label | None, other: Label | None) -> bool:
    """Whether both are functions of the same tensor."""
    labels = [label for label in (mine, other) if isinstance(label, (Carried, Cells))]
    return len(labels) == 2 and labels[0].register == labels[1].register


def _cells(call: Call) -> Label:
    """A function of one tensor, cell by cell; it is shared out once something else reads it."""
    operands = [part for part in tensors_in((call.args, call.kwargs)) if call.label(part) is not None]
    if all(isinstance(call.label(part), Statistic) for part in operands):
        return Statistic()
    for part in operands:
        if isinstance(call.label(part), Own) and isinstance(number := call.here.register(part), Lost):
            return number
    labels = [call.label(part) for part in operands]
    roots = {label.register for label in labels if isinstance(label, (Carried, Cells))}
    others = [p for p in tensors_in((call.args, call.kwargs)) if call.label(p) is None and p.numel() != 1]
    if len(roots) != 1 or others or not all(isinstance(label, (Carried, Cells)) for label in labels):
        return call.lost()
    root = _root(call, operands, labels)
    if root is None or root.shape != call.result.shape:
        return call.lost()
    mapped = {id(part): _again(label) for part, label in zip(operands, labels, strict=True)}
    again = partial(_replayed, call.func, call.args, call.kwargs, mapped)
    was = any(label.active for label in labels if isinstance(label, Cells))
    is_linear = call.word in SUMS and not was
    return Cells(roots.pop(), root, again, was or not (is_linear or call.name in LIMITS))


def _root(call: Call, operands: list[Tensor], labels: list[Any]) -> Tensor | None:
    """The tensor that all operands are functions of."""
    for part, label in zip(operands, labels, strict=True):
        if isinstance(label, Cells):
            return label.of
        if label.factor:
            return part.detach().clone() if label.factor == 1 else part.detach() / label.factor
    return None


def _again(label: Any) -> Callable[[Tensor], Tensor]:
    return label.again if isinstance(label, Cells) else partial(operator.mul, label.factor)


def _replayed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], mapped: dict[int, Any], x: Tensor) -> Tensor:
    def new(value: Any) -> Any:
        return mapped[id(value)](x) if id(value) in mapped else value

    name = getattr(func, "__name__", "").strip("_")
    func = {"iadd": torch.add, "imul": torch.mul, "isub": torch.sub, "itruediv": torch.div}.get(name, func)
    return func(*map(new, args), **{key: new(value) for key, value in kwargs.items()})


def _gated(call: Call, left: Tensor, right: Tensor) -> Label:
    """A product of two tensors of tokens, one of them an activation."""
    gate, up = left, right
    active = [isinstance(label := call.label(part), Cells) and label.active for part in (left, right)]
    if active[0] == active[1]:
        return call.lost("two tensors made of the tokens are multiplied, and neither or each is an activation")
    if active[1]:
        gate, up = right, left
    of_gate = call.label(gate)
    assert isinstance(of_gate, Cells)
    whole = gate.detach().clone()
    if call.here.gated == "gate":
        return _step(call, Scaled(whole), (up,))
    units = up.detach().clone()
    number = call.here.register(up)
    if isinstance(number, Lost):
        return number
    share = activation_shares(of_gate.of, whole, of_gate.again)
    zero = float(of_gate.again(torch.zeros_like(whole.reshape(-1)[:1])))
    half = call.here.emit(Scaled(whole / 2), (number,), (units,), whole * units / 2)
    added = zero * units / 2 if zero else None
    other = call.here.emit(Scaled(share * units / 2), (of_gate.register,), (of_gate.of,), whole * units / 2, added)
    if not isinstance(half, Carried) or not isinstance(other, Carried):
        return half if isinstance(half, Lost) else other
    halves = (whole * units / 2, whole * units / 2)
    return call.here.emit(Summed(1.0, 1.0), (half.register, other.register), halves, call.result)
