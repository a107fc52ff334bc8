"""Calls that move vectors, and calls that make a number of each: places and statistics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from normlens.capture import experts
from normlens.capture.following import Following, keeps_width, over_last
from normlens.capture.labels import (
    Active,
    Column,
    Flat,
    Halves,
    Hidden,
    Linear,
    Mean,
    Other,
    Picked,
    Place,
    Statistic,
)
from normlens.capture.vocabulary import ALIGNED, RESHAPES, TURNS

SPREADS = frozenset("var std norm vector_norm var_mean std_mean amax max amin logsumexp".split())


def moved(
    here: Following, label: Any, name: str, func: Any, operand: Tensor, args: tuple[Any, ...], kwargs: Any, result: Any
) -> Any:
    if label is None or isinstance(label, (Other, Statistic, Mean, Picked, Column)):
        return label if isinstance(label, (Other, Statistic)) else None
    if isinstance(label, Linear) and name in RESHAPES and result.ndim == 1:
        return Flat(label, operand.shape[-1])
    if isinstance(label, Flat):
        whole = name in RESHAPES and result.shape[-1] == label.width
        place = experts.shaped(label.of.place, tuple(result.shape[:-1]))
        return replace(label.of, place=place) if whole else None
    if isinstance(label, Hidden) and name in RESHAPES and result.shape[:-2] == operand.shape[:-1]:
        return Halves(label)
    if not isinstance(label, (Linear, Halves)) and (
        (name in TURNS and name != "unsqueeze") or (name in RESHAPES and not keeps_width(operand, result))
    ):
        return Other(label.block, f"through '{name}'")
    if isinstance(label, Halves) and operand.shape[:-2] != label.of.place.lead:
        return None
    units_on_two = isinstance(label, Halves)
    width = operand.shape[-1] * (operand.shape[-2] if units_on_two else 1)
    results = result if isinstance(result, (tuple, list)) else (result,)
    if (
        not units_on_two
        and (name in RESHAPES or name == "unsqueeze")
        and isinstance(result, Tensor)
        and result.ndim > 1
        and keeps_width(operand, result)
    ):
        return replaced(here, label, experts.shaped(experts.place_of(label), tuple(result.shape[:-1])), result, None)
    count = operand.numel() // max(1, width)
    words = [operand if a is operand else a for a in args]
    last = operand.shape[-2:] if units_on_two else operand.shape[-1:]
    lead = operand.shape[: operand.ndim - len(last)]
    numbers = torch.arange(count, device=operand.device).view(*lead, *(1 for _ in last)).expand(operand.shape)
    units = torch.arange(width, device=operand.device).view(last).expand(operand.shape)
    label = label.of if isinstance(label, Halves) else label
    try:
        turned, columns = (func(*(grid if w is operand else w for w in words), **kwargs) for grid in (numbers, units))
    except (RuntimeError, TypeError, IndexError):
        return None
    turned, columns = ((one if isinstance(one, (tuple, list)) else (one,)) for one in (turned, columns))
    for part, row, column in zip(results, turned, columns, strict=True):
        moved = part_of(here, label, part, row, column, width)
        here.put(part, moved or Other(label.block, f"through '{name}'"))
    return True


def part_of(here: Following, label: Any, part: Tensor, row: Tensor, column: Tensor, width: int) -> Any:
    """The label of a part, from the rows and columns of the whole that stand in it."""
    if part.ndim < 2 or not part.numel() or row.shape != part.shape:
        return None
    if bool((row != row[..., :1]).any()) or bool((column != column.reshape(-1, column.shape[-1])[0]).any()):
        return None
    rows, columns = row[..., 0].flatten(), column.reshape(-1, column.shape[-1])[0]
    before = experts.place_of(label)
    count = 1
    for size in before.lead:
        count *= size
    same = len(rows) == count and torch.equal(rows, torch.arange(count, device=rows.device))
    lead = tuple(part.shape[:-1])
    place = experts.shaped(before, lead) if same else experts.picked_place(before, rows, lead)
    whole = len(columns) == width and torch.equal(columns, torch.arange(width, device=columns.device))
    if not same:
        return experts.rows_moved(label, rows, place, part) if whole else None
    return replaced(here, label, place, part, None if whole else columns)


def replaced(here: Following, label: Any, place: Place, value: Tensor, columns: Tensor | None) -> Any:
    if isinstance(label, Linear):
        if columns is not None:
            return None
        return replace(label, place=place)
    if isinstance(label, Hidden):
        weight, bias = label.weight, label.bias
        if columns is not None:
            weight, bias = experts.columns_of(weight, columns), experts.columns_of(bias, columns)
        return Hidden(label.of, weight, bias, value.detach(), place, label.each)
    if columns is not None or not place.same(experts.place_of(label)):
        return None
    if isinstance(label, Active):
        hidden = replace(label.of, value=label.of.value.reshape(value.shape), place=place)
        return Active(hidden, value.detach(), label.again)
    return label


def statistic_of(
    here: Following, label: Other, name: str, args: tuple[Any, ...], kwargs: Any, operand: Tensor, result: Any
) -> Any:
    """A number of each row computed from a state is a statistic; anything else is something else."""
    if name in ("mean", "sum", *SPREADS) and not label.reason:
        if isinstance(result, Tensor) and over_last(args, kwargs, operand, result):
            return Statistic(label.block)
        if isinstance(result, (tuple, list)) and all(one.shape[-1:] in ((), (1,)) for one in result):
            return None
    if label.reason or name not in ALIGNED:
        return Other(label.block, label.reason or f"through '{name}'")
    return label
