"""A model that gates, scales or normalises what its heads write: what a trace holds, and what it says it lacks."""

import copy

import pytest
import torch
from transformers import AutoModelForCausalLM

import normlens as nl
from normlens import measures, probes
from normlens.lens import NotKept, find_gates, singular_values
from normlens.models import encode

TEXTS = ["The cat sat on the mat.", "Hello."]
LACKING = ("transformed_norms", "transformed", "coordinates", "transformed_sums")


@pytest.fixture(scope="module")
def lenses():
    """One with a gate for each coordinate, one with a norm, one with a scale for each head."""
    tokenizer = nl.load().subject.tokenizer
    made = {}
    for kind in ("afmoe", "bitnet", "granite_swa"):
        config = copy.deepcopy(probes.build(kind).model.config)
        config.vocab_size, config.pad_token_id, config.bos_token_id, config.eos_token_id = len(tokenizer), 0, None, None
        torch.manual_seed(0)
        made[kind] = nl.load(AutoModelForCausalLM.from_config(config).eval(), tokenizer)
    return made


@pytest.mark.parametrize("kind", ["afmoe", "bitnet"])
@pytest.mark.parametrize("name", LACKING)
def test_the_norm_of_f_is_refused_with_the_reason(lenses, kind, name):
    block = lenses[kind].trace(TEXTS, fields=("weights", *LACKING)).self_attention[0]
    assert name not in block.kept
    with pytest.raises(NotKept, match=r"before its output matrix .* so a key has no f"):
        block[name]


@pytest.mark.parametrize("kind", ["afmoe", "bitnet", "granite_swa"])
def test_contributions_are_kept_and_no_trace_makes_them_of_weights_and_norms(lenses, kind):
    trace = lenses[kind].trace(TEXTS)
    for fields in (("weighted_norms",), ("weights", "transformed_norms"), ("weighted_norms", "head_vectors")):
        for block, whole in zip(lenses[kind].trace(TEXTS, fields=fields).blocks, trace.blocks, strict=True):
            torch.testing.assert_close(block.weighted_norms, whole.weighted_norms)
    for block in trace.blocks:
        assert "weighted_norms" in block.kept
        assert bool((block.summed_norms <= block.weighted_norms.sum(dim=1) * (1 + 1e-5) + 1e-12).all())


def test_a_scale_for_each_head_leaves_f_as_it_is(lenses):
    block = lenses["granite_swa"].trace(TEXTS).self_attention[0]
    expected = block.weights * block.scales[..., None] * block.transformed_norms[:, :, None]
    torch.testing.assert_close(block.weighted_norms, expected.abs())
    assert block.no_transformed is None
    assert bool((block.scales[0] < 1).all())


def test_head_outputs_add_up_to_the_output(lenses):
    """With the gate: what W_O makes of what a head writes."""
    for lens in lenses.values():
        block = lens.trace(TEXTS[0], fields=("head_outputs", "weighted_norms")).self_attention[0]
        lengths = block.head_outputs.norm(dim=-1)
        assert bool((lengths <= block.weighted_norms.sum(dim=-1) * (1 + 1e-5)).all())


def test_the_attention_that_nobody_receives_is_what_a_row_lacks(lenses):
    block = lenses["afmoe"].trace(TEXTS).self_attention[0]
    torch.testing.assert_close(block.lost_mass[0], 1 - block.weights[0].sum(dim=-1))
    assert bool((block.lost_mass[1, :, block.sizes[1][0] :] == 0).all())


@pytest.mark.parametrize("kind", ["afmoe", "bitnet", "granite_swa"])
def test_a_trace_is_saved_tabled_and_shown(lenses, kind, tmp_path):
    trace = lenses[kind].trace(TEXTS)
    again = nl.open(trace.save(tmp_path / "trace.safetensors"))
    for block, other in zip(trace.blocks, again.blocks, strict=True):
        assert block.no_transformed == other.no_transformed
        assert torch.equal(block.weighted_norms, other.weighted_norms)
    table = trace.to_dataframe()
    assert ("transformed_norms" in table.columns) == (kind == "granite_swa")
    assert "weighted_norms" in table.columns
    shown = trace.show(layer=0)
    assert "share of contributions" in shown
    assert ("norm ‖f(x)‖" in shown) == (kind == "granite_swa")
    assert (trace.save(tmp_path / "view.html")).stat().st_size > 1000


def test_a_measure_that_needs_f_is_left_out_and_one_that_does_not_is_there(lenses):
    nl.measure("total", axes=("batch", "head", "tgt"), needs=("weighted_norms",))(lambda norms: norms.sum(-1))
    nl.measure("longest", axes=("batch", "head"), needs=("transformed_norms",))(lambda norms: norms.amax(-1))
    try:
        fields = ("weights", "weighted_norms", "total", "longest")
        block = lenses["afmoe"].trace(TEXTS, fields=fields).self_attention[0]
        torch.testing.assert_close(block["total"], block.weighted_norms.sum(dim=-1))
        with pytest.raises(NotKept, match="so a key has no f"):
            block["longest"]
    finally:
        measures.forget("total")
        measures.forget("longest")


def test_singular_values_are_those_of_an_f_that_exists(lenses):
    assert not singular_values(lenses["afmoe"]).values
    assert all("before its output matrix" in reason for reason in singular_values(lenses["bitnet"]).reasons.values())
    assert not singular_values(lenses["granite_swa"]).reasons


@pytest.mark.parametrize("kind", ["afmoe", "bitnet", "granite_swa"])
def test_heads_behind_a_gate_are_scaled_as_they_reach_the_output_matrix(lenses, kind):
    lens = lenses[kind]
    gates = find_gates(lens, encode(lens.subject, TEXTS[:1]))
    assert len(gates.blocks) == len(lens.wires)
