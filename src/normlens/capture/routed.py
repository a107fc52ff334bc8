"""From what was followed of a mixture of experts to numbers: each expert, and the rows that were sent to it.

Every row keeps all that happens to it on its way: it is multiplied, moved, added into the row of its token, normed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from normlens.algebra import Expert, FeedForward, Mixture, RowStep, Stage
from normlens.capture.labels import Active, Followed, Hidden, Step, Term


class PathError(Exception):
    """A block came about in another way than on the probe."""


@runtime_checkable
class Placed(Protocol):
    """The positions of a block, and how a sum of terms becomes a stage of it."""

    @property
    def followed(self) -> Followed: ...
    def put_together(self, terms: list[Term]) -> Stage: ...
    def zeros(self) -> Tensor: ...


def is_routed(term: Term) -> bool:
    """Whether a term is there for some rows only, or for some several times."""
    network = term.source.network
    several = network is not None and (network.each is not None or network.first.of.each is not None)
    return several or term.source.place.base is not None or any(step.kind == "move" for step in term.steps)


def routed_value(rows: Placed, term: Term) -> Tensor:
    """What a routed term adds to every position, after its steps."""
    laid = _laid_out(rows, term, term.steps)
    vectors = _rows(term.source.value, term, laid.kept)
    for step in laid.steps:
        vectors = step(vectors)
    total = rows.zeros()
    return total.flatten(0, 1).index_add_(0, laid.at, vectors[:, 0].to(total)).view_as(total)


def mixtures(rows: Placed, terms: list[Term]) -> list[Mixture]:
    """The experts, by the state that they read."""
    reads: dict[Any, Stage] = {}
    experts: dict[Any, list[Expert]] = {}
    for term in terms:
        network = term.source.network
        assert network is not None
        read, tail = _without_routing(network.reads.terms)
        key = tuple((id(one.source), *map(id, one.steps)) for one in read)
        if key not in reads:
            reads[key] = rows.put_together(read)
        experts.setdefault(key, []).extend(_experts(rows, term, reads[key], tail))
    return [Mixture(stage, tuple(experts[key])) for key, stage in reads.items()]


def _without_routing(terms: tuple[Term, ...]) -> tuple[list[Term], tuple[Step, ...]]:
    """The terms of a state as they were before a router multiplied the rows it had picked, and what it did."""
    counts = [next((n for n, step in enumerate(term.steps) if step.place.base is not None), None) for term in terms]
    if all(count is None for count in counts):
        return list(terms), ()
    tails = [term.steps[count:] if count is not None else () for term, count in zip(terms, counts, strict=True)]
    if any(tail != tails[0] for tail in tails):
        raise PathError("an expert reads something besides the state")
    return [Term(term.source, term.steps[:count]) for term, count in zip(terms, counts, strict=True)], tails[0]


def _experts(rows: Placed, term: Term, reads: Stage, tail: tuple[Step, ...]) -> list[Expert]:
    network, value = term.source.network, term.source.value
    assert network is not None
    if network.steps:
        raise PathError("a norm goes over the units of an expert")
    laid, before = _laid_out(rows, term, term.steps), _laid_out(rows, term, tail).steps
    units = None if isinstance(network.inner, Active) else network.inner.units
    first, up = network.first, units.of if isinstance(units, Active) else units
    flat = {
        "sums": _rows(first.of.value, term, laid.kept),
        "active": _rows(first.value, term, laid.kept),
        "up": None if up is None else _rows(up.value, term, laid.kept),
        "up_active": _rows(units.value, term, laid.kept) if isinstance(units, Active) else None,
        "value": _rows(value, term, laid.kept),
    }
    none = torch.zeros(term.source.place.count, dtype=torch.long, device=laid.at.device)
    pairs = torch.stack([none if e is None else e.to(none) for e in (first.of.each, network.each)], dim=1)[laid.kept]
    found = []
    for into, out in pairs.unique(dim=0).tolist():
        here = ((pairs[:, 0] == into) & (pairs[:, 1] == out)).nonzero()[:, 0]
        at = laid.at[here]
        own = tuple(step.at_rows(here) for step in before)
        up_weight, up_bias = (None, None) if up is None else _matrix(up, into)
        weight, bias = _matrix(first.of, into)
        layer = FeedForward(
            reads=_rows_of(reads, at, own),
            weight=weight,
            bias=bias,
            again=first.again,
            up_weight=up_weight,
            up_bias=up_bias,
            up_again=units.again if isinstance(units, Active) else None,
            out_weight=single(one(network.weight, out)),
            out_bias=maybe(network.bias, out),
            steps=tuple(step.at_rows(here) for step in laid.steps),
            **{name: None if numbers is None else numbers[here] for name, numbers in flat.items()},  # pyright: ignore
        )
        found.append(Expert(at, own, layer))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _LaidOut:
    """The rows of a term that reach a position: which of them, where, and what multiplies them on the way."""

    kept: Tensor
    at: Tensor
    steps: tuple[RowStep, ...]


def _laid_out(rows: Placed, term: Term, steps: tuple[Step, ...]) -> _LaidOut:
    place, device = term.source.place, rows.followed.rows.device
    numbers = place.numbers().to(device)
    at = _inverse(rows.followed.rows.flatten(), int(numbers.max()) + 1)[numbers]
    position = torch.arange(place.count, device=device)
    found: list[tuple[Step, Tensor | None]] = []
    for step in steps:
        if step.kind == "move":
            assert isinstance(step.by, Tensor)
            position = torch.where(position >= 0, step.by.to(device)[position.clamp_min(0)], -1)
        elif isinstance(step.by, Tensor) and step.by.ndim > 1 and any(size != 1 for size in step.by.shape[:-1]):
            whole = step.place.base is None
            there = _inverse(step.place.numbers().to(device), int(numbers.max()) + 1)[numbers] if whole else position
            if not whole and int(position.max()) >= step.place.count:
                raise PathError("rows of experts are moved in a way that cannot be followed")
            found.append((step, there))
        else:
            found.append((step, None))
    kept = ((at >= 0) & (position >= 0)).nonzero()[:, 0]
    return _LaidOut(kept, at[kept], tuple(_row_step(step, there, kept) for step, there in found))


def _row_step(step: Step, there: Tensor | None, kept: Tensor) -> RowStep:
    if there is None:
        return RowStep(step.kind, single(step.by).reshape(-1) if isinstance(step.by, Tensor) else step.by)  # pyright: ignore
    assert isinstance(step.by, Tensor)
    by = single(step.by).expand(*step.place.lead, step.by.shape[-1]).reshape(-1, step.by.shape[-1])
    return RowStep(step.kind, by[there[kept]][:, None])  # pyright: ignore


def _inverse(numbers: Tensor, most: int) -> Tensor:
    """Where each number stands; -1 where it does not."""
    found = torch.full((max(most, int(numbers.max()) + 1),), -1, device=numbers.device)
    found[numbers] = torch.arange(len(numbers), device=numbers.device)
    return found


def _rows(value: Any, term: Term, kept: Tensor) -> Tensor:
    """(row, 1, …): the numbers of some rows of a term."""
    if not isinstance(value, Tensor):
        raise PathError("a number is added to what experts wrote")
    lead = term.source.place.lead
    return single(value).expand(*lead, value.shape[-1]).reshape(-1, value.shape[-1])[kept, None]


def _rows_of(stage: Stage, at: Tensor, steps: tuple[RowStep, ...]) -> Stage:
    """A state as the rows of an expert have it."""
    parts = [part.flatten(0, 1)[at, None] for part in (stage.own, stage.unowned, stage.whole)]
    for step in steps:
        parts = [step(part) for part in parts]
    own, unowned, whole = parts
    return Stage((), own, unowned, whole)


def _matrix(hidden: Hidden, number: int) -> tuple[Tensor, Tensor | None]:
    return single(one(hidden.weight, number)), maybe(hidden.bias, number)


def one(weight: Tensor | tuple[Tensor, ...], number: int = 0) -> Tensor:
    """One of several matrices, or the only one."""
    return weight[number] if isinstance(weight, tuple) else weight


def maybe(bias: Tensor | tuple[Tensor, ...] | None, number: int = 0) -> Tensor | None:
    return None if bias is None else single(one(bias, number))


def single(tensor: Tensor) -> Tensor:
    """In single precision or better."""
    return tensor.detach() if tensor.dtype in (torch.float32, torch.float64) else tensor.detach().float()
