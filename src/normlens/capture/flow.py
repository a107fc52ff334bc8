"""Follow the output of every attention block: through the residual, norms and the feed-forward block, to the next one.

    sum × statistic = norm      sum + what is older = residual      sum + something made of it = what joins next

Every tensor made from a block carries a label. Nothing of the model's code is matched: the calls of torch are followed,
and what cannot be followed is said to be something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from normlens.capture.labels import (
    Active,
    Followed,
    Gated,
    Hidden,
    Label,
    Linear,
    Mean,
    Network,
    Other,
    Place,
    Source,
    Statistic,
    Step,
    Term,
)
from normlens.capture.operations import PRODUCTS, as_projection
from normlens.capture.positions import Positions
from normlens.capture.record import Attended
from normlens.capture.vocabulary import ALIGNED, MOVES, RESHAPES, SAME, TURNS

SUMS = frozenset("add radd __add__ __radd__ __iadd__ add_".split())
DIFFERENCES = frozenset("sub subtract __sub__ __rsub__ rsub __isub__ sub_".split())
FACTORS = frozenset("mul multiply __mul__ __rmul__ __imul__ mul_".split())
QUOTIENTS = frozenset("div divide true_divide __truediv__ __itruediv__ div_".split())
NEGATIVE = frozenset("neg negative __neg__".split())
NORMS = frozenset("layer_norm rms_norm".split())
SPREADS = frozenset("var std norm vector_norm var_mean std_mean amax max amin logsumexp".split())
IN_PLACE = frozenset("__iadd__ __isub__ __imul__ __itruediv__ __setitem__ __ipow__".split())
MATRICES = PRODUCTS | {"linear", "addmm", "conv1d", "conv2d", "baddbmm"}


Wanted = Callable[[str, int], frozenset[int] | None]  # states by output matrix and use; None: all, for a proof


class Flow:
    """The labels of one pass. A block is handed out when the states that are wanted of it are there."""

    def __init__(self, positions: Positions, wanted: Wanted, hand_out: Callable[[Attended], None]) -> None:
        self.positions, self.wanted, self.hand_out = positions, wanted, hand_out
        self.token = object()
        self.blocks: dict[int, Followed] = {}
        self.held: dict[int, Attended] = {}
        self.uses: Counter[str] = Counter()
        self.roots = count(1)  # names of vectors; norms, factors and moves keep them
        self.read: set[int] = set()  # the roots that a matrix has read
        self.numbers: dict[int, int] = {}  # states of a block so far

    def release(self) -> None:
        """Hand out what is held, complete or not: the next attention begins, or the pass is over."""
        for order in list(self.held):
            self._let_go(order)

    def begin(self, block: Attended, result: Tensor, rows: Tensor | None, added: Tensor | None) -> None:
        """The output of a block exists, as rows of `result`."""
        wanted = self.wanted(block.out, self.uses[block.out])
        self.uses[block.out] += 1
        if rows is not None and (wanted is None or wanted):
            followed = Followed(block.order, block.out, rows, block.output.detach().clone(), block.out_bias, wanted)
            self.blocks[block.order], self.numbers[block.order] = followed, -1
            if wanted is not None:
                self.held[block.order] = replace(block, output=followed.output, followed=followed)
            place = Place(tuple(result.shape[:-1]))
            terms = (Term(Source("attention", None, place)),)
            if added is not None:
                terms += (Term(self._beside(added, 1.0, place)),)
            self._state(result, block.order, terms, place, ("attention",), None)
        if block.order not in self.held:
            self.hand_out(block)

    def _let_go(self, order: int) -> None:
        block = self.held.pop(order, None)
        if block is not None:
            del self.blocks[order]
            self.hand_out(block)

    def before(self, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a call that writes into its first operand would destroy, as a copy."""
        if args and _writes(name) and isinstance(args[0], Tensor) and any(self._label(a) is not None for a in args):
            kept = args[0].detach().clone()
            label = self._label(args[0])
            if label is not None:
                self._put(kept, label)
            self._name(kept, self._root(args[0]))
            return (kept, *args[1:])
        return args

    def follow(
        self,
        name: str,
        func: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        result: Any,
        given: tuple[Any, ...],
    ) -> None:
        """One call of torch; `given` are its arguments as they were before."""
        operands = _operands(given, kwargs)
        self._trace_root(name, operands, result)
        labels = [label for label in map(self._label, operands) if label is not None]
        if not labels:
            return
        block = max(label.block for label in labels)
        try:
            label = self._made(block, name, func, given, kwargs, result)
        except (
            RuntimeError,
            IndexError,
            TypeError,
            ValueError,
            AttributeError,
        ):  # a form nobody foresaw: lost, not wrong
            label = None
        if label is not None and not isinstance(label, bool):
            self._put(result, label)
        elif label is None:
            self._lost(block, name, result, args)

    def _made(self, block: int, name: str, func: Any, args: tuple[Any, ...], kwargs: Any, result: Any) -> Any:
        """The label of a result; True: labelled already; None: it is something else."""
        operand = args[0] if args else kwargs.get("input")
        first = self._of(block, operand)
        if name in SAME or name in ("contiguous", "clone"):
            return first
        if name in MOVES:
            return self._moved(first, name, func, operand, args, kwargs, result)
        if isinstance(first, Other) and name not in SUMS | DIFFERENCES:
            return self._statistic_of(first, name, args, kwargs, operand, result)
        if name in SUMS or name in DIFFERENCES:
            return self._sum(block, name, args, kwargs, result)
        if name in FACTORS or name in QUOTIENTS:
            return self._factor(block, name, func, args, kwargs, result)
        if name in NEGATIVE and isinstance(first, Linear):
            return self._scaled(first, -1.0, result)
        if name in NORMS and isinstance(first, Linear):
            return self._norm(first, name, args, kwargs, result)
        if name in ("mean", "sum") and isinstance(first, Linear):
            return Mean(first) if name == "mean" and _over_last(args, kwargs, operand, result) else None
        if name in MATRICES:
            return self._matrix(block, name, args, kwargs, result)
        if isinstance(first, Statistic) and name in ALIGNED:
            others = [self._of(block, a) for a in _operands(args[1:], kwargs)]
            return first if all(other is None or isinstance(other, Statistic) for other in others) else None
        if isinstance(first, (Hidden, Active)) and name in ALIGNED:
            return self._activation(first, func, args, kwargs, result)
        if isinstance(first, Linear):
            return self._statistic_of(Other(block, ""), name, args, kwargs, operand, result)
        return None

    def _note(self, block: int) -> Followed:
        """Where to write down what the model does with a state; nowhere once the block is handed out."""
        return self.blocks.get(block, NOWHERE)

    # sums

    def _sum(self, block: int, name: str, args: tuple[Any, ...], kwargs: Any, result: Any) -> Any:
        left, right = args[0], args[1] if len(args) > 1 else kwargs.get("other")
        alpha = kwargs.get("alpha", 1)
        minus = name in DIFFERENCES
        if name in ("__rsub__", "rsub"):
            left, right = right, left
        ours, theirs = self._of(block, left), self._of(block, right)
        if isinstance(ours, Statistic) or isinstance(theirs, Statistic):
            both = [one for one in (ours, theirs) if one is not None]
            return both[0] if all(isinstance(one, Statistic) for one in both) else None
        if isinstance(ours, Linear) and isinstance(theirs, Mean):
            if theirs.of.number == ours.number and minus and alpha == 1:
                return self._made_of(ours, result, ours.stepped(Step("centre", ours.place)), "centre")
            return None
        if all(one is None or isinstance(one, (Hidden, Active)) for one in (ours, theirs)):
            return self._activation(ours or theirs, _plain(name), (left, right), {}, result)  # pyright: ignore
        states = [one for one in (ours, theirs) if isinstance(one, Linear)]
        state = next((one for one in states if one.attends), states[0] if states else None)
        if state is None or not isinstance(result, Tensor):
            return None
        terms, words = [], []
        for value, label, sign in ((left, ours, 1.0), (right, theirs, -1.0 if minus else 1.0)):
            factor = sign * (alpha if value is right else 1)
            if isinstance(label, Linear):
                if not label.place.same(state.place) or tuple(result.shape[:-1]) != label.place.lead:
                    return None
                step = () if factor == 1 else (Step("scale", label.place, factor),)
                terms += label.stepped(*step)
            elif label is not None:
                words.append("join")
                reason = label.reason if isinstance(label, Other) else "it is added before its end is known"
                terms.append(self._joined(value, factor, reason, state))
            else:
                source = self._beside(value, factor, state.place)
                words.append(source.kind)
                terms.append(Term(source))
        if isinstance(ours, Linear) and isinstance(theirs, Linear):
            words.append("both")
            whole = next((one for one in (ours, theirs) if one.attends), None)
            inner = theirs if whole is ours else ours
            if whole is not None and inner.holds("feedforward", "other") and not inner.attends:
                self._note(block).added.append(whole.number)
        elif "join" in words:
            self._note(block).added.append(state.number)
        return self._made_of(state, result, tuple(terms), "+".join(words))

    def _beside(self, value: Any, factor: float, place: Place) -> Source:
        """Something that is not made of this block: its residual is what some matrix has read already."""
        if not isinstance(value, Tensor):
            return Source("constant", factor * value, place)
        earlier = self._label(value)
        kept = value.detach() if factor == 1 else factor * value.detach()
        track = self.positions.track(value)
        if isinstance(value, nn.Parameter) or (earlier is None and track is not None and not track.origins):
            return Source("constant", kept, place)
        if isinstance(earlier, Linear) and earlier.attends:
            self._note(earlier.block).used.append(earlier.number)
        if self._root(value) in self.read:
            return Source("residual", kept, place)
        alone = isinstance(earlier, Linear) and all(
            term.source.kind == "constant" or (term.source.network is not None and term.source.network.reads.attends)
            for term in earlier.terms
        )
        return Source("companion" if alone and earlier.place.rows is None else "stranger", kept, place)  # pyright: ignore

    def _joined(self, value: Tensor, factor: float, reason: str, state: Linear) -> Term:
        kept = value.detach() if factor == 1 else factor * value.detach()
        return Term(Source("other", kept, state.place, reason=reason))

    # factors and norms

    def _factor(self, block: int, name: str, func: Any, args: tuple[Any, ...], kwargs: Any, result: Any) -> Any:
        left, right = args[0], args[1] if len(args) > 1 else kwargs.get("other")
        ours, theirs = self._of(block, left), self._of(block, right)
        divides = name in QUOTIENTS
        if divides and isinstance(theirs, Linear):
            return None
        if isinstance(theirs, Linear):
            left, right, ours, theirs = right, left, theirs, ours
        if isinstance(ours, Linear):
            if theirs is None or isinstance(theirs, Statistic):
                by = right.detach() if isinstance(right, Tensor) else right
                return self._scaled(ours, 1 / by if divides else by, result, normed=theirs is not None)
            return Other(block, f"it is multiplied by something computed from it ('{name}')")
        if isinstance(ours, Mean) and not isinstance(right, Tensor):
            return None
        if isinstance(ours, Statistic) and (theirs is None or isinstance(theirs, Statistic)):
            return ours
        if isinstance(theirs, Statistic) and ours is None:
            return theirs
        return self._product(ours, theirs, left, right, func, result, divides)

    def _product(
        self, ours: Any, theirs: Any, left: Any, right: Any, func: Any, result: Any, divides: bool
    ) -> Active | Gated | Other | None:
        inner = [one for one in (ours, theirs) if one is not None]
        if not all(isinstance(one, (Hidden, Active)) for one in inner):
            return None
        hidden = [one if isinstance(one, Hidden) else one.of for one in inner]
        if all(one is hidden[0] for one in hidden):
            return self._activation(inner[0], func, (left, right), {}, result)
        if divides or not hidden[0].place.same(hidden[1].place):
            return None
        for gate, units in ((ours, theirs), (theirs, ours)):
            if isinstance(gate, Active) and isinstance(units, Hidden):
                return Gated(gate, units)
        return None

    def _scaled(self, state: Linear, by: Any, result: Any, *, normed: bool = False) -> bool | None:
        if not isinstance(result, Tensor) or tuple(result.shape[:-1]) != state.place.lead:
            return None
        step = Step("scale", state.place, by, normed)
        return self._made_of(state, result, state.stepped(step), "norm" if normed else "scale")

    def _norm(self, state: Linear, name: str, args: tuple[Any, ...], kwargs: Any, result: Tensor) -> bool | None:
        names = ("input", "normalized_shape", "weight", "bias", "eps") if name == "layer_norm" else (
            "input", "normalized_shape", "weight", "eps")  # fmt: skip
        call = dict(zip(names, args, strict=False)) | dict(kwargs)
        value, shape = call["input"], tuple(call["normalized_shape"])
        if shape != tuple(value.shape[-1:]):
            return None
        eps = call.get("eps", 1e-5 if name == "layer_norm" else None)
        numbers = value.detach() if value.dtype == torch.float64 else value.detach().float()
        eps = torch.finfo(value.dtype).eps if eps is None else eps
        steps = []
        if name == "layer_norm":
            steps.append(Step("centre", state.place))
            spread = numbers.var(-1, correction=0, keepdim=True)
        else:
            spread = numbers.square().mean(-1, keepdim=True)
        steps.append(Step("scale", state.place, (spread + eps).rsqrt(), normed=True))
        if call.get("weight") is not None:
            steps.append(Step("scale", state.place, call["weight"].detach()))
        terms = state.stepped(*steps)
        if call.get("bias") is not None:
            terms += (Term(Source("constant", call["bias"].detach(), state.place)),)
        return self._made_of(state, result, terms, name)

    # feed-forward

    def _matrix(self, block: int, name: str, args: tuple[Any, ...], kwargs: Any, result: Any) -> Any:
        operands = args[1:] if name == "einsum" else args
        operands = operands[0] if operands and isinstance(operands[0], (list, tuple)) else operands
        labels = [(one, self._of(block, one)) for one in _operands(tuple(operands), kwargs)]
        (operand, label), *more = [pair for pair in labels if pair[1] is not None]
        if isinstance(label, Linear):
            self._note(block).read.append(label.number)
        if more or not isinstance(result, Tensor):
            return None
        projection = as_projection(name, args, dict(kwargs)) if name not in ("conv1d", "conv2d", "einsum") else None
        if projection is None or projection.added is not None or projection.form != "rows":
            return self._carried(label, f"'{name}'")
        if not isinstance(label, (Linear, Active, Gated)) or result.shape[:-1] != operand.shape[:-1]:
            return self._carried(label, f"'{name}'")
        fixed = self.positions.track(projection.matrix)
        if fixed is not None and fixed.origins:
            return self._carried(label, "a matrix that is computed from the input")
        weight, bias = projection.weight.detach(), None if projection.bias is None else projection.bias.detach()
        if isinstance(label, Linear):
            return Hidden(label, weight, bias, result.detach(), label.place)
        inner = label.of if isinstance(label, Active) else label.units
        source = Source("feedforward", result, inner.place, Network(label, weight, bias))
        return Linear(block, (Term(source),), inner.place, -1, ("feedforward",))

    def _carried(self, label: Any, reason: str) -> Other:
        return label if isinstance(label, Other) and label.reason else Other(label.block, f"through {reason}")

    def _activation(self, label: Hidden | Active, func: Any, args: tuple[Any, ...], kwargs: Any, result: Any) -> Any:
        """Cell by cell, of one and the same units: whatever it is, g is computed anew from them."""
        hidden = label if isinstance(label, Hidden) else label.of
        parts: list[Any] = []
        for arg in args:
            found = self._of(hidden.block, arg)
            if found is not None and not (
                (isinstance(found, Hidden) and found is hidden) or (isinstance(found, Active) and found.of is hidden)
            ):
                return None
            if found is None and isinstance(arg, Tensor) and arg.ndim and arg.shape[-1] != 1 and arg.ndim > 1:
                return None
            parts.append(found if found is not None else arg)
        if not isinstance(result, Tensor) or result.shape != hidden.value.shape:
            return None

        def again(units: Tensor) -> Tensor:
            words = [
                units if isinstance(part, Hidden) else part.again(units) if isinstance(part, Active) else part
                for part in parts
            ]
            return func(*words, **kwargs)

        return Active(hidden, result.detach(), again)

    # moves and statistics

    def _moved(
        self, label: Any, name: str, func: Any, operand: Tensor, args: tuple[Any, ...], kwargs: Any, result: Any
    ) -> Any:
        if label is None or isinstance(label, (Other, Statistic, Mean)):
            return label if isinstance(label, (Other, Statistic)) else None
        if not isinstance(label, Linear) and (
            name in TURNS or (name in RESHAPES and not _keeps_width(operand, result))
        ):
            return Other(label.block, f"through '{name}'")
        width = operand.shape[-1]
        results = result if isinstance(result, (tuple, list)) else (result,)
        if name in RESHAPES and isinstance(result, Tensor) and result.ndim > 1 and _keeps_width(operand, result):
            return self._replaced(label, Place(tuple(result.shape[:-1]), _place(label).rows), result, None)
        count = operand.numel() // max(1, width)
        words = [operand if a is operand else a for a in args]
        numbers = torch.arange(count, device=operand.device).view(*operand.shape[:-1], 1).expand(operand.shape)
        units = torch.arange(width, device=operand.device).expand(operand.shape)
        try:
            turned, columns = (
                func(*(grid if w is operand else w for w in words), **kwargs) for grid in (numbers, units)
            )
        except (RuntimeError, TypeError, IndexError):
            return None
        turned, columns = ((one if isinstance(one, (tuple, list)) else (one,)) for one in (turned, columns))
        for part, row, column in zip(results, turned, columns, strict=True):
            moved = self._part(label, part, row, column, width)
            self._put(part, moved or Other(label.block, f"through '{name}'"))
        return True

    def _part(self, label: Any, part: Tensor, row: Tensor, column: Tensor, width: int) -> Any:
        """The label of a part, from the rows and columns of the whole that stand in it."""
        if part.ndim < 2 or not part.numel() or row.shape != part.shape:
            return None
        if bool((row != row[..., :1]).any()) or bool((column != column.reshape(-1, column.shape[-1])[0]).any()):
            return None
        rows, columns = row[..., 0].flatten(), column.reshape(-1, column.shape[-1])[0]
        before = _place(label)
        count = 1
        for size in before.lead:
            count *= size
        same = len(rows) == count and torch.equal(rows, torch.arange(count, device=rows.device))
        place = Place(
            tuple(part.shape[:-1]), before.rows if same else rows if before.rows is None else before.rows[rows]
        )
        whole = len(columns) == width and torch.equal(columns, torch.arange(width, device=columns.device))
        return self._replaced(label, place, part, None if whole else columns)

    def _replaced(self, label: Any, place: Place, value: Tensor, columns: Tensor | None) -> Any:
        if isinstance(label, Linear):
            if columns is not None:
                return None
            return Linear(label.block, label.terms, place, label.number, label.spelling, label.parent)
        if isinstance(label, Hidden):
            weight, bias = label.weight, label.bias
            if columns is not None:
                weight, bias = weight[:, columns], None if bias is None else bias[columns]
            return Hidden(label.of, weight, bias, value.detach(), place)
        if columns is not None or not place.same(_place(label)):
            return None
        if isinstance(label, Active):
            hidden = Hidden(label.of.of, label.of.weight, label.of.bias, label.of.value.reshape(value.shape), place)
            return Active(hidden, value.detach(), label.again)
        return label

    def _statistic_of(
        self, label: Other, name: str, args: tuple[Any, ...], kwargs: Any, operand: Tensor, result: Any
    ) -> Any:
        """A number of each row computed from a state is a statistic; anything else is something else."""
        if name in ("mean", "sum", *SPREADS) and not label.reason:
            if isinstance(result, Tensor) and _over_last(args, kwargs, operand, result):
                return Statistic(label.block)
            if isinstance(result, (tuple, list)) and all(one.shape[-1:] in ((), (1,)) for one in result):
                return None
        if label.reason or name not in ALIGNED:
            return Other(label.block, label.reason or f"through '{name}'")
        return label

    # labels on tensors

    def _made_of(self, state: Linear, result: Tensor, terms: tuple[Term, ...], word: str) -> bool:
        place = Place(tuple(result.shape[:-1]), state.place.rows)
        self._state(result, state.block, terms, place, (*state.spelling, word), state)
        return True

    def _state(
        self, result: Tensor, block: int, terms: tuple[Term, ...], place: Place, spelling: tuple[str, ...], parent: Any
    ) -> None:
        attends = any(term.source.kind == "attention" for term in terms)
        if attends:
            self.numbers[block] += 1
        state = Linear(block, terms, place, self.numbers[block] if attends else -1, spelling, parent)
        self._put(result, state)
        followed = self.blocks.get(block)
        if attends and followed is not None and (followed.wanted is None or state.number in followed.wanted):
            followed.states.append((state, result.detach().clone()))
            if followed.wanted is not None and len(followed.states) == len(followed.wanted):
                self._let_go(block)

    def _lost(self, block: int, name: str, result: Any, args: tuple[Any, ...]) -> None:
        label = Other(block, f"through '{name}'")
        for part in _operands((result,), {}):
            self._put(part, label)
        if _writes(name) and args and isinstance(args[0], Tensor):
            self._put(args[0], label)

    def _put(self, tensor: Any, label: Label) -> None:
        if isinstance(tensor, Tensor) and not isinstance(tensor, nn.Parameter):
            tensor._normlens_flow = (self.token, _version(tensor), label)  # pyright: ignore

    def _label(self, tensor: Any) -> Label | None:
        found = getattr(tensor, "_normlens_flow", None) if isinstance(tensor, Tensor) else None
        if found is None or found[0] is not self.token:
            return None
        if found[1] != _version(tensor):
            return Other(found[2].block, "it was written over")
        return found[2]

    def _of(self, block: int, tensor: Any) -> Label | None:
        """What is known of a tensor as part of this block; what belongs to an earlier block counts as older."""
        label = self._label(tensor)
        return label if label is not None and label.block == block else None

    def _root(self, tensor: Tensor) -> int:
        """The name of the vectors that a tensor holds, whatever norms, factors and moves they went through."""
        found = getattr(tensor, "_normlens_root", None)
        if found is None or found[0] is not self.token:
            found = (self.token, next(self.roots))
            self._name(tensor, found[1])
        return found[1]

    def _name(self, tensor: Tensor, root: int) -> None:
        if not isinstance(tensor, nn.Parameter):
            tensor._normlens_root = (self.token, root)  # pyright: ignore

    def _trace_root(self, name: str, operands: list[Tensor], result: Any) -> None:
        given = [one for one in operands if not isinstance(one, nn.Parameter)]
        if name in MATRICES:
            self.read.update(map(self._root, given))
        elif given and (name in ALIGNED or name in MOVES or name in SAME or name == "pad"):
            size = max(one.numel() for one in given)
            widest = [one for one in given if one.numel() == size]
            if len(widest) == 1:
                for part in _operands((result,), {}):
                    self._name(part, self._root(widest[0]))


