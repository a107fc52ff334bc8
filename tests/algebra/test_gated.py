"""Contributions with a gate of the query, against every vector written out in double precision."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from normlens import algebra
from normlens.algebra import gated

sizes = st.integers(1, 5)


def block(batch=2, head=3, tgt=4, src=5, head_dim=4, model=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = (
        (batch, head, tgt, src),
        (batch, head, src, head_dim),
        (head, head_dim, model),
        (batch, head, tgt, head_dim),
    )
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


def written_out(weights, values, out_weight, gates):
    reaching = weights.double()[..., None] * values.double()[:, :, None] * gates.double()[:, :, :, None]
    return torch.einsum("bhtsd,hdm->bhtsm", reaching, out_weight.double())


@given(batch=sizes, head=sizes, tgt=sizes, src=sizes, head_dim=sizes, model=sizes)
def test_norms_are_those_of_the_vectors(batch, head, tgt, src, head_dim, model):
    parts = block(batch, head, tgt, src, head_dim, model)
    vectors = written_out(*parts)
    torch.testing.assert_close(gated.weighted_norms(*parts).double(), vectors.norm(dim=-1), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gated.summed_norms(*parts).double(), vectors.sum(1).norm(dim=-1), rtol=1e-5, atol=1e-6)


def test_a_gate_of_ones_changes_nothing():
    weights, values, out_weight, gates = block()
    ones = torch.ones_like(gates)
    norms = algebra.lengths(values, out_weight)
    pairs = algebra.gram(values, out_weight)
    torch.testing.assert_close(
        gated.weighted_norms(weights, values, out_weight, ones), algebra.weighted_norms(weights, norms)
    )
    torch.testing.assert_close(
        gated.summed_norms(weights, values, out_weight, ones), algebra.summed_norms(weights, pairs, values, out_weight)
    )


@pytest.mark.parametrize("size", [1e-25, 1e-12, 1.0, 1e12, 1e25])
def test_norms_are_right_at_every_size(size):
    weights, values, out_weight, gates = block()
    for ours, plain in (
        (gated.weighted_norms(weights, values * size, out_weight, gates), written_out(*block()).norm(dim=-1)),
        (gated.summed_norms(weights, values * size, out_weight, gates), written_out(*block()).sum(1).norm(dim=-1)),
    ):
        torch.testing.assert_close(ours.double() / size, plain, rtol=1e-5, atol=0)


def test_heads_that_cancel_keep_their_digits():
    weights, values, out_weight, gates = block(head=2)
    weights[:, 1], values[:, 1], gates[:, 1] = weights[:, 0], values[:, 0], gates[:, 0]
    out_weight[1] = -out_weight[0] * (1 - 1e-5)
    parts = weights, values, out_weight, gates
    expected = written_out(*parts).sum(1).norm(dim=-1)
    torch.testing.assert_close(gated.summed_norms(*parts).double(), expected, rtol=1e-5, atol=0)


def test_a_shut_gate_and_a_masked_key_contribute_nothing():
    weights, values, out_weight, gates = block()
    gates[:, 0, 1], weights[..., 2] = 0, 0
    norms = gated.weighted_norms(weights, values, out_weight, gates)
    assert (norms[:, 0, 1] == 0).all()
    assert (norms[..., 2] == 0).all()
    assert (gated.summed_norms(weights, values, out_weight, gates)[..., 2] == 0).all()


def test_tiles_change_nothing(monkeypatch):
    parts = block(tgt=7, src=6)
    whole = gated.weighted_norms(*parts), gated.summed_norms(*parts)
    monkeypatch.setattr(gated, "CHUNK", 40)
    for ours, expected in zip((gated.weighted_norms(*parts), gated.summed_norms(*parts)), whole, strict=True):
        torch.testing.assert_close(ours, expected)


def test_rebuilt_is_the_output_of_a_mixture_of_queries():
    weights, values, out_weight, gates = block()
    scales, queries, bias = torch.rand(2, 3, 4), torch.rand(4), torch.rand(12)
    whole = written_out(weights * scales[..., None], values, out_weight, gates).sum(dim=(1, 3)) + bias
    ours = algebra.rebuilt(queries, weights, values, out_weight, bias, scales, gates)
    torch.testing.assert_close(ours.double(), queries.double() @ whole, rtol=1e-5, atol=1e-5)
