"""The parts of an attention output whose queries gate each coordinate of the values before W_O.

    y_i = Σ_h Σ_j  α[h,i,j] · (g[h,i] ⊙ v_h(x_j)) W_O[h]  +  b_O

The contribution of a key depends on the query, but every product of two contributions is one of what belongs to the
query and what belongs to the key, so no vector is built:

    (g_h ⊙ v_h) W_O[h] · (g_k ⊙ v_k) W_O[k] = Σ_cd (g_hc g_kd M_cd) (v_hc v_kd)        M = W_O[h] W_O[k]ᵀ

Gates, values and matrices are divided by their largest number, so that none of it leaves the range of single precision.
Cells with digits that cancel are done again with the vectors themselves, in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from normlens.algebra import span

CHUNK = 5 << 18  # numbers held at a time: five megabytes in single precision
ROWS = 128  # queries at a time: the keys that none of them sees are left out
CANCELLED = 0.05  # below this share of Σ_hc ‖u_hc W_hc‖², single precision has too few digits left


def weighted_norms(
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
    gates: Float[Tensor, "batch head tgt head_dim"],
) -> Float[Tensor, "batch head tgt src"]:
    """‖α (g ⊙ v) W_O[h]‖: the contribution of each key to each query in one head."""
    norms = torch.zeros_like(weights)
    for tile in _tiles(weights, values, out_weight, gates):
        for h in range(weights.shape[1]):
            squares, apart = tile.own(h)
            found = tile.norms(squares, tile.sizes[h])
            some = slice(h, h + 1)
            norms[tile.b, h, tile.rows, tile.keys] = tile.mended(found, squares, apart, some)
    return norms


def summed_norms(
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
    gates: Float[Tensor, "batch head tgt head_dim"],
) -> Float[Tensor, "batch tgt src"]:
    """‖Σ_h α_h (g_h ⊙ v_h) W_O[h]‖: the vectors of all heads are added before the norm is taken."""
    norms = weights.new_zeros(weights.shape[0], *weights.shape[2:])
    for tile in _tiles(weights, values, out_weight, gates):
        largest = tile.sizes.abs().amax(dim=0)
        sizes = tile.sizes / largest.where(largest > 0, 1.0)
        squares, apart = torch.zeros_like(largest), torch.zeros_like(largest)
        for h, size in enumerate(sizes):
            own, alone = tile.own(h)
            apart.addcmul_(size.square(), alone)
            if h:
                own = own.mul_(size).add_((tile.products(h) * sizes[:h]).sum(dim=0), alpha=2.0)
            squares.addcmul_(own, size if h else size.square())
        found = tile.norms(squares, largest)
        norms[tile.b, tile.rows, tile.keys] = tile.mended(found, squares, apart, slice(None))
    return norms


@dataclass(frozen=True, slots=True, eq=False)
class _Tile:
    """Some queries of one item of a batch, and the keys that they see. Numbers are divided by the largest of theirs."""

    b: int
    rows: slice
    keys: Int[Tensor, " src"]
    weights: Float[Tensor, "head tgt src"]  # α
    sizes: Float[Tensor, "head tgt src"]  # α and what gates, values and matrices were divided by, as shares of `unit`
    gates: Float[Tensor, "head tgt head_dim"]
    values: Float[Tensor, "head src head_dim"]
    matrix: Float[Tensor, "head head_dim model"]
    unit: float
    whole: tuple[Tensor, Tensor, Tensor]  # gates, values and matrices as they are

    def own(self, h: int) -> tuple[Float[Tensor, "tgt src"], Float[Tensor, "tgt src"]]:
        """‖u W‖² and Σ_c ‖u_c W_c‖² of one head, with u = g ⊙ v."""
        gate, value, lengths = self.gates[h], self.values[h], self.matrix[h].square().sum(dim=-1)
        pairs = self._pairs(h, slice(h, h + 1))
        folded = pairs.triu().mul_(2.0).sub_(torch.diag_embed(pairs.diagonal(dim1=1, dim2=2)))
        squares = _products(gate, gate[None], value, value[None], folded, step=-(-len(lengths) // 4))
        return squares[0], (gate.square() * lengths) @ value.square().mT

    def products(self, h: int) -> Float[Tensor, "head2 tgt src"]:
        """u_h W_h · u_k W_k for every head k before h."""
        before = slice(0, h)
        parts = self.gates[h], self.gates[before], self.values[h], self.values[before], self._pairs(h, before)
        return _products(*parts, step=None)

    def norms(self, squares: Tensor, sizes: Tensor) -> Float[Tensor, "tgt src"]:
        return (squares.clamp_min(0).sqrt_().mul_(sizes.abs()).double() * self.unit).to(squares.dtype)

    def mended(self, norms: Tensor, squares: Tensor, apart: Tensor, heads: slice) -> Float[Tensor, "tgt src"]:
        """The norms, those of cells whose digits single precision loses computed again."""
        wrong = ~((squares >= span.SMALLEST) & (squares >= CANCELLED * apart))
        if not bool(wrong.any()):
            return norms
        gates, values, matrix = (numbers[heads] for numbers in self.whole)
        there = (self.weights[heads] != 0) & gates.any(dim=-1)[..., None] & values.any(dim=-1)[:, None]
        wide = matrix.double().flatten(0, 1)
        for cells in (wrong & there.any(dim=0)).nonzero().split(max(1, CHUNK // max(wide.shape))):
            tgt, src = cells.T
            mixed = self.weights[heads, tgt, src].double()[..., None] * gates[:, tgt].double() * values[:, src].double()
            norms[tgt, src] = (mixed.transpose(0, 1).flatten(1) @ wide).norm(dim=-1).to(norms.dtype)
        return norms

    def _pairs(self, h: int, others: slice) -> Float[Tensor, "head2 head_dim head_dim"]:
        """W_h W_kᵀ."""
        return (self.matrix[h].double() @ self.matrix[others].double().mT).to(self.matrix.dtype)


def _tiles(weights: Tensor, values: Tensor, out_weight: Tensor, gates: Tensor) -> Iterator[_Tile]:
    gate, of_query = _divided(gates)
    value, of_key = _divided(values)
    matrix, of_head = _divided(out_weight.flatten(1))
    of_query = of_query.double() * of_head.double()[:, None]
    unit = float(of_query.amax()) or 1.0, float(of_key.amax()) or 1.0
    of_query, of_key = (of_query / unit[0]).to(weights.dtype), of_key / unit[1]
    matrix = matrix.view_as(out_weight)
    batch, _, tgt, _ = weights.shape
    for b in range(batch):
        for top in range(0, tgt, ROWS):
            rows = slice(top, top + ROWS)
            keys = weights[b, :, rows].any(dim=1).any(dim=0).nonzero()[:, 0]
            seen = weights[b, :, rows, keys]
            sizes = seen * of_query[b, :, rows, None] * of_key[b, :, None, keys]
            whole = gates[b, :, rows], values[b][:, keys], out_weight
            yield _Tile(
                b, rows, keys, seen, sizes, gate[b, :, rows], value[b][:, keys], matrix, unit[0] * unit[1], whole
            )


def _divided(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers by the largest of their last axis, and the largest."""
    largest = numbers.abs().amax(dim=-1)
    return numbers / largest.where(largest > 0, 1.0)[..., None], largest


def _products(
    gate: Float[Tensor, "tgt head_dim"],
    gates: Float[Tensor, "other tgt head_dim"],
    value: Float[Tensor, "src head_dim"],
    values: Float[Tensor, "other src head_dim"],
    pairs: Float[Tensor, "other head_dim head_dim"],
    *,
    step: int | None,
) -> Float[Tensor, "other tgt src"]:
    """Σ_cd (g_c g′_d M_cd) (v_c v′_d), some c at a time; with a `step` M is a triangle."""
    tgt, src, head_dim = len(gate), len(value), gate.shape[1]
    most = max(1, CHUNK // max(1, len(gates) * max(tgt, src) * head_dim))
    most = most if step is None else min(most, step)
    total = gate.new_zeros(len(gates), tgt, src)
    for start in range(0, head_dim, most):
        some, rest = slice(start, start + most), slice(0 if step is None else start, None)
        left = (gate[:, some, None] * gates[:, :, None, rest]).mul_(pairs[:, None, some, rest]).flatten(2)
        right = (value[:, some, None] * values[:, :, None, rest]).flatten(2)
        total.baddbmm_(left, right.mT)
    return total
