"""Norms far from 1: very small and very large vectors and weights, and weights below 0, against double precision."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from normlens import algebra
from normlens.algebra import attention

exponents = st.integers(-30, 30)
REPRESENTABLE = torch.finfo(torch.float32).tiny, torch.finfo(torch.float32).max


def random_block(batch=2, head=3, tgt=4, src=5, head_dim=3, model=7, seed=0):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.softmax(2 * torch.randn(batch, head, tgt, src, generator=generator), -1)
    values = torch.randn(batch, head, src, head_dim, generator=generator)
    return weights, values, torch.randn(head, head_dim, model, generator=generator)


def slow_norms(weights, values, out_weight):
    """‖f‖, ‖α f‖ and ‖Σ_h α f‖ of the vectors themselves, in double precision."""
    transformed = torch.einsum("bhsd,hdm->bhsm", values.double(), out_weight.double())
    vectors = weights.double()[..., None] * transformed[:, :, None]
    return transformed.norm(dim=-1), vectors.norm(dim=-1), vectors.sum(dim=1).norm(dim=-1)


def fast_norms(weights, values, out_weight):
    pairs = algebra.gram(values, out_weight)
    norms = algebra.transformed_norms(pairs)
    summed = algebra.summed_norms(weights, pairs, values, out_weight)
    return norms.to(values), algebra.weighted_norms(weights, norms).to(values), summed


def assert_right_where_representable(block):
    transformed, weighted, summed = slow_norms(*block)
    fast = fast_norms(*block)
    lengths = algebra.lengths(*block[1:])
    assert {norms.dtype for norms in (*fast, lengths)} == {torch.float32}
    for ours, exact in zip((*fast, lengths), (transformed, weighted, summed, transformed), strict=True):
        there = (exact == 0) | ((exact >= REPRESENTABLE[0]) & (exact <= REPRESENTABLE[1]))
        torch.testing.assert_close(ours.double()[there], exact[there], rtol=1e-5, atol=0)


@given(of_values=exponents, of_matrix=exponents, of_weights=exponents, head_dim=st.sampled_from([3, 8]))
def test_norms_are_right_at_every_size(of_values, of_matrix, of_weights, head_dim):
    weights, values, out_weight = random_block(head_dim=head_dim)
    block = (weights * 10.0**of_weights, values * 10.0**of_values, out_weight * 10.0**of_matrix)
    assert_right_where_representable(block)


@given(sizes=st.lists(exponents, min_size=5, max_size=5), seed=st.integers(0, 99))
def test_a_small_token_beside_large_ones_keeps_its_norm(sizes, seed):
    weights, values, out_weight = random_block(seed=seed)
    assert_right_where_representable((weights, values * 10.0 ** torch.tensor(sizes)[:, None], out_weight))


@given(sizes=st.lists(exponents, min_size=3, max_size=3), seed=st.integers(0, 99))
def test_a_small_head_beside_large_ones_keeps_its_norm(sizes, seed):
    weights, values, out_weight = random_block(seed=seed)
    assert_right_where_representable((weights, values, out_weight * 10.0 ** torch.tensor(sizes)[:, None, None]))


@given(sizes=st.lists(exponents, min_size=3, max_size=3), seed=st.integers(0, 99))
def test_large_weights_on_small_vectors_count_like_small_weights_on_large_ones(sizes, seed):
    weights, values, out_weight = random_block(seed=seed)
    heads = 10.0 ** torch.tensor(sizes)[:, None, None]
    assert_right_where_representable((weights * heads, values / heads, out_weight))


@given(sizes=st.lists(st.integers(-44, 0), min_size=20, max_size=20), seed=st.integers(0, 99))
def test_small_weights_keep_their_norm_cell_by_cell(sizes, seed):
    weights, values, out_weight = random_block(seed=seed)
    cells = 10.0 ** torch.tensor(sizes).view(4, 5)
    assert_right_where_representable(((weights * cells).to(torch.float32), values, out_weight))


@given(left_over=st.sampled_from([0.0, 1e-4, 1e-2]), size=st.sampled_from([1e-28, 1e-20, 1.0, 1e20, 1e28]))
def test_cancelling_heads_keep_their_digits_at_every_size(left_over, size):
    weights, values, out_weight = random_block(head=1)
    opposite = torch.cat([out_weight, -out_weight * (1 + left_over)])
    both = weights.expand(-1, 2, -1, -1).contiguous(), values.expand(-1, 2, -1, -1) * size, opposite
    summed = fast_norms(*both)[2]
    torch.testing.assert_close(summed.double(), slow_norms(*both)[2], rtol=1e-5, atol=1e-12 * size)


@pytest.mark.parametrize("weight", [1e-10, 1e-22, 1e-30])
def test_the_summed_norm_of_one_head_is_its_weighted_norm(weight):
    _, values, out_weight = random_block(head=1)
    _, weighted, summed = fast_norms(torch.full((2, 1, 4, 5), weight), values, out_weight)
    torch.testing.assert_close(summed, weighted[:, 0], rtol=1e-5, atol=0)


@given(seed=st.integers(0, 99), size=st.sampled_from([1e-25, 1.0, 1e25]))
def test_norms_of_weights_below_zero_are_not_below_zero(seed, size):
    weights, values, out_weight = random_block(seed=seed)
    assert_right_where_representable((weights - weights.mean(dim=-1, keepdim=True), values * size, out_weight))
    assert all((norms >= 0).all() for norms in fast_norms(-weights, values * size, out_weight))


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e18])
def test_masked_cells_and_empty_vectors_are_exactly_zero(size):
    weights, values, out_weight = random_block(tgt=5)
    values[:, :, 2] = 0.0
    out_weight[1] = 0.0
    weights, values = weights.tril(), values * size
    _, weighted, summed = fast_norms(weights, values, out_weight)
    assert_right_where_representable((weights, values, out_weight))
    assert (summed.triu(1) == 0).all()
    assert (summed[..., 2] == 0).all()
    assert (weighted[:, 1] == 0).all()


def test_masked_cells_empty_vectors_and_empty_heads_need_no_double_precision(monkeypatch):
    weights, values, out_weight = random_block(tgt=5)
    values[:, :, 2] = 0.0
    out_weight[1] = 0.0
    monkeypatch.setattr(torch.Tensor, "double", lambda _: pytest.fail("computed in double precision"))
    pairs = algebra.gram(values, out_weight)
    algebra.lengths(values, out_weight)
    algebra.summed_norms(weights.tril(), pairs, values, out_weight)


@pytest.mark.parametrize("tile", [1, 4, 9, 10_000])
def test_the_size_of_a_tile_changes_nothing_where_weights_are_small(tile, monkeypatch):
    weights, values, out_weight = random_block()
    weights[0, :, 1] *= 1e-20
    whole = fast_norms(weights, values, out_weight)[2]
    monkeypatch.setattr(attention, "TILE", tile)
    torch.testing.assert_close(fast_norms(weights, values, out_weight)[2], whole, rtol=1e-6, atol=0)


def test_double_precision_stays_double():
    block = [tensor.double() for tensor in random_block()]
    for ours, exact in zip(fast_norms(*block), slow_norms(*block), strict=True):
        torch.testing.assert_close(ours, exact, rtol=1e-12, atol=0)
