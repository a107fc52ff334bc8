"""Watch one forward pass and hand over every attention block in it, complete, as soon as it is over.

The tap is a torch function mode, so it lives in one thread, between `with` and its end, and touches nothing of the
model: no hooks, no configuration, no attention implementation. It remembers which tensors descend from a softmax, sees
them multiply the values (written out, or inside torch's own fused attention), follows that product with serial numbers
until a matrix takes it, and that matrix is W_O. `Positions` follows whose row and whose column everything is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from normlens.capture.calls import called, tensors_in
from normlens.capture.chains import Pending, Reader, composed
from normlens.capture.descent import Statistic, descended, is_in_place
from normlens.capture.factors import folded
from normlens.capture.flow import follow as follow_on
from normlens.capture.following import Following, Wanted
from normlens.capture.fused import SCALED, attention_weights, multi_head
from normlens.capture.heads import together
from normlens.capture.layout import Layout, LayoutError
from normlens.capture.operations import PRODUCTS, Product, Projection, as_product, as_projection
from normlens.capture.pieces import Owners, Part, Piece, assemble, layouts_of, rows_of
from normlens.capture.positions import VIRTUAL, Positions, Track
from normlens.capture.record import Attended, Axis, Refused, Seen
from normlens.capture.steps import follow
from normlens.capture.trail import Numbers, Serial, Trail
from normlens.capture.vocabulary import IN_ROW, JOINS, LOOKS, MOVES, POINTWISE, SAME

COMPUTED = "(computed)"  # an output matrix that the model computes from its parameters
NUMBERS = ("item", "tolist")  # a number that leaves torch may come back as a factor
SUMS = ("add", "radd", "iadd", "sub", "rsub", "isub")
MATRICES = PRODUCTS | {"linear", "addmm", "conv1d", "conv2d"}


@dataclass(slots=True, eq=False)
class Softmax:
    """A softmax that was seen."""

    order: int
    where: str
    is_router: bool  # its input came straight from a matrix: a choice among experts or classes, not among tokens
    used: bool = False
    read: bool = False  # something is computed with it
    scores: Tensor | None = None  # what it got, until its values are multiplied or it is changed


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """What the tap knows about one tensor. It lives and dies with the tensor."""

    linear: bool = False  # comes straight from a matrix of the model
    softmax: Softmax | None = None  # descends from this softmax, cell by cell
    pieces: tuple[Piece, ...] = ()  # consists of these products ...
    trail: Trail | None = None  # ... and came this way ...
    statistic: Statistic | None = None  # ... or is a statistic of them
    pending: Pending | None = None  # left an output matrix that another matrix follows
    reader: Reader | None = None  # left an output matrix; who reads it is asked for


class Tap(TorchFunctionMode):
    """Every attention block of a forward pass goes to `on_block` the moment its output exists."""

    def __init__(
        self,
        names: dict[int, str],
        on_block: Callable[[Attended], None],
        *,
        where: Callable[[], str] | None = None,
        chains: Mapping[str, int] | None = None,
        scores: bool = False,
        states: Wanted | None = None,
    ) -> None:
        """`names`: parameter names by address. `where`: the module now running; asked for, the tap explains losses.
        `chains`: how many further matrices follow an output matrix before anything else does. `scores`: keep what the
        softmax got. `states`: which states of a block to keep on its way to the next, by its output matrix and use."""
        super().__init__()
        self.names, self.on_block, self.where = names, on_block, where
        self.chains, self.scores = chains or {}, scores
        self.positions = Positions()
        self.flow = None if states is None else Following(self.positions, states, self._hand_out)
        self.softmaxes: list[Softmax] = []
        self.pieces: list[Piece] = []
        self.seen: list[Seen] = []
        self.readers: list[Reader] = []
        self.layouts: dict[Any, tuple[Layout, ...]] = {}
        self.mixing: set[str] = set()  # modules in which a call may have brought positions together
        self.ran: Counter[str] = Counter()  # how often each matrix of the model was used
        self.count = 0  # serial numbers given out
        self.order = count()  # of softmaxes and products alike

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = called(func)
        if name in LOOKS:
            if name in NUMBERS:
                self._read(name, args)
                self.mixing.add(self._here())
            return func(*args, **kwargs)
        if name == "scaled_dot_product_attention":
            return self._fused(args, kwargs)
        if name == "multi_head_attention_forward":
            return self._multi_head(func, args, kwargs)
        given = args if self.flow is None else self.flow.before(name, args)
        result = func(*args, **kwargs)
        follow(self.positions, name, func, args, kwargs, result)
        if self.flow is not None:
            follow_on(self.flow, name, func, args, kwargs, result, given)
        if self.where is not None and not self._keeps_rows(name, args, kwargs, result):
            self.mixing.add(self.where())
        if name in MATRICES:
            self._matrix(name, args, kwargs, result)
        elif name == "softmax":
            self._softmax(args, kwargs, result)
        elif name in MOVES or name in SAME:
            self._carry(name, func, args, kwargs, result)
        elif name in POINTWISE:
            self._change(name, args, kwargs, result)
        elif name in JOINS:
            self._join(func, args, kwargs, result)
        else:
            self._lose(name, args, kwargs, result)
        return result

    def refused(self) -> list[Refused]:
        """Attention that was seen and not completed, and what became of it."""
        lost = [
            Refused(p.order, p.where, p.fate or "its output never reaches an output matrix", p.owners.tgt, p.owners.src)
            for p in self.pieces
            if p.fate or p.out is None
        ]
        cut_short = {reader.out for reader in self.readers if not reader.composable and reader.length()}
        lost += [
            Refused(p.order, p.where, "another matrix follows torch's multi-head attention", p.owners.tgt, p.owners.src)
            for p in self.pieces
            if p.out in cut_short
        ]
        idle = [
            Refused(s.order, s.where, "its softmax does not multiply the values in one product that can be read")
            for s in self.softmaxes
            if s.read and not s.used and (not s.is_router or "att" in s.where.lower())
        ]
        return lost + idle

    def followed(self) -> dict[str, int]:
        """For each output matrix, how many further matrices follow it before anything else does."""
        return {reader.out: length for reader in self.readers if reader.composable and (length := reader.length())}

    def read_on(self) -> dict[str, int]:
        """The same, whatever module the further matrices stand in."""
        return {reader.out: length for reader in self.readers if (length := reader.length(anywhere=True))}

    def _softmax(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        source = _mark(args[0] if args else kwargs.get("input"))
        track = self.positions.track(result)
        scores = track is not None and track.rows is not None and track.columns is not None
        softmax = Softmax(next(self.order), self._here(), is_router=source.linear and not scores)
        if self.softmaxes:
            self.softmaxes[-1].scores = None
        if scores and self.scores:
            softmax.scores = args[0] if args else kwargs.get("input")
        self.softmaxes.append(softmax)
        _set(result, Mark(softmax=softmax))

    def _matrix(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> None:
        operands = args[1:] if name == "einsum" else args
        operands = operands[0] if operands and isinstance(operands[0], (list, tuple)) else operands
        if name in PRODUCTS and len(operands) == 2:
            for at, operand in enumerate(operands):
                softmax = _mark(operand).softmax
                if softmax is not None:
                    softmax.read = True
                product = as_product(name, args, at) if softmax else None
                if softmax and product is not None:
                    owners = self._owners(operand, operands[1 - at], product)
                    if (softmax.is_router and owners.keys is None) or not owners.among_tokens:
                        softmax.is_router = True
                        continue
                    softmax.used = True
                    scores, softmax.scores = softmax.scores, None
                    if scores is not None and scores.shape == operand.shape:
                        both = (scores, operands[1]) if at == 0 else (operands[0], scores)
                        like = as_product(name, (args[0], *both) if name == "einsum" else both, at)
                        product = replace(product, scores=None if like is None else like.weights)
                    self._begin(product, result, owners)
                    return
        self._count(name, operands, kwargs)
        for operand in (*operands, *kwargs.values()):
            mark = _mark(operand)
            if mark.pending is not None:
                self._compose(name, args, kwargs, mark, result)
                return
            if mark.pieces:
                self._project(name, args, kwargs, mark, result)
                return
            if mark.reader is not None:
                fixed = self._is_fixed(operand, (*operands, *kwargs.values()))
                mine = Mark(linear=True, reader=mark.reader.matrix(self._here(), fixed))
                _set(result, mine)
                return
        if name not in PRODUCTS or any(isinstance(operand, torch.nn.Parameter) for operand in operands):
            _set(result, Mark(linear=True))

    def _is_fixed(self, operand: Tensor, factors: tuple[Any, ...]) -> bool:
        """Whether the other factors of a product come from no input: parameters, buffers, what is computed of them."""
        return all(self._is_constant(factor) for factor in factors if factor is not operand)

    def _count(self, name: str, operands: Any, kwargs: dict[str, Any]) -> None:
        at = 2 if name == "addmm" else 1
        matrix = operands[at] if len(operands) > at else kwargs.get("weight")
        if isinstance(matrix, torch.nn.Parameter):
            self.ran[self.names.get(matrix.data_ptr(), "")] += 1

    def _owners(self, weights: Tensor, values: Tensor, product: Product) -> Owners:
        """Whose positions the queries and the keys of a product are, as far as they can be followed."""
        asked, answered = self.positions.track(weights), self.positions.track(values)
        fields = () if asked is None else (asked.rows, asked.columns)
        fields = [f for f in fields if f is not None and f.codes.shape[product.weight_axes[1]] == 1]
        queries = next((f for f in fields if f.codes.shape[product.weight_axes[0]] > 1), None)
        if queries is None and fields and weights.shape[product.weight_axes[0]] == 1:
            queries = fields[0]
        keys = None if answered is None else answered.rows
        of_one = keys is not None and keys.codes.shape[product.value_axes[0]] == 1 < values.shape[product.value_axes[0]]
        if keys is not None and (of_one or keys.codes.shape[product.value_axes[1]] > 1):
            keys = None
        nowhere: frozenset[str] = frozenset()
        side = nowhere if asked is None else asked.sides[product.query_side] if asked.sides else asked.origins
        owners = self._owned(queries, keys, side, nowhere if answered is None else answered.origins)
        of_weights = isinstance(values, torch.nn.Parameter) or (
            answered is not None and answered.rows is not None and answered.rows.rank == 2 and not answered.origins
        )
        aside = of_one or (of_weights and owners.tgt != (VIRTUAL,))
        return replace(owners, among_tokens=False) if aside else owners

    def _owned(self, queries: Any, keys: Any, tgt: frozenset[str], src: frozenset[str]) -> Owners:
        return Owners(queries, keys, self.positions.names(queries, tgt), self.positions.names(keys, src))

    def _begin(self, product: Product, context: Tensor, owners: Owners) -> None:
        lead, tgt, head_dim = *product.weights.shape[:2], product.values.shape[2]
        seen = Seen(next(self.order), owners.tgt, owners.src)
        piece = Piece(seen.order, self._here(), self.count, lead * tgt * head_dim, product, seen, owners)
        self.count += piece.size
        if self.flow is not None:
            self.flow.release()
        self.pieces.append(piece)
        self.seen.append(seen)
        arrange, device = product.arrange, context.device

        def way(numbers: Numbers) -> Tensor:
            return arrange(numbers.product(lead, tgt, head_dim, piece.start, device))

        _set(context, Mark(pieces=(piece,), trail=Trail((product.form, lead, tgt, head_dim), (way,))))

    def _project(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], mark: Mark, result: Tensor) -> None:
        projection = as_projection(name, args, kwargs)
        if mark.statistic is not None:
            return self._fail(mark, f"a statistic of its output enters '{name}'")
        if projection is None or mark.trail is None:
            return self._fail(mark, f"its output enters '{name}', which is not a plain matrix")
        out = self._name(projection.matrix)
        taken = [piece for piece in mark.pieces if piece.out is not None]
        if taken:
            return self._fail(mark, f"its output is read by two matrices, '{taken[0].out}' and '{out}'")
        if any(piece.product is None for piece in mark.pieces):
            return None
        try:
            terms = tuple(self._parts(mark.pieces, term, projection) for term in mark.trail.terms)
        except LayoutError as error:
            return self._fail(mark, f"before the output matrix '{out}' {error}")
        if {piece for parts in terms for part in parts for piece in part.pieces} != set(mark.pieces):
            return self._fail(mark, f"before the output matrix '{out}' part of its output is lost")
        pending = Pending(mark.pieces, terms, out, self.chains.get(out, 0))
        for piece in mark.pieces:
            piece.out = out
        if pending.left:
            return self._follow_rows(pending, result)
        reader = Reader(out, mark.pieces[0].where, self._here())
        self.readers.append(reader)
        _set(result, Mark(linear=True, reader=reader))
        return self._complete(pending, result)

    def _name(self, matrix: Tensor) -> str:
        """The name of a matrix of the model; "" for one that was made from the inputs."""
        track = self.positions.track(matrix)
        return self.names.get(matrix.data_ptr(), "") or ("" if track is not None and track.origins else COMPUTED)

    def _follow_rows(self, pending: Pending, result: Tensor) -> None:
        """The rows that an output matrix wrote, numbered cell by cell until the next matrix reads them."""
        shape, device = tuple(result.shape), result.device
        trail = Trail(("rows", shape), (lambda _: torch.arange(result.numel(), device=device).view(shape),))
        _set(result, Mark(pending=pending, trail=trail))

    def _compose(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], mark: Mark, result: Tensor) -> None:
        """One more of the matrices that follow an output matrix: with it they are one matrix."""
        projection, pending = as_projection(name, args, kwargs), mark.pending
        assert pending is not None
        if projection is None or mark.trail is None:
            return self._fail(Mark(pieces=pending.pieces), f"its output enters '{name}', which is not a plain matrix")
        rows = projection.rows(mark.trail.replay(Serial()))
        if not torch.equal(rows.flatten(), torch.arange(rows.numel(), device=rows.device)):
            return self._fail(Mark(pieces=pending.pieces), "its output is moved between two matrices")
        longer = composed(pending, projection, self._name(projection.matrix))
        if longer.left:
            return self._follow_rows(longer, result)
        _set(result, Mark(linear=True))
        return self._complete(longer, result)

    def _complete(self, pending: Pending, result: Tensor) -> None:
        pieces = pending.pieces
        try:
            block = together(
                [[assemble(part, result, self.positions, out=pending.out) for part in parts] for parts in pending.terms]
            )
            rows = None if self.flow is None else rows_of(pending.terms[0][0], result, self.positions)
        except LayoutError as error:
            return self._fail(Mark(pieces=pieces), f"before the output matrix '{pending.out}' {error}")
        for piece in pieces:
            piece.product, piece.seen.block = None, pieces[0].order
        return self._hand_over(replace(block, seen=self.seen), result, rows, pending.terms[0][0].projection.added)

    def _hand_over(self, block: Attended, result: Tensor, rows: Tensor | None, added: Tensor | None = None) -> None:
        """At once, or when what is asked for of its way to the next block is there."""
        if self.flow is None:
            self._hand_out(block)
        else:
            self.flow.begin(block, result, rows, added)

    def _hand_out(self, block: Attended) -> None:
        """Whatever precision the caller's autocast gives the model, the algebra is done in that of its numbers."""
        with torch.autocast(block.output.device.type, enabled=False):
            self.on_block(block)

    def _parts(self, pieces: tuple[Piece, ...], trail: Trail, projection: Projection) -> tuple[Part, ...]:
        """Layers are alike, so one layer's serial numbers serve all that went the same way; factors are its own."""
        key = None if trail.key is None else (trail.key, projection.form)
        known = self.layouts.get(key)
        found = layouts_of(pieces, trail.replay(Serial()), projection) if known is None else [(pieces, known)]
        if key is not None:
            self.layouts[key] = found[0][1]
        scaling, changed = folded(trail, projection)
        return tuple(Part(here, layouts, changed, scaling) for here, layouts in found)

    def _fused(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        call = dict(zip(SCALED, args, strict=False)) | kwargs
        scores, weights, values = attention_weights(**call)
        context = torch.matmul(weights, values)
        product, masked = (as_product("matmul", (maps, values), 0) for maps in (weights, scores))
        assert product is not None
        assert masked is not None
        product = replace(product, scores=masked.weights if self.scores else None)
        asked, answered = (self.positions.track(call[side]) for side in ("query", "value"))
        queries, keys = (self.positions.along(call[side], weights.shape) for side in ("query", "value"))
        nowhere: frozenset[str] = frozenset()
        origins = (nowhere if track is None else track.origins for track in (asked, answered))
        self._begin(product, context, self._owned(queries, keys, *origins))
        everyone = [self.positions.track(call[side]) for side in ("query", "key", "value")]
        self.positions.set(context, Track(queries, self.positions.union(everyone)))
        return context

    def _multi_head(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result, block, call = multi_head(func, args, kwargs)
        if self.flow is not None:
            self.flow.note_read([call[side] for side in ("query", "key", "value")])
        tracks = [self.positions.track(call[side]) for side in ("query", "key", "value")]
        output = result[0]
        if tracks[0] is not None:
            self.positions.set(output, Track(tracks[0].rows, self.positions.union(tracks)))
        nowhere: frozenset[str] = frozenset()
        queries, keys = (None if t is None else t.rows for t in (tracks[0], tracks[2]))
        origins = (nowhere if t is None else t.origins for t in (tracks[0], tracks[2]))
        owners = self._owned(queries, keys, *origins)
        seen = Seen(next(self.order), owners.tgt, owners.src)
        piece = Piece(seen.order, self._here(), 0, 0, None, seen, owners)
        if self.flow is not None:
            self.flow.release()
        self.pieces.append(piece)
        self.seen.append(seen)
        if block is None:
            piece.fate = "torch's multi-head attention adds positions of its own"
            return result
        piece.out = self.names.get(block.out_weight.data_ptr(), "")
        self.ran[piece.out] += 1
        seen.block = piece.order
        reader = Reader(piece.out, piece.where, piece.where, composable=False)
        self.readers.append(reader)
        _set(output, Mark(linear=True, reader=reader))
        tgt, src = (
            self._axis(names, size, self.positions.sequences(call[side], size))
            for names, size, side in (
                (owners.tgt, block.weights.shape[2], "query"),
                (owners.src, block.weights.shape[3], "value"),
            )
        )
        whole = replace(block, order=piece.order, where=piece.where, out=piece.out, tgt=tgt, src=src, seen=self.seen)
        rows = torch.arange(output[..., 0].numel(), device=output.device).view(output.shape[:-1]).mT
        self._hand_over(whole, output, rows)
        return result

    def _axis(self, names: tuple[str, ...], size: int, codes: Tensor | None) -> Axis:
        turned = codes is not None and self.positions.order(codes) is not None
        reason = "stand in another order than the input" if turned else None
        return Axis(names, size, codes, self.positions.streams, reason)

    def _carry(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """A call that keeps or moves the numbers of its first operand."""
        operand = args[0] if args else kwargs.get("input")
        mark = _mark(operand)
        if mark is NOTHING or operand is None:
            return
        if name in SAME or mark.trail is None:
            _set(result, mark)
        else:
            _set(result, replace(mark, trail=mark.trail.moved(func, name, operand, args, kwargs)))

    def _change(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """A call that computes cell by cell."""
        if self._descend(name, args, kwargs, result):
            return
        for operand in (*args, *kwargs.values()):
            mark = _mark(operand)
            if mark is NOTHING:
                continue
            if mark.softmax is not None:
                mark.softmax.read, mark.softmax.scores = True, None
            if mark.reader is not None:
                mark.reader.other(is_sum=name.strip("_") in SUMS)
            if mark.pending is not None:
                self._fail(Mark(pieces=mark.pending.pieces), f"its output is changed by '{name}' between two matrices")
            elif isinstance(result, Tensor) and result.shape == operand.shape:
                _set(result, replace(mark, reader=None))
            return

    def _join(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> None:
        parts = args[0] if args else kwargs.get("tensors", ())
        marks = [_mark(part) for part in parts]
        pieces = tuple(dict.fromkeys(piece for mark in marks for piece in mark.pieces))
        for mark in marks:
            if mark.reader is not None:
                mark.reader.other()
        if pieces:
            options = {key: value for key, value in kwargs.items() if key != "tensors"}
            shapes = [part.shape for part in parts]

            def joined(numbers: Numbers) -> Tensor:
                cells = [
                    numbers.elsewhere(shape, result.device) if mark.trail is None else mark.trail.replay(numbers)
                    for shape, mark in zip(shapes, marks, strict=True)
                ]
                return func(cells, *args[1:], **options)

            _set(result, Mark(pieces=pieces, trail=Trail.joined(joined, [mark.trail for mark in marks])))
        elif marks and all(mark.linear for mark in marks):
            _set(result, Mark(linear=True))

    def _lose(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """A call that is none of the known ones: an attention output ends here; a router's choice goes on."""
        for operand in args:
            mark = _mark(operand)
            if mark.softmax is not None:
                mark.softmax.read = True
            if mark.reader is not None:
                mark.reader.other()
            if mark.pending is not None and self.where is not None:
                self._fail(Mark(pieces=mark.pending.pieces), self._passes(name))
        if not self._descend(name, args, kwargs, result) and (
            args and _mark(args[0]).linear and not isinstance(result, (str, bytes))
        ):
            _set(result, Mark(linear=True))

    def _descend(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> bool:
        """A call that computes with an attention output: what its result is, or why the output is lost."""
        marks = [_mark(operand) for operand in tensors_in((args, kwargs))]
        pieces = tuple(dict.fromkeys(piece for mark in marks for piece in mark.pieces))
        if not pieces:
            return False
        if name in POINTWISE:
            for reader in [mark.reader for mark in marks if mark.reader is not None]:
                reader.other(is_sum=name.strip("_") in SUMS)
        written = kwargs.get("out", args[0] if args and is_in_place(name) else None)
        found = None
        if written is None or _mark(written).pieces:
            found = descended(name, args, kwargs, result, _label, self._is_constant, self._is_in_row(args, result))
        read = next((piece.read for piece in pieces if piece.read is not None), None)
        if isinstance(found, Trail) and read is not None:
            self._fail(Mark(pieces=pieces), f"its output is changed by '{name}' after '{read}' read its numbers")
        elif found is not None:
            trail, statistic = (found, None) if isinstance(found, Trail) else (None, found)
            _set(result, Mark(pieces=pieces, trail=trail, statistic=statistic))
        elif name in POINTWISE:
            reason = f"its output is changed by '{name}' before any output matrix: a gate of itself or a sum"
            self._fail(Mark(pieces=pieces), reason)
        elif self.where is not None:
            self._fail(Mark(pieces=pieces), self._passes(name))
        else:
            self._read(name, args)
        return True

    def _keeps_rows(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> bool:
        """Whether a call computes each position from that position alone, or from no input at all."""
        if all(self._is_constant(operand) for operand in tensors_in((args, kwargs))):
            return True
        track = self.positions.track(result)
        return name in IN_ROW and track is not None and track.rows is not None and track.rows.codes.shape[-1] == 1

    def _passes(self, name: str) -> str:
        return f"its output passes through '{name}' in '{self._here()}' before any output matrix"

    def _read(self, name: str, args: tuple[Any, ...]) -> None:
        for piece in [piece for operand in tensors_in(args) for piece in _mark(operand).pieces]:
            piece.read = name

    def _is_constant(self, operand: Any) -> bool:
        """Whether something comes from no input: a number, a parameter, what is computed of them."""
        return not isinstance(operand, Tensor) or (track := self.positions.track(operand)) is None or not track.origins

    def _is_in_row(self, args: tuple[Any, ...], result: Any) -> bool:
        """Whether the positions of the first operand are still told apart in the result."""
        first = next(tensors_in(result), None)
        before, after = (None if t is None else self.positions.track(t) for t in (next(tensors_in(args), None), first))
        return before is None or before.rows is None or (after is not None and after.rows is not None)

    def _fail(self, mark: Mark, fate: str) -> None:
        for piece in mark.pieces:
            piece.fate = piece.fate or fate
            piece.product = None

    def _here(self) -> str:
        return self.where() if self.where is not None else ""


NOTHING = Mark()


def _mark(tensor: Any) -> Mark:
    return getattr(tensor, "_normlens", NOTHING) if isinstance(tensor, Tensor) else NOTHING


def _label(operand: Any) -> Trail | Statistic | None:
    mark = _mark(operand)
    return mark.statistic or (mark.trail if mark.pieces else None)


def _set(result: Any, mark: Mark) -> None:
    """Mark a result, or each tensor of a tuple of results."""
    if isinstance(result, Tensor):
        if not isinstance(result, torch.nn.Parameter):
            result._normlens = mark  # pyright: ignore
    elif isinstance(result, Iterable):
        for index, part in enumerate(result):
            _set(part, mark if mark.trail is None else replace(mark, trail=mark.trail.part(index)))
