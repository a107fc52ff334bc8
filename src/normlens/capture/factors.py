"""What stands between α·v and its output matrix, as one formula: a factor per cell, and the rest inside the matrix.

    what arrives = (α·v ⊙ g) C + c        C, c from the weights alone

C holds the factors of the weights and the mean that a layer norm takes off; it becomes part of W_O, and c of b_O.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from normlens.capture.layout import Layout, LayoutError
from normlens.capture.operations import Projection
from normlens.capture.trail import Groups, Numbers, Ones, Shift, Trail

NORM = "a norm before its output matrix divides by statistics of the query, so a key has no f(x) of its own"
GATE = "a gate of the query before its output matrix multiplies each coordinate, so a key has no f(x) of its own"


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """What multiplies α·v on its way."""

    cells: Float[Tensor, "row channel"]  # as what the output matrix reads
    is_normed: bool


def folded(trail: Trail, projection: Projection) -> tuple[Scaling | None, Projection]:
    """The factors of the pass, and the output matrix with the factors of the weights in it."""
    if not (trail.is_scaled or trail.is_centred or trail.is_shifted):
        return None, projection
    device = projection.weight.device
    with torch.autocast(device.type, enabled=False):
        return _folded(trail, projection, lambda numbers: projection.rows(trail.replay(numbers)))


def _folded(
    trail: Trail, projection: Projection, arrived: Callable[[Numbers], Tensor]
) -> tuple[Scaling | None, Projection]:
    cells = arrived(Ones(is_fixed=False, is_after=False))
    before, after = (arrived(Ones(is_fixed=True, is_after=is_after)) for is_after in (False, True))
    weight = projection.weight
    if trail.is_centred:
        group, first = _pattern(arrived(Groups()))
        behind = arrived(Ones(is_fixed=False, is_after=True))
        if not bool((behind == behind[:, first]).all()):
            raise LayoutError("a gate follows a norm that takes the mean off")
        cells = cells * behind
        weight = _alike(before)[:, None] * _centred(_alike(after)[:, None] * weight, group)
    elif bool((before == before[:1]).all()):
        weight = before[0, :, None] * weight
    else:
        cells = cells * before
    bias = projection.bias
    if trail.is_shifted:
        shift = arrived(Shift())
        if not bool((shift == shift[:1]).all()):
            raise LayoutError("there is a sum with what differs among the queries, or a gate follows a constant")
        passed = (shift[0].double() @ projection.weight.double()).to(projection.weight)
        bias = passed if bias is None else passed + bias
    changed = replace(projection, weight=weight.to(projection.weight), bias=bias)
    plain = bool((cells == 1).all())
    return None if plain else Scaling(cells, trail.is_normed), changed


def laid_out(cells: Float[Tensor, "row channel"], layout: Layout) -> Float[Tensor, "batch head tgt head_dim"]:
    """Factors as the heads of a block."""
    return cells[layout.rows[:, :, None, None], layout.channels].transpose(1, 2)


def apart(gates: Float[Tensor, "batch head tgt head_dim"]) -> tuple[Tensor | None, Tensor | None]:
    """Scales, where a factor is the same for all coordinates of a head; else gates."""
    if bool((gates == gates[..., :1]).all()):
        return gates[..., 0], None
    return None, gates


def _alike(rows: Tensor) -> Float[Tensor, " channel"]:
    """What comes from the weights alone must be the same in every row."""
    if not bool((rows == rows[:1]).all()):
        raise LayoutError("a factor of a norm differs among the queries")
    return rows[0]


def _pattern(groups: Int[Tensor, "row channel"]) -> tuple[Int[Tensor, " channel"], Int[Tensor, " channel"]]:
    """Which channels share a mean, the same in every row; and for each channel the first that shares its own."""
    channels = torch.arange(groups.shape[1], device=groups.device)
    distinct, group = torch.unique(groups[0], return_inverse=True)
    first = torch.full_like(distinct, len(channels)).scatter_reduce_(0, group, channels, "amin")[group]
    alike = bool((groups == groups[:, first]).all()) and len(torch.unique(groups)) == len(groups) * len(distinct)
    if not alike:
        raise LayoutError("a norm takes means over several positions")
    return group, first


def _centred(weight: Float[Tensor, "channel model"], group: Int[Tensor, " channel"]) -> Float[Tensor, "channel model"]:
    """(I − 1 1ᵀ/n) W for every group of n channels."""
    wide = weight.double()
    sums = wide.new_zeros(int(group.max()) + 1, wide.shape[1]).index_add_(0, group, wide)
    return wide - (sums / torch.bincount(group).to(wide)[:, None])[group]
