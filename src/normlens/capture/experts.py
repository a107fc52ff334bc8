"""Follow a mixture of experts: rows of a state are picked, go through matrices of a stack, and are added into rows.

Nothing of a router is matched. What it computes is not to be split, and may do two things only: choose, and multiply
by a number of each row, which is taken from the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from normlens.capture.labels import (
    Active,
    Column,
    Gated,
    Hidden,
    Linear,
    Network,
    Normed,
    Picked,
    Place,
    Source,
    Step,
    Term,
)

GROUPED = frozenset("grouped_mm _grouped_mm grouped_mm_fallback".split())
BATCHED = frozenset("bmm matmul __matmul__".split())
ADDS = frozenset("index_add index_add_".split())
Block = Linear | Hidden | Active | Gated


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Matrices of the model, and which of them each row goes through."""

    matrices: tuple[Tensor, ...]  # (in, out)
    each: Tensor
    column: bool = False  # rows stand as columns


def pick(block: int, operand: Any, args: tuple[Any, ...], fixed: Callable[[Tensor], bool]) -> Picked | None:
    """What a router takes out of a stack of parameters."""
    if not isinstance(operand, Tensor) or not fixed(operand):
        return None
    index = args[1] if len(args) > 1 else None
    whole = isinstance(index, Tensor) and index.dtype in (torch.int64, torch.int32) and index.ndim < 2
    return Picked(block, operand.detach(), index.detach() if whole else None)  # pyright: ignore


def stack_of(
    name: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    label: Block | Column,
    picked: Callable[[Any], Picked | None],
    fixed: Callable[[Tensor], bool],
) -> Stack | None:
    """The matrices that the rows of the first operand go through, when they are several."""
    if name in GROUPED and not isinstance(label, Column):
        rows, weight, *more = args
        offsets, count = kwargs.get("offs", more[0] if more else None), rows.shape[0]
        if rows.ndim != 2 or not fixed(weight) or offsets is None or int(offsets[-1]) != count:
            return None
        each = torch.searchsorted(offsets.long(), torch.arange(count, device=weight.device), right=True)
        return Stack(weight.detach().unbind(0), each)
    if name not in BATCHED or any(not isinstance(one, Tensor) or one.ndim != 3 for one in args) or kwargs:
        return None
    column = isinstance(label, Column)
    weight, rows = (args[0], args[1]) if column else (args[1], args[0])
    chosen = picked(weight)
    if chosen is not None:
        if chosen.chosen is None or chosen.chosen.ndim != 1 or (not column and rows.shape[1] != 1):
            return None
        matrices, each = chosen.stack, chosen.chosen
    elif fixed(weight) and not column:
        matrices = weight.detach()
        each = torch.arange(len(weight), device=weight.device).repeat_interleave(rows.shape[1])
    else:
        return None
    return Stack((matrices.mT if column else matrices).unbind(0), each, column)


def through(stack: Stack, label: Block | Column, result: Tensor) -> Hidden | Linear | Column | None:
    """The units, or what a feed-forward block of each row writes."""
    inner = label.of if isinstance(label, Column) else label
    value = result.detach().squeeze(-1) if stack.column else result.detach()
    if len(stack.each) != place_of(inner).count or value.shape[:-1].numel() != len(stack.each):
        return None
    place = shaped(place_of(inner), tuple(value.shape[:-1]))
    found: Hidden | Linear
    if isinstance(inner, Linear):
        found = Hidden(inner, stack.matrices, None, value, place, stack.each)
    elif isinstance(inner, (Active, Gated)):
        network = Network(inner, stack.matrices, None, stack.each)
        found = Linear(
            inner.block, (Term(Source("feedforward", value.clone(), place, network)),), place, -1, ("feedforward",)
        )
    else:
        return None
    return Column(found) if stack.column else found


def biased(label: Hidden | Linear, bias: Picked, result: Tensor) -> Hidden | Linear | None:
    """The bias of each row's expert."""
    if bias.chosen is None or bias.stack.ndim != 2:
        return None
    alone = bias.chosen.ndim == 0
    vectors = bias.stack[bias.chosen] if alone else bias.stack.unbind(0)

    def fits(matrices: Hidden | Network) -> bool:
        if matrices.bias is not None or alone:
            return matrices.bias is None and matrices.each is None
        return matrices.each is not None and torch.equal(matrices.each, bias.chosen)  # pyright: ignore

    if isinstance(label, Hidden):
        return replace(label, bias=vectors, value=result.detach()) if fits(label) else None
    (term, *more), source = label.terms, label.terms[0].source
    if more or term.steps or source.network is None or not fits(source.network):
        return None
    network = replace(source.network, bias=vectors)
    return replace(
        label, terms=(Term(replace(source, value=result.detach().clone(), network=network, place=label.place)),)
    )


