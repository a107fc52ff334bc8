"""From what was followed of a block to numbers by (batch, tgt): the steps its parts go through, and what joins them.

Every term is sent through its steps again, and all of them together must be what the model computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from normlens.algebra import Again, FeedForward, Mixture, Piece, RowStep, Stage
from normlens.capture.compare import relative_error, tolerance
from normlens.capture.labels import Active, Followed, Linear, Place, Step, Term
from normlens.capture.paths import ADDED, RERUN, Path, Scope, paths
from normlens.capture.routed import PathError as PathError
from normlens.capture.routed import is_routed, maybe, mixtures, one, routed_value, single

MIXTURES = 4  # of all rows, to compare sums with: one alone might hardly hold a row
JOINING = ("feedforward", "other", "companion", "stranger")  # what is added to the sum with the residual
OWN = ("residual", "companion", "stranger")  # what a token adds of its own


def stage(followed: Followed, path: Path, scope: Scope, *, one_side: bool = True) -> Stage:
    """One scope of a block in one pass, as numbers."""
    number = path.numbers[scope]
    found = next(((state, value) for state, value in followed.states if state.number == number), None)
    if found is None:
        raise PathError("the sum, norm or feed-forward block behind it was not reached")
    state, value = found
    if state.spelling != path.spellings[scope]:
        raise PathError("what follows it is put together in another way than on the probe")
    try:
        return _Rows(followed, one_side).stage(state, value, scope)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:  # a form nobody foresaw
        raise PathError(f"its terms cannot be put together ({type(error).__name__})") from error


def proved_paths(blocks: Sequence[Followed]) -> dict[int, Path]:
    """The paths of a pass, each scope proved; one whose terms do not add up is refused."""
    found = paths(blocks)
    for followed in blocks:
        path = found[followed.order]
        allowed = tolerance(followed.output.dtype)
        for scope in list(path.numbers):
            try:
                error = stage(followed, path, scope).error
                reason = f"its terms rebuild it only to {error:.1e} (allowed {allowed:.0e})"
            except PathError as lost:
                error, reason = float("nan"), str(lost)
            if error <= allowed:
                path.errors[scope] = error
            else:
                path.reasons[scope] = reason
                del path.numbers[scope]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Tensors of a model, with the positions of the block as (batch, tgt)."""

    followed: Followed
    one_side: bool  # keys are the same tokens as queries
    kept: Float[Tensor, "batch tgt 1"] | None = None  # 0 for positions that the model leaves out behind it; None: none
    known: dict[int, RowStep] = field(default_factory=dict)  # steps as rows, by the identity of the step

    def stage(self, state: Linear, value: Tensor, scope: Scope) -> Stage:
        return replace(self, kept=self.remaining(state.place)).of(state, value, scope)

    def of(self, state: Linear, value: Tensor, scope: Scope) -> Stage:
        whole = self.placed(value, state.place)
        error = self.error(state.terms, whole)
        terms = [term for term in state.terms if not _left_out(term, scope)]
        joined = [term for term in terms if term.source.network is not None]
        layers: list[FeedForward | Mixture] = [self.feedforward(term) for term in joined if not is_routed(term)]
        layers += mixtures(self, [term for term in joined if is_routed(term)])
        for layer in layers:
            pairs = layer.rebuilt()
            pairs = pairs if isinstance(layer, Mixture) else [(self.masked(anew), seen) for anew, seen in pairs]
            error = max([error, *(relative_error(anew, seen) for anew, seen in pairs)])
        found = self.put_together(terms, whole if len(terms) == len(state.terms) and not layers else None)
        again = None
        if scope == RERUN:
            again, far = self.again(terms, value, state.place)
            error = max(error, far)
        return replace(found, error=error, layers=tuple(layers), again=again)

    def again(self, terms: list[Term], value: Tensor, place: Place) -> tuple[Again, float]:
        """The state as a function of the attention output, and how far it is from the pass for that of the pass."""
        output = single(self.followed.output).flatten(0, 1)
        again = Again.of(tuple(map(self.piece, terms)), output)
        every = torch.arange(len(output), device=output.device)
        expected = self.placed(value, place).flatten(0, 1).to(output)
        return again, max(again.spread, relative_error(again(output, every), expected))

    def piece(self, term: Term) -> Piece:
        """A term with what it is made of."""
        steps, network = (*self.steps(term.steps), *self.end), term.source.network
        if network is not None:
            return Piece(steps, network=self.feedforward(term), reads=tuple(map(self.piece, network.reads.terms)))
        if term.source.kind == "attention":
            return Piece(steps)
        return Piece(steps, self.value(term).expand(self.shape).flatten(0, 1))

    def error(self, terms: Sequence[Term], whole: Tensor) -> float:
        """How far the terms are from the whole, relative, for a few random mixtures of its rows."""
        shape = MIXTURES, self.followed.rows.numel()
        mixed = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(whole)
        mixed = mixed if self.kept is None else mixed * self.kept.view(1, -1)
        rebuilt = sum((self.mixed(term, mixed) for term in terms), torch.zeros_like(mixed[:, :1]))
        return relative_error(rebuilt, mixed @ whole.expand(self.shape).flatten(0, 1))

    def mixed(self, term: Term, rows: Float[Tensor, "mixture row"]) -> Float[Tensor, "mixture model"]:
        """Mixtures of the rows of a term after its steps: what is a number of each row is one of its share."""
        steps = self.steps(term.steps) if not is_routed(term) else ()
        if is_routed(term) or not all(step.same or step.of_query for step in steps):
            return rows @ self.through(term).expand(self.shape).flatten(0, 1)
        for step in steps:
            rows = rows if step.same else rows * step.by.to(rows).view(1, -1)  # pyright: ignore
        value = self.value(term)
        vectors = rows @ value.flatten(0, 1) if value.ndim == 3 else rows.sum(dim=1, keepdim=True) * value
        for step in steps:
            vectors = step(vectors) if step.same else vectors
        return vectors

    def put_together(self, terms: list[Term], whole: Tensor | None = None) -> Stage:
        """Steps, what is the token's own and what is nobody's; feed-forward blocks aside. `whole`: where known."""
        (attention,) = (term for term in terms if term.source.kind == "attention")
        steps = self.steps(attention.steps)
        own = self.total(self.through(term) for term in terms if term.source.kind in OWN)
        unowned = self.total(self.through(term) for term in terms if term.source.kind == "constant")
        whole = self.through(attention) + own + unowned if whole is None else whole
        if self.followed.out_bias is not None:
            unowned = unowned + _along(single(self.followed.out_bias), steps)
        own, unowned, whole = map(self.masked, (own, unowned, whole))
        return Stage((*steps, *self.end), own, unowned, whole, one_side=self.one_side)

    def feedforward(self, term: Term) -> FeedForward:
        network = term.source.network
        assert network is not None
        assert isinstance(term.source.value, Tensor)
        units = None if isinstance(network.inner, Active) else network.inner.units
        active, up = network.first, units.of if isinstance(units, Active) else units
        return FeedForward(
            reads=self.put_together(list(network.reads.terms)),
            weight=single(one(active.of.weight)),
            bias=maybe(active.of.bias),
            sums=self.placed(active.of.value, active.of.place),
            active=self.placed(active.value, active.of.place),
            again=active.again,
            up_weight=None if up is None else single(one(up.weight)),
            up_bias=None if up is None else maybe(up.bias),
            up=None if up is None else self.placed(up.value, up.place),
            up_active=self.placed(units.value, units.of.place) if isinstance(units, Active) else None,
            up_again=units.again if isinstance(units, Active) else None,
            out_weight=single(one(network.weight)),
            out_bias=maybe(network.bias),
            inner=self.steps(network.steps),
            value=self.placed(term.source.value, term.source.place),
            steps=(*self.steps(term.steps), *self.end),
        )

    def remaining(self, place: Place) -> Tensor | None:
        """1 for the positions that are still there, 0 for those that the model has left out."""
        if place.rows is None or len(place.rows) == self.followed.rows.numel():
            return None
        there = torch.isin(self.followed.rows, place.rows.to(self.followed.rows))
        return None if bool(there.all()) else there[..., None].to(self.zeros())

    def masked(self, vectors: Tensor) -> Tensor:
        return vectors if self.kept is None else vectors * self.kept

    @property
    def end(self) -> tuple[RowStep, ...]:
        return () if self.kept is None else (RowStep("scale", self.kept),)

    @property
    def shape(self) -> torch.Size:
        return self.followed.output.shape

    def zeros(self) -> Tensor:
        return torch.zeros_like(single(self.followed.output))

    def total(self, terms: Iterable[Tensor]) -> Float[Tensor, "batch tgt model"]:
        """Terms added up; what is the same for every row is not written out row by row."""
        return sum(terms, single(self.followed.output).new_zeros(1, 1, 1)).expand(self.shape)

    def value(self, term: Term) -> Float[Tensor, "*batch_tgt model"]:
        """The vectors of a term, or the one that all rows have in common."""
        value = term.source.value
        if value is None:
            return single(self.followed.output)
        return self.placed(value, term.source.place) if isinstance(value, Tensor) else self.zeros()[0, 0] + value

    def through(self, term: Term) -> Float[Tensor, "*batch_tgt model"]:
        """What a term adds, after its steps."""
        return routed_value(self, term) if is_routed(term) else _along(self.value(term), self.steps(term.steps))

    def steps(self, steps: tuple[Step, ...]) -> tuple[RowStep, ...]:
        return tuple(map(self.step, steps))

    def step(self, step: Step) -> RowStep:
        """A step as rows have it, the same one for every term that goes through it."""
        if id(step) not in self.known:
            by = self.placed(step.by, step.place) if isinstance(step.by, Tensor) else step.by
            self.known[id(step)] = RowStep("centre" if step.kind == "centre" else "scale", by, step.normed)
        return self.known[id(step)]

    def placed(self, tensor: Tensor, place: Place) -> Tensor:
        """By (batch, tgt, …) and in single precision or better; what is the same for every row stays one row."""
        tensor = single(tensor)
        lone = self.followed.rows.numel() == 1 and tensor.ndim == len(place.lead) + 1
        if tensor.ndim < 2 or (all(size == 1 for size in tensor.shape[:-1]) and not lone):
            return tensor.reshape(-1) if tensor.ndim else tensor
        rows = tensor.expand(*place.lead, tensor.shape[-1]).reshape(-1, tensor.shape[-1])
        at = self.followed.rows
        if place.rows is None:
            in_place = self.followed.in_order and len(rows) == at.numel()
            return rows.view(*at.shape, -1) if in_place else rows[at]
        most = max(int(at.max()), int(place.rows.max())) + 1
        turned = torch.full((most,), -1, device=at.device)
        turned[place.rows] = torch.arange(len(place.rows), device=at.device)
        at = turned[at]
        gone = at < 0
        if not bool(gone.any()):
            return rows[at]
        if self.kept is None or bool((gone & self.kept[..., 0].bool()).any()):
            raise PathError("some of its positions are left out behind it")
        return rows[at.clamp_min(0)].masked_fill(gone[..., None], 0)


def _along(vectors: Tensor, steps: Sequence[RowStep]) -> Tensor:
    for step in steps:
        vectors = step(vectors)
    return vectors


def _left_out(term: Term, scope: Scope) -> bool:
    return scope not in ("joined", "output", ADDED, RERUN) and term.source.kind in JOINING
