"""The parts of an attention output whose queries gate each coordinate of the values before W_O.

    y_i = Σ_h Σ_j  α[h,i,j] · (g[h,i] ⊙ v_h(x_j)) W_O[h]  +  b_O

The contribution of a key depends on the query, so it is computed for every pair of them, a few queries at a time: with
W_O[h] = Rᵀ Qᵀ, whose Qᵀ changes no length, ‖(g ⊙ v) W_O[h]‖ = ‖(g ⊙ v) Rᵀ‖.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from normlens.algebra import span

CHUNK = 5 << 18  # numbers of (g ⊙ v) held at a time: five megabytes in single precision
CANCELLED = 0.05  # below this share of Σ_c ‖u_c W_c‖², single precision has too few digits left


def weighted_norms(
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
    gates: Float[Tensor, "batch head tgt head_dim"],
) -> Float[Tensor, "batch head tgt src"]:
    """‖α (g ⊙ v) W_O[h]‖: the contribution of each key to each query in one head."""
    exact = out_weight.mT.double()
    if out_weight.shape[1] < out_weight.shape[2]:
        exact = torch.linalg.qr(exact, mode="r").R
    triangle, norms = exact.to(values.dtype), torch.empty_like(weights)
    batch, head, tgt, src = weights.shape
    rows = max(1, CHUNK // max(1, src * values.shape[3]))
    for b in range(batch):
        for h in range(head):
            for top in range(0, tgt, rows):
                gate, value = gates[b, h, top : top + rows], values[b, h]
                part = _lengths(gate, value, triangle[h])
                if not _held(part, gate, value):
                    part = _lengths(gate.double(), value.double(), exact[h])
                norms[b, h, top : top + rows] = part
    return norms.mul_(weights).abs_()


def summed_norms(
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
    gates: Float[Tensor, "batch head tgt head_dim"],
) -> Float[Tensor, "batch tgt src"]:
    """‖Σ_h α_h (g_h ⊙ v_h) W_O[h]‖: the vectors of all heads are added before the norm is taken."""
    batch, _, tgt, src = weights.shape
    matrix = out_weight.flatten(0, 1)
    norms = weights.new_zeros(batch, tgt, src)
    keys = max(1, CHUNK // max(matrix.shape))
    rows = max(1, keys // max(1, src))
    for b in range(batch):
        for top in range(0, tgt, rows):
            tile = weights[b, :, top : top + rows]
            seen = tile.any(dim=1).any(dim=0).nonzero().squeeze(1)  # a causal query sees few
            for some in seen.split(keys):
                norms[b, top : top + rows, some] = _summed_tile(
                    tile[:, :, some], gates[b, :, top : top + rows], values[b][:, some], matrix
                )
    return norms


def _lengths(gate: Tensor, value: Tensor, triangle: Tensor) -> Float[Tensor, "tgt src"]:
    return ((gate[:, None] * value) @ triangle.mT).norm(dim=-1)


def _held(norms: Tensor, gate: Tensor, value: Tensor) -> bool:
    """Whether single precision held these norms: in range, or 0 because the gate or the value is 0."""
    if norms.dtype == torch.float64 or not norms.numel() or span.within(norms.square()):
        return True
    return span.within(norms.square().where(gate.any(dim=1)[:, None] & value.any(dim=1), 1.0))


def _summed_tile(weights: Tensor, gates: Tensor, values: Tensor, matrix: Tensor) -> Float[Tensor, "tgt src"]:
    """The norms of one tile; cells with digits that single precision loses are done again in double precision."""
    mixed = _mixed(weights, gates, values)
    norms = (mixed @ matrix).norm(dim=-1)
    if norms.dtype == torch.float64:
        return norms
    apart = mixed.square() @ matrix.square().sum(dim=1)
    right = (apart >= span.SMALLEST) & (apart <= span.LARGEST) & (norms.square() >= CANCELLED * apart)
    wrong = (~right & weights.any(dim=0)).nonzero()
    for cells in wrong.split(max(1, CHUNK // max(matrix.shape))):
        tgt, src = cells.T
        parts = weights[:, tgt, src].double()[..., None] * gates[:, tgt].double() * values[:, src].double()
        exact = (parts.transpose(0, 1).flatten(1) @ matrix.double()).norm(dim=-1)
        norms[tgt, src] = exact.to(norms.dtype)
    return norms


def _mixed(weights: Tensor, gates: Tensor, values: Tensor) -> Float[Tensor, "tgt src channel"]:
    """α_h (g_h ⊙ v_h) of all heads side by side."""
    scaled = weights.permute(1, 2, 0)[..., None] * values.transpose(0, 1)
    return (scaled * gates.transpose(0, 1)[:, None]).flatten(2)