NOWHERE = Followed(-1, "", torch.empty(0, 0, dtype=torch.long), torch.empty(0, 0, 0), None)


def _operands(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for arg in (*args, *kwargs.values()):
        if isinstance(arg, Tensor):
            found.append(arg)
        elif isinstance(arg, (tuple, list)):
            found += _operands(tuple(arg), {})
    return found


def _place(label: Any) -> Place:
    if isinstance(label, Active):
        return label.of.place
    return label.units.place if isinstance(label, Gated) else label.place


def _writes(name: str) -> bool:
    return name in IN_PLACE or (name.endswith("_") and not name.endswith("__"))


def _keeps_width(operand: Tensor, result: Any) -> bool:
    return isinstance(result, Tensor) and result.ndim > 0 and result.shape[-1] == operand.shape[-1]


def _plain(name: str) -> Callable[..., Tensor]:
    """A sum or difference of two operands that stand in their order."""
    return torch.sub if name in DIFFERENCES else torch.add


def _over_last(args: tuple[Any, ...], kwargs: Mapping[str, Any], operand: Tensor, result: Any) -> bool:
    """Whether a reduction was over the last axis alone, which was kept."""
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    last = len(dims) == 1 and dims[0] in (-1, operand.ndim - 1)
    return last and isinstance(result, Tensor) and result.shape == (*operand.shape[:-1], 1)


def _version(tensor: Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version
