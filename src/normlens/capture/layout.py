"""Find which (batch, head, position) each cell of a projection's input came from.

Between the product α·v and the output matrix a model only moves numbers around: it transposes, merges heads, joins
windows. The tap makes the same moves with a tensor of serial numbers; this module reads the serial numbers that arrive.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor


class LayoutError(Exception):
    """The attention output does not arrive at the projection as whole heads."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """How the flat axes of a product are (batch, head) and its output rows (batch, tgt)."""

    lead: Int[Tensor, "batch head"]  # which leading cell of the product holds this sequence and head
    rows: Int[Tensor, "batch tgt"]  # which row of the projection's input holds this position
    tgt: Int[Tensor, "batch tgt"]  # which query of the product that row is
    channels: Int[Tensor, "head head_dim"]  # which column of the projection's input holds this head's coordinate


def serial_numbers(lead: int, tgt: int, head_dim: int, *, start: int, device: torch.device) -> Tensor:
    """Number the cells of a product of shape (lead, tgt, head_dim), from `start`."""
    size = lead * tgt * head_dim
    return torch.arange(start, start + size, device=device).view(lead, tgt, head_dim)


def read_layout(serial: Int[Tensor, "row channel"], *, start: int, tgt: int, head_dim: int) -> Layout:
    """Read the layout off the serial numbers that reached the projection."""
    local = serial - start
    first, across = local[:, 0], local[0]
    if not bool((local == first[:, None] + (across - across[0])).all()):
        raise LayoutError("its cells are mixed across heads or positions")
    row_lead, row_tgt = first // (tgt * head_dim), first // head_dim % tgt
    channel_lead, channel_dim = across // (tgt * head_dim), across % head_dim
    if bool((across // head_dim % tgt != across[0] // head_dim % tgt).any()):
        raise LayoutError("one row of the projection reads several positions")
    heads = _in_order(channel_lead)
    channels = torch.full((len(heads), head_dim), -1, device=serial.device)
    channels[_position(heads, channel_lead), channel_dim] = torch.arange(len(across), device=serial.device)
    if bool((channels < 0).any()) or channels.numel() != len(across):
        raise LayoutError("heads reach the projection incomplete")
    batches = _in_order(row_lead)
    order = torch.argsort(_position(batches, row_lead) * tgt + row_tgt, stable=True)
    if len(order) % len(batches):
        raise LayoutError("sequences of the batch have different numbers of positions")
    rows = order.view(len(batches), -1)
    return Layout(
        lead=batches[:, None] + (heads - channel_lead[0])[None, :],
        rows=rows,
        tgt=row_tgt[rows],
        channels=channels,
    )


def _in_order(values: Tensor) -> Tensor:
    """Distinct values in the order in which they first appear."""
    distinct, inverse = torch.unique(values, return_inverse=True)
    first = torch.full((len(distinct),), len(values), device=values.device)
    first.scatter_reduce_(0, inverse, torch.arange(len(values), device=values.device), reduce="amin")
    return distinct[torch.argsort(first)]


def _position(haystack: Tensor, values: Tensor) -> Tensor:
    """Index of each value in `haystack`, which holds every value once."""
    ranked = torch.sort(haystack)
    return ranked.indices[torch.searchsorted(ranked.values, values)]
