"""Split an attention output into one vector per (head, source token), and measure the vectors.

An attention block writes, for each target position i,

    y_i = Σ_h Σ_j  α[h,i,j] · f_h(x_j)  +  b_O        f_h(x) = v_h(x) W_O[h]

so its output is already a sum; here its parts are kept apart. Nothing of size (head, tgt, src, model) is built:
‖α f‖ = |α|·‖f‖, and ‖Σ_h α_h f_h‖² = Σ_hk α_h α_k (f_h · f_k), which needs one small Gram matrix per source token.
Squares that single precision cannot hold are computed in double precision (see span.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from normlens.algebra import span

Fold = Callable[[Tensor], Tensor]  # a linear map of vectors, the same for every query
CHUNK = 5 << 18  # numbers of f(x) held at a time: five megabytes in single precision
TILE = 1 << 18  # cells (batch, tgt, src) summed at a time: they are gone over once per pair of heads
CANCELLED = 0.05  # below this share of Σ_h ‖α_h f_h‖², single precision has too few digits left


def transformed(
    values: Float[Tensor, "batch head src head_dim"], out_weight: Float[Tensor, "head head_dim model"]
) -> Float[Tensor, "batch head src model"]:
    """f_h(x_j) itself, model-sized: for those who asked for the vectors."""
    return torch.einsum("bhsd,hdm->bhsm", values, out_weight)


def gram(
    values: Float[Tensor, "batch head src head_dim"], out_weight: Float[Tensor, "head head_dim model"]
) -> Float[Tensor, "head head2 batch src"]:
    """f_h(x_j) · f_k(x_j) for every pair of heads and every source token. Its diagonal is ‖f_h(x_j)‖².

    In double precision where single precision cannot hold the squares.
    """
    return grams(values, out_weight, [None])[0][0]


def grams(
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
    folds: Sequence[Fold | None],
    diagonal: Float[Tensor, "batch head src"] | None = None,
) -> tuple[list[Float[Tensor, "head head2 batch src"]], Float[Tensor, "batch src model"] | None]:
    """The products of f_h(x_j) after each of these maps, and Σ_h α[h,j,j] f_h(x_j), f(x) computed once for all."""
    pairs, own = _grams(values, out_weight, folds, diagonal)
    lost = [at for at, one in enumerate(pairs) if not span.held(one.diagonal(dim1=0, dim2=1).mT, values, out_weight)]
    if lost:
        exact, _ = _grams(values.double(), out_weight.double(), [folds[at] for at in lost], None)
        for at, one in zip(lost, exact, strict=True):
            pairs[at] = one
    return pairs, own


def _grams(
    values: Tensor, out_weight: Tensor, folds: Sequence[Fold | None], diagonal: Tensor | None
) -> tuple[list[Tensor], Tensor | None]:
    batch, head, src, head_dim = values.shape
    flat = values.transpose(0, 1).reshape(head, batch * src, head_dim)
    gathered = [values.new_empty(batch * src, head, head) for _ in folds]
    own = None if diagonal is None else values.new_empty(batch * src, 1, out_weight.shape[-1])
    shares = None if diagonal is None else diagonal.transpose(1, 2).reshape(batch * src, 1, head)
    most = max(1, CHUNK // (head * out_weight.shape[-1]))
    step = -(-batch * src // -(-batch * src // most))  # equal chunks
    for start in range(0, batch * src, step):
        some = slice(start, start + step)
        vectors = torch.bmm(flat[:, some], out_weight).transpose(0, 1)
        if own is not None and shares is not None:
            torch.bmm(shares[some], vectors, out=own[some])
        for fold, found in zip(folds, gathered, strict=True):
            folded = vectors if fold is None else fold(vectors)
            torch.bmm(folded, folded.mT, out=found[some])
    pairs = [one.permute(1, 2, 0).unflatten(2, (batch, src)).contiguous() for one in gathered]
    return pairs, None if own is None else own.view(batch, src, -1)


def lengths(
    values: Float[Tensor, "batch head src head_dim"], out_weight: Float[Tensor, "head head_dim model"]
) -> Float[Tensor, "batch head src"]:
    """‖f_h(x_j)‖ where nothing else is wanted: W_O[h] = Rᵀ Qᵀ, and Qᵀ changes no length, so ‖v W_O‖ = ‖v Rᵀ‖."""
    norms = _lengths(values, out_weight)
    if span.held(norms.square(), values, out_weight):
        return norms
    return _lengths(values.double(), out_weight.double()).to(values.dtype)


def _lengths(values: Tensor, out_weight: Tensor) -> Tensor:
    return coordinates(values, out_weight).norm(dim=-1)


def coordinates(
    values: Float[Tensor, "batch head src head_dim"], out_weight: Float[Tensor, "head head_dim model"]
) -> Float[Tensor, "batch head src coordinate"]:
    """f_h(x_j) in an orthonormal basis of what W_O[h] can write: head_dim numbers, with the products of the vectors."""
    if out_weight.shape[1] >= out_weight.shape[2]:
        return transformed(values, out_weight)
    triangle = torch.linalg.qr(out_weight.mT, mode="r").R
    return torch.matmul(values, triangle.mT)


def transformed_sums(
    values: Float[Tensor, "batch head src head_dim"], out_weight: Float[Tensor, "head head_dim model"]
) -> Float[Tensor, "batch head src"]:
    """‖f_h(x_j)‖₁, the sum of the absolute values of its coordinates, a few tokens at a time."""
    step = max(1, CHUNK // (values.shape[0] * values.shape[1] * out_weight.shape[-1]))
    return torch.cat([transformed(part, out_weight).abs().sum(dim=-1) for part in values.split(step, dim=2)], dim=2)


def transformed_norms(pairs: Float[Tensor, "head head2 batch src"]) -> Float[Tensor, "batch head src"]:
    """‖f_h(x_j)‖ off the diagonal of the Gram matrices, in their precision."""
    return pairs.diagonal(dim1=0, dim2=1).clamp_min(0).sqrt().permute(0, 2, 1)


def weighted_norms(
    weights: Float[Tensor, "batch head tgt src"], norms: Float[Tensor, "batch head src"]
) -> Float[Tensor, "batch head tgt src"]:
    """‖α f(x)‖, computed as |α|·‖f(x)‖."""
    return (weights * norms.unsqueeze(-2)).abs_()


def summed_norms(
    weights: Float[Tensor, "batch head tgt src"],
    pairs: Float[Tensor, "head head2 batch src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
    fold: Fold | None = None,
) -> Float[Tensor, "batch tgt src"]:
    """‖Σ_h α_h f_h(x_j)‖: the contribution of key j to query i in all heads of the block. Not the sum of the norms.

    Where heads cancel each other the sum is done again with the vectors themselves, in double precision. `fold`: what
    the vectors of `pairs` went through.
    """
    batch, _, tgt, src = weights.shape
    norms = weights.new_empty(batch, tgt, src)
    items, rows = max(1, TILE // max(1, tgt * src)), max(1, TILE // max(1, src))
    for first in range(0, batch, items):
        for top in range(0, tgt, rows):
            some = slice(first, first + items), slice(top, top + rows)
            tile = weights[some[0], :, some[1]].to(pairs.dtype)
            norms[some] = _summed_tile(tile, pairs[:, :, some[0]], values[some[0]], out_weight, fold)
    return norms


def _summed_tile(weights: Tensor, pairs: Tensor, values: Tensor, out_weight: Tensor, fold: Fold | None) -> Tensor:
    """The norms of one tile; a query with sums that single precision cannot hold is done again in double precision."""
    total, alone = _summed_squares(weights, pairs)
    rows = span.lost_rows(alone, weights, pairs)
    if rows is not None:
        alone[:, rows] = 0.0
    cancelled = (total < alone.mul_(CANCELLED)).nonzero()
    norms = total.clamp_min_(0).sqrt_()
    if len(cancelled):
        norms[tuple(cancelled.T)] = _summed_exactly(cancelled, weights, values, out_weight, fold)
    if rows is not None:
        again = _summed_tile(weights[:, :, rows].double(), pairs.double(), values, out_weight, fold)
        norms[:, rows] = again.to(norms.dtype)
    return norms


def _summed_squares(weights: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
    """‖Σ_h α_h f_h‖², and Σ_h ‖α_h f_h‖² to compare it with."""
    heads, dots = weights.unbind(1), [row.unbind(0) for row in pairs.unsqueeze(-2).unbind(0)]
    alone = torch.zeros_like(heads[0])
    total, part = torch.zeros_like(alone), torch.empty_like(alone)
    for h, own in enumerate(heads):
        torch.mul(own, dots[h][h], out=part)
        alone.addcmul_(own, part)
        for k in range(h):
            part.addcmul_(heads[k], dots[h][k], value=2.0)
        total.addcmul_(own, part)
    return total, alone


def _summed_exactly(
    cells: Int[Tensor, "cell 3"], weights: Tensor, values: Tensor, out_weight: Tensor, fold: Fold | None
) -> Float[Tensor, " cell"]:
    """‖Σ_h α_h f_h(x_j)‖ for single cells (batch, tgt, src), the vectors added before the norm is taken."""
    matrix = out_weight.double().flatten(0, 1)
    norms = []
    for some in cells.split(max(1, CHUNK // matrix.shape[1])):
        batch, tgt, src = some.T
        mixed = weights[batch, :, tgt, src].double()[..., None] * values[batch, :, src].double()
        vectors = mixed.flatten(1) @ matrix
        norms.append((vectors if fold is None else fold(vectors)).norm(dim=-1))
    return torch.cat(norms).to(weights.dtype)


def rebuilt(
    queries: Float[Tensor, " tgt"],
    weights: Float[Tensor, "batch head tgt src"],
    values: Float[Tensor, "batch head src head_dim"],
    out_weight: Float[Tensor, "head head_dim model"],
    out_bias: Float[Tensor, " model"] | None,
    scales: Float[Tensor, "batch head tgt"] | None = None,
    gates: Float[Tensor, "batch head tgt head_dim"] | None = None,
) -> Float[Tensor, "batch model"]:
    """Σ_i q_i (Σ_h Σ_j α f(x_j) + b_O): the parts added up again for one mixture of queries, reading α once.

    With gates the values that reach a query are added up before its gate, so the mixture comes last.
    """
    chosen = queries.expand(*weights.shape[:2], 1, -1)
    chosen = chosen if scales is None else chosen * scales.unsqueeze(-2)
    if gates is None:
        mixed = torch.matmul(torch.matmul(chosen, weights), values)
    else:
        mixed = torch.matmul(chosen, torch.matmul(weights, values) * gates)
    total = mixed.flatten(1) @ out_weight.flatten(0, 1)
    return total if out_bias is None else total + queries.sum() * out_bias
