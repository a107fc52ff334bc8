"""Watch one forward pass and hand over every attention block in it, complete, as soon as it is over.

Room: following numbers through torch. No norms, no tokens, no knowledge of any model family.

The tap is a torch function mode, so it lives in one thread, between `with` and its end, and touches nothing of the
model: no hooks, no configuration, no attention implementation. It remembers which tensors descend from a softmax, sees
them multiply the values (written out, or inside torch's own fused attention), follows that product with serial numbers
until a matrix takes it, and that matrix is W_O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from normlens.capture.fused import attention_weights, multi_head
from normlens.capture.layout import Layout, LayoutError, serial_numbers
from normlens.capture.operations import PRODUCTS, Product, Projection, as_product, as_projection
from normlens.capture.pieces import Piece, assemble, layouts_of
from normlens.capture.record import Attended, Refused
from normlens.capture.trail import Trail
from normlens.capture.vocabulary import JOINS, LOOKS, MOVES, POINTWISE, SAME

MATRICES = PRODUCTS | {"linear", "addmm", "conv1d", "conv2d"}


@dataclass(slots=True, eq=False)
class Softmax:
    """A softmax that was seen."""

    order: int
    where: str
    is_router: bool  # its input came straight from a matrix: a choice among experts or classes, not among tokens
    used: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """What the tap knows about one tensor. It lives and dies with the tensor."""

    linear: bool = False  # comes straight from a matrix of the model
    softmax: Softmax | None = None  # descends from this softmax, cell by cell
    pieces: tuple[Piece, ...] = ()  # consists of these products ...
    trail: Trail | None = None  # ... and came this way


class Tap(TorchFunctionMode):
    """Every attention block of a forward pass goes to `on_block` the moment its output exists."""

    def __init__(
        self,
        names: dict[int, str],
        on_block: Callable[[Attended], None],
        *,
        where: Callable[[], str] | None = None,
    ) -> None:
        """`names`: parameter names by address. `where`: the module now running; asked for, the tap explains losses."""
        super().__init__()
        self.names, self.on_block, self.where = names, on_block, where
        self.softmaxes: list[Softmax] = []
        self.pieces: list[Piece] = []
        self.layouts: dict[Any, tuple[Layout, ...]] = {}
        self.count = 0  # serial numbers given out
        self.order = count()  # of softmaxes and products alike

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "__get__":
            name = getattr(func.__self__, "__name__", "")
        if name in MATRICES:
            return self._matrix(name, func, args, kwargs)
        if name == "softmax":
            return self._softmax(func, args, kwargs)
        if name == "scaled_dot_product_attention":
            return self._fused(args, kwargs)
        if name == "multi_head_attention_forward":
            return self._multi_head(func, args, kwargs)
        result = func(*args, **kwargs)
        if name in MOVES or name in SAME or name in POINTWISE:
            self._carry(name, func, args, kwargs, result)
        elif name in JOINS:
            self._join(func, args, kwargs, result)
        elif self.where is not None:
            self._lose(name, args, result)
        return result

    def refused(self) -> list[Refused]:
        """Attention that was seen and not completed, and what became of it."""
        lost = [
            Refused(p.order, p.where, p.fate or "its output never reaches an output matrix")
            for p in self.pieces
            if p.fate or not p.out
        ]
        idle = [
            Refused(s.order, s.where, "its softmax does not multiply the values in one product that can be read")
            for s in self.softmaxes
            if not s.used and (not s.is_router or "att" in s.where.lower())
        ]
        return lost + idle

    def _softmax(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        source = _mark(args[0] if args else kwargs.get("input"))
        softmax = Softmax(next(self.order), self._here(), is_router=source.linear)
        self.softmaxes.append(softmax)
        _set(result, Mark(softmax=softmax))
        return result

    def _matrix(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        operands = args[1:] if name == "einsum" else args
        operands = operands[0] if operands and isinstance(operands[0], (list, tuple)) else operands
        result = func(*args, **kwargs)
        if name in PRODUCTS and len(operands) == 2:
            for at, operand in enumerate(operands):
                mark = _mark(operand)
                product = as_product(name, args, at) if mark.softmax else None
                if mark.softmax and product is not None:
                    mark.softmax.used = True
                    self._begin(product, result)
                    return result
        for operand in operands:
            if _mark(operand).pieces:
                self._project(name, args, kwargs, _mark(operand), result)
                return result
        if name not in PRODUCTS or any(isinstance(operand, torch.nn.Parameter) for operand in operands):
            _set(result, Mark(linear=True))
        return result

    def _begin(self, product: Product, context: Tensor) -> None:
        lead, tgt, head_dim = *product.weights.shape[:2], product.values.shape[2]
        piece = Piece(next(self.order), self._here(), self.count, lead * tgt * head_dim, product)
        self.count += piece.size
        self.pieces.append(piece)
        arrange, device = product.arrange, context.device

        def numbered(start: int) -> Tensor:
            return arrange(serial_numbers(lead, tgt, head_dim, start=start, device=device))

        _set(context, Mark(pieces=(piece,), trail=Trail((product.form, lead, tgt, head_dim), numbered)))

    def _project(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], mark: Mark, result: Tensor) -> None:
        projection = as_projection(name, args, kwargs)
        if projection is None or mark.trail is None:
            return self._fail(mark, f"its output enters '{name}', which is not a plain matrix")
        out = self.names.get(projection.matrix.data_ptr(), "")
        taken = [piece for piece in mark.pieces if piece.out]
        if taken:
            return self._fail(mark, f"its output is read by two matrices, '{taken[0].out}' and '{out}'")
        if any(piece.product is None for piece in mark.pieces):
            return None
        try:
            layouts = self._layouts(mark.pieces, mark.trail, projection)
            block = assemble(mark.pieces, layouts, projection, result, out=out)
        except LayoutError as error:
            return self._fail(mark, f"before the output matrix '{out}' {error}")
        for piece in mark.pieces:
            piece.out, piece.product = out or "(unnamed)", None
        return self.on_block(block)

    def _layouts(self, pieces: tuple[Piece, ...], trail: Trail, projection: Projection) -> tuple[Layout, ...]:
        """Layers are alike, so one layer's serial numbers serve all that went the same way."""
        start = next(iter(pieces)).start
        key = None if trail.key is None else (trail.key, projection.form)
        known = self.layouts.get(key)
        if known is None:
            known = layouts_of(pieces, trail.replay(start), projection)
            if key is not None:
                self.layouts[key] = known
        return known

    def _fused(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        weights, values = attention_weights(*args, **kwargs)
        context = torch.matmul(weights, values)
        product = as_product("matmul", (weights, values), 0)
        assert product is not None
        self._begin(product, context)
        return context

    def _multi_head(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result, block = multi_head(func, args, kwargs)
        piece = Piece(next(self.order), self._here(), 0, 0, None)
        self.pieces.append(piece)
        if block is None:
            piece.fate = "torch's multi-head attention adds positions of its own"
            return result
        piece.out = self.names.get(block.out_weight.data_ptr(), "(unnamed)")
        self.on_block(replace(block, order=piece.order, where=piece.where, out=piece.out))
        return result

    def _carry(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        for operand in (*args, *kwargs.values()):
            mark = _mark(operand)
            if mark is NOTHING:
                continue
            if name in POINTWISE:
                if mark.pieces:
                    self._fail(mark, f"its output is changed by '{name}' before any output matrix: a gate or a sum")
                elif isinstance(result, Tensor) and result.shape == operand.shape:
                    _set(result, mark)
            elif name in SAME or mark.trail is None:
                _set(result, mark)
            else:
                _set(result, replace(mark, trail=mark.trail.moved(func, name, operand, args, kwargs)))
            return

    def _join(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> None:
        parts = args[0] if args else kwargs.get("tensors", ())
        marks = [_mark(part) for part in parts]
        pieces = tuple(dict.fromkeys(piece for mark in marks for piece in mark.pieces))
        if pieces:
            options = {key: value for key, value in kwargs.items() if key != "tensors"}
            shapes = [part.shape for part in parts]

            def joined(_: int) -> Tensor:
                serials = [
                    torch.full(shape, -1, device=result.device)
                    if mark.trail is None
                    else mark.trail.replay(mark.pieces[0].start)
                    for shape, mark in zip(shapes, marks, strict=True)
                ]
                return func(serials, *args[1:], **options)

            _set(result, Mark(pieces=pieces, trail=Trail(None, joined)))
        elif marks and all(mark.linear for mark in marks):
            _set(result, Mark(linear=True))

    def _lose(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """A call that is none of the known ones: an attention output ends here; a router's choice goes on."""
        for operand in args:
            mark = _mark(operand)
            if mark.pieces and name not in LOOKS:
                self._fail(mark, f"its output passes through '{name}' in '{self._here()}' before any output matrix")
        if args and _mark(args[0]).linear and not isinstance(result, (str, bytes)):
            _set(result, Mark(linear=True))

    def _fail(self, mark: Mark, fate: str) -> None:
        for piece in mark.pieces:
            piece.fate = piece.fate or fate
            piece.product = None

    def _here(self) -> str:
        return self.where() if self.where is not None else ""


NOTHING = Mark()


def _mark(tensor: Any) -> Mark:
    return getattr(tensor, "_normlens", NOTHING) if isinstance(tensor, Tensor) else NOTHING


def _set(result: Any, mark: Mark) -> None:
    """Mark a result, or each tensor of a tuple of results."""
    if isinstance(result, Tensor):
        if not isinstance(result, torch.nn.Parameter):
            result._normlens = mark  # pyright: ignore
    elif isinstance(result, Iterable):
        for index, part in enumerate(result):
            _set(part, mark if mark.trail is None else replace(mark, trail=mark.trail.part(index)))
