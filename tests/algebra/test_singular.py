"""Singular values of f against the matrix written out, and against hand-made cases."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from normlens import algebra
from normlens.algebra import singular

sizes = st.integers(1, 7)


def random_maps(head, model, head_dim, out, *, bias=True, seed=0):
    generator = torch.Generator().manual_seed(seed)
    value_weight = torch.randn(head, model, head_dim, generator=generator)
    value_bias = torch.randn(head, head_dim, generator=generator) if bias else None
    return value_weight, value_bias, torch.randn(head, head_dim, out, generator=generator)


def written_out(value_weight, value_bias, out_weight):
    """f̃ as (head, model + 1, out + 1): every row is f̃ of a basis vector, found by applying f."""
    head, model, head_dim = value_weight.shape
    bias = torch.zeros(head, head_dim) if value_bias is None else value_bias
    of_zero = torch.einsum("hd,hdm->hm", bias.double(), out_weight.double())
    linear = torch.einsum("hxd,hdm->hxm", value_weight.double(), out_weight.double())
    matrix = torch.zeros(head, model + 1, out_weight.shape[2] + 1, dtype=torch.float64)
    matrix[:, :-1, :-1], matrix[:, -1, :-1], matrix[:, -1, -1] = linear, of_zero, 1.0
    return matrix


@given(head=sizes, model=sizes, head_dim=sizes, out=sizes, bias=st.booleans(), seed=st.integers(0, 99))
def test_they_are_those_of_the_matrix_written_out_and_all_others_are_zero(head, model, head_dim, out, bias, seed):
    maps = random_maps(head, model, head_dim, out, bias=bias, seed=seed)
    found, whole = algebra.singular_values(*maps), torch.linalg.svdvals(written_out(*maps))
    assert found.shape == (head, head_dim + 1)
    both = min(found.shape[1], whole.shape[1])
    torch.testing.assert_close(found[:, :both], whole[:, :both], rtol=1e-10, atol=1e-12)
    for rest in (found[:, both:], whole[:, both:]):
        torch.testing.assert_close(rest, torch.zeros_like(rest), rtol=0, atol=1e-12)


@given(head=sizes, model=sizes, head_dim=sizes, seed=st.integers(0, 99))
def test_they_fall_and_are_never_negative(head, model, head_dim, seed):
    found = algebra.singular_values(*random_maps(head, model, head_dim, model, seed=seed))
    assert (found >= 0).all()
    assert (found.diff(dim=1) <= 0).all()


@given(seed=st.integers(0, 99))
def test_no_vector_is_stretched_by_more_than_the_first(seed):
    value_weight, value_bias, out_weight = maps = random_maps(2, 6, 3, 5, seed=seed)
    x = torch.randn(9, 6, generator=torch.Generator().manual_seed(seed + 1)).double()
    f = torch.einsum("hnd,hdm->hnm", x @ value_weight.double() + value_bias[:, None], out_weight.double())
    stretched = (f.square().sum(-1) + 1).sqrt() / (x.square().sum(-1) + 1).sqrt()
    assert (stretched <= algebra.singular_values(*maps)[:, :1] * (1 + 1e-12)).all()


def test_a_diagonal_map_without_bias_shows_its_diagonal_and_the_one_for_the_constant():
    found = algebra.singular_values(torch.eye(3)[None], None, torch.diag(torch.tensor([5.0, 0.5, 0.0]))[None])
    torch.testing.assert_close(found, torch.tensor([[5.0, 1.0, 0.5, 0.0]], dtype=torch.float64))


def test_a_head_that_forgets_its_input_has_one_singular_value_made_of_its_bias():
    """f(x) = 3 for every x: f̃ = [[0, 0], [3, 1]]."""
    found = algebra.singular_values(torch.zeros(1, 1, 1), torch.tensor([[3.0]]), torch.ones(1, 1, 1))
    torch.testing.assert_close(found, torch.tensor([[10.0**0.5, 0.0]], dtype=torch.float64))


@pytest.mark.parametrize("chunk", [1, 100, 10_000])
def test_the_size_of_a_chunk_changes_nothing(chunk, monkeypatch):
    maps = random_maps(5, 6, 3, 7)
    whole = algebra.singular_values(*maps)
    monkeypatch.setattr(singular, "CHUNK", chunk)
    torch.testing.assert_close(algebra.singular_values(*maps), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_are_taken_as_they_are(dtype):
    maps = [tensor.to(dtype) for tensor in random_maps(2, 6, 3, 7)]
    torch.testing.assert_close(
        algebra.singular_values(*maps), algebra.singular_values(*[tensor.double() for tensor in maps])
    )
