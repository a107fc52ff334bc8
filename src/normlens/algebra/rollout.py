"""From the maps of single layers to one map through all of them.

    A_l = (1 - r) W_l + r I,  rows of W_l to 1        rollout = A_L ⋯ A_1        (Abnar and Zuidema, 2020)

r is the share of the residual: ½ for a map that knows nothing of it, 0 for one that holds it.
A decoder reads two texts. Its rows are shares of the source tokens and of those it was fed (Ferrando et al., 2022):

    M ← self M,  then  M ← [C R | 0] + own M        R: rollout of the encoder, C: cross-attention, own: what C leaves
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def one_map(maps: Float[Tensor, "batch *head tgt src"]) -> Float[Tensor, "batch tgt src"]:
    """The mean over heads, of absolute values where a map may be below 0."""
    maps = maps.abs() if bool((maps < 0).any()) else maps
    return maps.mean(dim=1) if maps.ndim == 4 else maps


def shares(maps: Float[Tensor, "batch tgt src"]) -> Float[Tensor, "batch tgt src"]:
    """Rows that add up to 1; a row of nothing stays one."""
    return maps / maps.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(maps.dtype).tiny)


def with_residual(
    rows: Float[Tensor, "batch tgt src"], share: float, sizes: Sequence[int]
) -> Float[Tensor, "batch tgt src"]:
    """(1 - r) W + r I over the tokens that are there; a token that nothing reaches otherwise keeps what it has."""
    there = _there(rows, sizes)
    empty = (rows.sum(dim=-1) == 0) & there
    own = torch.where(empty, 1.0 if share else 0.0, share) * there
    return rows * (1 - share) + torch.diag_embed(own.to(rows))


def rollout(maps: Sequence[Float[Tensor, "batch tgt src"]]) -> list[Float[Tensor, "batch tgt src"]]:
    """The product of the maps up to each layer, later layers left."""
    products = [maps[0]]
    for later in maps[1:]:
        products.append(torch.matmul(later, products[-1]))
    return products


def joint_rollout(
    encoder: Float[Tensor, "batch src src2"],
    decoder: Sequence[Float[Tensor, "batch tgt tgt2"]],
    cross: Sequence[Float[Tensor, "batch tgt src"]],
    sizes: Sequence[int],
) -> list[Float[Tensor, "batch tgt both"]]:
    """Shares of source tokens, then of those the decoder was fed, up to each layer.

    What the rows of `cross` lack to 1 is what a token keeps of itself. `sizes`: tokens the decoder was fed.
    """
    own = torch.diag_embed(_there(decoder[0], sizes).to(encoder))
    mixed = torch.cat([torch.zeros_like(cross[0]), own], dim=-1)
    found = []
    for attended, crossed in zip(decoder, cross, strict=True):
        mixed = torch.matmul(attended, mixed)
        kept = (1 - crossed.sum(dim=-1, keepdim=True)).clamp_min(0) * mixed
        read = torch.matmul(crossed, encoder)
        mixed = kept + torch.cat([read, torch.zeros_like(own)], dim=-1)
        found.append(mixed)
    return found


def side_by_side(
    maps: Float[Tensor, "batch tgt padded"], first: Sequence[int], second: Sequence[int], width: int
) -> Float[Tensor, "batch tgt both"]:
    """Columns of two padded texts, `width` of them the first's, so that each text's own follow without a gap."""
    moved = maps.new_zeros(*maps.shape[:2], max(a + b for a, b in zip(first, second, strict=True)))
    for row, (left, right) in enumerate(zip(first, second, strict=True)):
        moved[row, :, :left] = maps[row, :, :left]
        moved[row, :, left : left + right] = maps[row, :, width : width + right]
    return moved


def _there(rows: Tensor, sizes: Sequence[int]) -> Tensor:
    return torch.arange(rows.shape[1], device=rows.device)[None] < torch.tensor(sizes, device=rows.device)[:, None]