def may_be_routed(label: Linear, factor: Any, result: Any) -> bool:
    """Whether a number of each row that a router computed may multiply: what experts write, or the rows they read."""
    if not isinstance(factor, Tensor) or factor.ndim < 1 or factor.shape[-1] != 1 or not isinstance(result, Tensor):
        return False
    if result.shape[:-1] != torch.Size(label.place.lead):
        return False
    return label.place.base is not None if label.attends else written(label)


def written(label: Any) -> bool:
    """Whether it is what feed-forward blocks wrote, and nothing else."""
    return isinstance(label, Linear) and all(
        term.source.network is not None or term.source.kind == "constant" for term in label.terms
    )


# rows


def place_of(label: Any) -> Place:
    if isinstance(label, (Column, Normed)):
        return place_of(label.of)
    if isinstance(label, Active):
        return label.of.place
    return place_of(label.units) if isinstance(label, Gated) else label.place


def shaped(place: Place, lead: tuple[int, ...]) -> Place:
    """The same rows in the same order, in another shape."""
    return replace(place, lead=lead)


def picked_place(before: Place, rows: Tensor, lead: tuple[int, ...]) -> Place:
    """Rows of a place in another order, some of them perhaps left out or there several times."""
    every = len(rows) == before.count and len(rows.unique()) == len(rows)
    numbers = rows if before.rows is None else before.rows[rows]
    return Place(lead, numbers, before.base if every else before.base or before)


def remaining(place: Place) -> Place | None:
    """The rows that were picked as all there are, where each is there once: the model goes on without the others."""
    return replace(place, base=None) if place.rows is not None and len(place.rows.unique()) == place.count else None


def rows_moved(label: Any, rows: Tensor, place: Place, part: Tensor) -> Any:
    """The label of rows of a tensor that is part of a mixture; None when that is not followed."""
    if isinstance(label, Linear) and label.attends:
        late = any(step.place.base is not None for term in label.terms for step in term.steps)
        return None if late else replace(label, place=place)
    if isinstance(label, Linear):
        before = label.place
        if before.base is None:
            return replace(label, place=place) if place.base is None else None
        if len(rows.unique()) != len(rows):
            return None
        target = torch.full((before.count,), -1, device=rows.device)
        target[rows] = torch.arange(len(rows), device=rows.device)
        return replace(label, terms=label.stepped(Step("move", before, target)), place=place)
    if isinstance(label, Hidden):
        if any(step.place.base is not None for term in label.of.terms for step in term.steps):
            return None
        each = None if label.each is None else label.each[rows]
        return replace(label, value=part.detach(), place=place, each=each)
    if isinstance(label, Active):
        of = _units(label.of, rows, place)
        return None if of is None else Active(of, part.detach(), label.again)
    if isinstance(label, Gated):
        gate, units = (_units(half, rows, place) for half in (label.gate, label.units))
        return None if gate is None or units is None else Gated(gate, units)
    return None


def _units(label: Any, rows: Tensor, place: Place) -> Any:
    value = label.value.reshape(-1, label.value.shape[-1])[rows].view(*place.lead, -1)
    return rows_moved(label, rows, place, value)


def gathered(label: Linear, target: Tensor, place: Place) -> Linear:
    """Rows added into other rows: row r into row target[r]."""
    if label.place.base is None and place.rows is label.place.rows and len(target) == place.count:
        return replace(label, place=place)  # every row stays where it was
    return replace(label, terms=label.stepped(Step("move", label.place, target)), place=place)


def added_into(onto: Tensor, onto_label: Any, index: Tensor, label: Linear, lead: tuple[int, ...]) -> Linear | None:
    """`onto` with rows of feed-forward blocks added into its rows of these numbers."""
    if not written(label) or index.ndim != 1 or len(index) != label.place.count:
        return None
    place = _reached(label.place, index, lead)
    if place is None:
        return None
    moved = gathered(label, index, place)
    if isinstance(onto_label, Linear):
        if not written(onto_label) or not onto_label.place.same(place) or onto_label.place.base is not None:
            return None
        return replace(moved, terms=(*onto_label.terms, *moved.terms))
    return None if onto_label is not None or bool(onto.any()) else moved


