"""The singular values of whole models: f from the maps found is the f of a trace, whatever the family."""

from dataclasses import replace

import pytest
import torch
from transformers import LlamaConfig, LlamaModel

import normlens as nl
from normlens import probes
from normlens.capture import value_maps
from normlens.lens import singular_values
from normlens.lens.doctor import NoProbe

FAMILIES = "bert,roberta,albert,deberta,gpt2,llama,grouped llama,falcon,t5,bart,marian,xlnet,vit".split(",")
GROUPED = LlamaConfig(
    vocab_size=50,
    hidden_size=32,
    intermediate_size=16,
    num_hidden_layers=2,
    num_attention_heads=8,
    num_key_value_heads=2,
    initializer_range=0.5,
)


def loaded(kind):
    """A small model, its lens and inputs without padding."""
    if kind == "grouped llama":
        torch.manual_seed(0)
        model, inputs = LlamaModel(GROUPED).eval(), {"input_ids": torch.randint(50, (2, 7))}
    else:
        built = probes.build(kind)
        model, inputs = built.model, {k: value for k, value in built.probes[0].inputs.items() if "mask" not in k}
    return model, nl.load(model, probe=inputs), inputs


def maps_by_use(model, inputs):
    """Value maps and output matrices in the order in which the blocks ran."""
    found = []
    value_maps(model, inputs, lambda attended, value_map: found.append((value_map, attended.out_weight)))
    return found


def read_by(model, matrices, inputs):
    """What each matrix read, in the order of its uses, from plain hooks on the modules that own them."""
    read = {}
    handles = []
    for matrix in set(matrices):
        owner = model.get_submodule(matrix.rpartition(".")[0])
        handles.append(
            owner.register_forward_pre_hook(lambda _, args, matrix=matrix: read.setdefault(matrix, []).append(args[0]))
        )
    with torch.no_grad():
        model(**inputs)
    for handle in handles:
        handle.remove()
    return [read[matrix].pop(0) for matrix in matrices]


