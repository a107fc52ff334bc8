"""The algebra against the form that builds every vector, and against hand-made cases."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from normlens import algebra
from normlens.algebra import attention

sizes = st.integers(1, 7)


def random_block(batch, head, tgt, src, head_dim=5, model=11, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.softmax(2 * torch.randn(batch, head, tgt, src, generator=generator), -1).to(dtype)
    values = torch.randn(batch, head, src, head_dim, generator=generator).to(dtype)
    out_weight = torch.randn(head, head_dim, model, generator=generator).to(dtype)
    return weights, values, out_weight


def materialised(weights, values, out_weight):
    """α f(x) as (batch, head, tgt, src, model) in double precision: slow, obvious."""
    transformed = torch.einsum("bhsd,hdm->bhsm", values.double(), out_weight.double())
    return weights.double()[..., None] * transformed[:, :, None]


def norms_of(weights, values, out_weight):
    pairs = algebra.gram(values, out_weight)
    norms = algebra.transformed_norms(pairs)
    summed = algebra.summed_norms(weights, pairs, values, out_weight)
    return norms, algebra.weighted_norms(weights, norms), summed


@given(batch=sizes, head=sizes, tgt=sizes, src=sizes, seed=st.integers(0, 99))
def test_every_norm_equals_the_norm_of_the_vector_itself(batch, head, tgt, src, seed):
    block = random_block(batch, head, tgt, src, seed=seed)
    vectors = materialised(*block)
    norms, weighted, summed = norms_of(*block)
    torch.testing.assert_close(weighted.double(), vectors.norm(dim=-1), rtol=1e-5, atol=1e-12)
    torch.testing.assert_close(summed.double(), vectors.sum(dim=1).norm(dim=-1), rtol=1e-5, atol=1e-12)
    torch.testing.assert_close(norms.double(), algebra.transformed(*block[1:]).double().norm(dim=-1), rtol=1e-5, atol=0)


@given(head=sizes, tgt=sizes, src=sizes, seed=st.integers(0, 99))
def test_the_norm_of_the_sum_is_at_most_the_sum_of_the_norms(head, tgt, src, seed):
    _, weighted, summed = norms_of(*random_block(2, head, tgt, src, seed=seed))
    assert (summed <= weighted.sum(dim=1) * (1 + 1e-6)).all()


@given(left_over=st.sampled_from([0.0, 1e-6, 1e-4, 1e-2, 0.3]), seed=st.integers(0, 20))
def test_cancelling_heads_keep_their_digits(left_over, seed):
    """Head 1 sends the opposite of head 0 but for a small rest; single precision alone would lose it."""
    weights, values, out_weight = random_block(1, 2, 6, 6, seed=seed)
    weights = weights[:, :1].expand(-1, 2, -1, -1).contiguous()
    out_weight = torch.stack([out_weight[0], -out_weight[0] * (1 + left_over)])
    values = values[:, :1].expand(-1, 2, -1, -1).contiguous()
    _, _, summed = norms_of(weights, values, out_weight)
    exact = materialised(weights, values, out_weight).sum(dim=1).norm(dim=-1)
    torch.testing.assert_close(summed.double(), exact, rtol=1e-5, atol=1e-12)


def test_a_heavily_attended_token_can_contribute_nothing():
    """The paper's headline: weight 0.9 on a zero vector has norm 0."""
    weights, values = torch.tensor([[[[0.9, 0.1]]]]), torch.tensor([[[[0.0], [2.0]]]])
    norms, weighted, summed = norms_of(weights, values, torch.ones(1, 1, 1))
    torch.testing.assert_close(norms, torch.tensor([[[0.0, 2.0]]]))
    torch.testing.assert_close(weighted, torch.tensor([[[[0.0, 0.2]]]]))
    torch.testing.assert_close(summed, torch.tensor([[[0.0, 0.2]]]))


def test_opposite_heads_give_norms_but_no_sum():
    weights = torch.tensor([[[[0.5]], [[0.5]]]])
    values = torch.ones(1, 2, 1, 1)
    out_weight = torch.tensor([[[3.0]], [[-3.0]]])
    _, weighted, summed = norms_of(weights, values, out_weight)
    assert weighted.flatten().tolist() == [1.5, 1.5]
    assert summed.item() == 0.0


@given(seed=st.integers(0, 99))
def test_the_parts_add_up_to_the_whole_for_any_mixture_of_queries(seed):
    weights, values, out_weight = random_block(2, 3, 4, 5, seed=seed)
    bias = torch.randn(11, generator=torch.Generator().manual_seed(seed))
    whole = materialised(weights, values, out_weight).sum(dim=(1, 3)) + bias
    queries = torch.randn(4, generator=torch.Generator().manual_seed(seed + 1))
    parts = algebra.rebuilt(queries, weights, values, out_weight, bias)
    torch.testing.assert_close(parts.double(), queries.double() @ whole, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("chunk", [1, 7, 10_000])
def test_the_size_of_a_chunk_changes_nothing(chunk, monkeypatch):
    block = random_block(2, 3, 4, 5)
    whole = algebra.gram(*block[1:])
    monkeypatch.setattr(attention, "CHUNK", chunk)
    torch.testing.assert_close(algebra.gram(*block[1:]), whole)


@pytest.mark.parametrize("tile", [1, 4, 9, 40, 10_000])
def test_the_size_of_a_tile_changes_nothing(tile, monkeypatch):
    block = random_block(3, 3, 4, 5)
    whole = norms_of(*block)[2]
    monkeypatch.setattr(attention, "TILE", tile)
    assert torch.equal(norms_of(*block)[2], whole)