def _reached(place: Place, target: Tensor, lead: tuple[int, ...]) -> Place | None:
    """Where rows stand once row r is added into row target[r]; None when rows of different tokens would be added."""
    base, rows, count = place.base, _numbers(place, target.device), Place(lead).count
    if base is not None and base.count == count and torch.equal(_numbers(base, rows.device)[target], rows):
        return shaped(base, lead)
    numbers = torch.full((count,), -1, device=rows.device)
    numbers[target] = rows
    if not torch.equal(numbers[target], rows) or bool((numbers < 0).any()):
        return None
    if base is not None:
        return Place(lead, numbers, base)
    return Place(lead, None if torch.equal(numbers, torch.arange(count, device=rows.device)) else numbers)


def set_rows(onto: Tensor, onto_label: Any, index: Tensor, label: Linear, lead: tuple[int, ...]) -> Linear | None:
    """The same where rows are written that were nothing."""
    if bool(onto.reshape(-1, onto.shape[-1])[index].any()) or len(index.unique()) != len(index):
        return None
    if isinstance(onto_label, Linear):
        for term in onto_label.terms:
            last = next((step.by for step in reversed(term.steps) if step.kind == "move"), None)
            if not isinstance(last, Tensor) or bool(torch.isin(last, index).any()):
                return None
    return added_into(onto, onto_label, index, label, lead)


def summed(label: Linear, dims: tuple[int, ...], result: Tensor) -> Linear | None:
    """The sum over axes of rows, such as the experts of one token."""
    place, lead = label.place, label.place.lead
    dims = tuple(dim % (len(lead) + 1) for dim in dims)
    if not written(label) or len(lead) in dims or not dims:
        return None
    kept = [1 if axis in dims else size for axis, size in enumerate(lead)]
    count = result.shape[:-1].numel()
    target = torch.arange(count, device=result.device).view(kept).expand(lead).flatten()
    after = _reached(place, target, tuple(result.shape[:-1]))
    return None if after is None else gathered(label, target, after)


def joined(labels: list[Any], dim: int, result: Tensor) -> Any:
    """Rows of several experts one below the other."""
    places = [place_of(label) for label in labels]
    if dim not in (0, -result.ndim) or any(len(place.lead) != 1 or place.base is None for place in places):
        return None
    numbers = torch.cat([_numbers(place, result.device) for place in places])
    place = Place(tuple(result.shape[:-1]), numbers, places[0].base)
    if all(written(label) for label in labels):
        terms, start = (), 0
        for label in labels:
            target = torch.arange(start, start + label.place.count, device=result.device)
            terms += gathered(label, target, place).terms
            start += label.place.count
        return replace(labels[0], terms=terms, place=place)
    if not all(isinstance(label, Hidden) and label.of.terms is labels[0].of.terms for label in labels):
        return None
    weights, biases, each = [], [], []
    for label in labels:
        several = isinstance(label.weight, tuple)
        own = (
            torch.zeros(label.place.count, dtype=torch.long, device=result.device) if label.each is None else label.each
        )
        each.append(own + len(weights))
        weights += label.weight if several else [label.weight]
        biases += [None] if label.bias is None else label.bias if several else [label.bias]
    if any(bias is None for bias in biases) and not all(bias is None for bias in biases):
        return None
    bias = None if biases[0] is None else tuple(biases)
    return Hidden(labels[0].of, tuple(weights), bias, result.detach(), place, torch.cat(each))


def columns_of(weight: Any, columns: Tensor) -> Any:
    """Some columns of a matrix, of each of several, or of a bias: as a view where they lie evenly."""
    if isinstance(weight, tuple):
        return tuple(columns_of(one, columns) for one in weight)
    if weight is None:
        return None
    first, last, step = int(columns[0]), int(columns[-1]), int(columns[1] - columns[0]) if len(columns) > 1 else 1
    even = step > 0 and torch.equal(columns, torch.arange(first, last + 1, step, device=columns.device))
    return weight[..., first : last + 1 : step] if even else weight[..., columns]


def _numbers(place: Place, device: torch.device) -> Tensor:
    return place.numbers().to(device)