def written_out(value_map, out_weight):
    """f̃ as a model-sized matrix, from the definition."""
    head, model, head_dim = value_map.weight.shape
    wide, narrow = torch.zeros(head, model + 1, head_dim + 1), torch.zeros(head, head_dim + 1, out_weight.shape[2] + 1)
    wide[:, :-1, :-1], wide[:, -1, -1] = value_map.weight, 1.0
    narrow[:, :-1, :-1], narrow[:, -1, -1] = out_weight, 1.0
    if value_map.bias is not None:
        wide[:, -1, :-1] = value_map.bias
    return wide.double() @ narrow.double()


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_maps_make_the_same_f_as_a_trace(kind):
    model, lens, inputs = loaded(kind)
    trace = lens.trace(inputs, fields=("transformed",))
    found = maps_by_use(model, inputs)
    assert len(found) == len(trace.blocks) > 1
    if kind == "xlnet":  # its matrices are bare parameters, which no hook sees
        with torch.no_grad():
            x = model(**inputs, output_hidden_states=True).hidden_states[:-1]
    else:
        x = read_by(model, [value_map.matrix for value_map, _ in found], inputs)
    for block, (value_map, out_weight), source in zip(trace.blocks, found, x, strict=True):
        values = torch.einsum("bsm,hmd->bhsd", source, value_map.weight)
        values = values if value_map.bias is None else values + value_map.bias[:, None]
        transformed = torch.einsum("bhsd,hdm->bhsm", values, out_weight)
        torch.testing.assert_close(transformed, block.transformed, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", FAMILIES)
def test_they_are_those_of_the_matrix_written_out(kind):
    model, lens, inputs = loaded(kind)
    found = singular_values(lens, probe=inputs)
    assert found.reasons == {}
    assert list(found.values) == [(wire.kind, wire.layer) for wire in lens.wires]
    for values, (value_map, out_weight) in zip(found.values.values(), maps_by_use(model, inputs), strict=True):
        whole = torch.linalg.svdvals(written_out(value_map, out_weight))
        assert values.shape == (len(out_weight), out_weight.shape[1] + 1)
        count = min(values.shape[1], whole.shape[1])
        torch.testing.assert_close(values[:, :count], whole[:, :count], rtol=1e-8, atol=1e-8)
        assert (whole[:, count:] < 1e-8).all()


def test_layers_of_every_kind_are_named_as_in_a_trace():
    _, lens, _ = loaded("bart")
    assert {kind for kind, _ in singular_values(lens).values} == {"encoder", "decoder", "cross"}


def test_the_maps_of_bert_are_its_own_matrices():
    model, _, inputs = loaded("bert")
    for layer, (value_map, _) in zip(model.encoder.layer, maps_by_use(model, inputs), strict=True):
        value = layer.attention.self.value
        heads = len(value_map.weight)
        assert torch.equal(value_map.weight, value.weight.T.unflatten(1, (heads, -1)).transpose(0, 1))
        assert torch.equal(value_map.bias, value.bias.view(heads, -1))


def test_heads_that_share_values_share_their_map():
    model, _, inputs = loaded("grouped llama")
    for layer, (value_map, _) in zip(model.layers, maps_by_use(model, inputs), strict=True):
        shared = layer.self_attn.v_proj.weight.T.unflatten(1, (2, 4)).transpose(0, 1)
        assert torch.equal(value_map.weight, shared.repeat_interleave(4, dim=0))
        assert value_map.bias is None


def test_the_bundled_model_stretches_some_directions_more_than_others(minilm):
    """Kobayashi et al. 2020, figure 9, on another model: no head is a rotation."""
    found = singular_values(minilm)
    assert found.reasons == {}
    assert list(found.values) == [("self", layer) for layer in range(6)]
    for values in found.values.values():
        assert values.shape == (12, 33)
        assert (values[:, 0] / values[:, -1] > 1.5).all()


def test_they_bound_what_the_bundled_model_sends(minilm):
    """‖f̃(x̃)‖ ≤ σ₁ ‖x̃‖ for every token of a text."""
    encoded = minilm.subject.tokenizer("The cat sat on the mat.", return_tensors="pt")
    with torch.no_grad():
        states = minilm.subject.model(**encoded, output_hidden_states=True).hidden_states
    trace, found = minilm.trace("The cat sat on the mat."), singular_values(minilm)
    for block in trace.self_attention:
        norms = block.transformed_norms[0].square().add(1).sqrt()
        lengths = states[block.layer][0].square().sum(-1).add(1).sqrt()
        assert (norms <= found.values["self", block.layer][:, :1] * lengths * (1 + 1e-5)).all()


def test_values_made_in_two_steps_are_refused_with_the_reason():
    _, lens, _ = loaded("deepseek_v3")
    found = singular_values(lens)
    assert found.values == {}
    assert len(found.reasons) == len(lens.wires)
    assert all("two steps" in reason for reason in found.reasons.values())


def test_a_block_that_is_refused_or_not_reached_has_its_reason_too():
    _, lens, _ = loaded("bert")
    first, second = lens.wires
    lens.wires = (replace(first, reason="it has a gate"), second, replace(second, layer=2, out="elsewhere.weight"))
    found = singular_values(lens)
    assert list(found.values) == [("self", 1)]
    assert found.reasons == {("self", 0): "it has a gate", ("self", 2): "the probe does not reach it"}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_any_precision(dtype):
    built = probes.build("gpt2")
    whole = singular_values(nl.load(built.model))
    found = singular_values(nl.load(built.model.to(dtype)))
    assert found.reasons == {}
    for block, values in found.values.items():
        assert values.dtype == torch.float64
        torch.testing.assert_close(values, whole.values[block], rtol=2e-2, atol=2e-2)


def test_a_model_whose_inputs_cannot_be_guessed_asks_for_a_probe(monkeypatch):
    _, lens, inputs = loaded("bert")
    monkeypatch.setattr("normlens.lens.singular.probe_inputs", lambda _: None)
    with pytest.raises(NoProbe, match="probe="):
        singular_values(lens)
    assert singular_values(lens, probe=inputs).reasons == {}
