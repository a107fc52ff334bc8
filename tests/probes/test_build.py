"""Any model type, small: it builds, runs, is the same for the same seed, and its text is padded."""

import pytest
import torch

from normlens import probes

TYPES = [
    "bert",  # encoder
    "gpt2",  # decoder, Conv1D
    "llama",  # grouped heads, rotary
    "gemma3_text",  # sliding and full attention
    "deepseek_v3",  # latent attention, experts
    "jamba",  # attention beside state space
    "t5",  # sequence to sequence, relative bias
    "bart",  # sequence to sequence, learned positions
    "vit",  # picture
    "whisper",  # speech to text
    "wav2vec2",  # waves
    "clip",  # two towers
    "qwen2_vl",  # picture inside the text
    "time_series_transformer",  # numbers
    "layoutlmv3",  # boxes on a page
]
TEXT = ["bert", "gpt2", "llama", "gemma3_text", "deepseek_v3", "jamba", "t5", "bart", "clip", "qwen2_vl"]


@pytest.fixture(scope="module")
def built():
    torch.set_num_threads(1)
    return {kind: probes.build(kind) for kind in TYPES}


def run(whole, probe):
    part = whole.model.get_submodule(probe.path) if probe.path else whole.model
    with torch.no_grad():
        return part(**probe.inputs)[0]


@pytest.mark.parametrize("kind", TYPES)
def test_a_model_type_builds_small_and_its_output_is_finite(built, kind):
    whole = built[kind]
    assert not whole.model.training
    assert sum(parameter.numel() for parameter in whole.model.parameters()) < 10_000_000
    assert whole.probes
    assert all(run(whole, probe).isfinite().all() for probe in whole.probes)


@pytest.mark.parametrize("kind", TEXT)
def test_text_is_padded_on_the_right_and_lengths_differ(built, kind):
    mask = built[kind].probes[0].inputs["attention_mask"]
    assert mask.shape[0] == 2
    assert mask[0].sum() > mask[1].sum() > 0
    assert (mask[:, 1:] <= mask[:, :-1]).all()


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_source_and_target_have_different_lengths(built, kind):
    inputs = built[kind].probes[0].inputs
    assert inputs["input_ids"].shape[1] != inputs["decoder_input_ids"].shape[1]
    assert (inputs["decoder_attention_mask"] == 0).any()


@pytest.mark.parametrize("kind", ["bert", "t5", "vit"])
def test_the_same_seed_gives_the_same_model_and_another_seed_another(built, kind):
    again, other = probes.build(kind, seed=0), probes.build(kind, seed=1)
    first = built[kind].model.state_dict()
    assert all(torch.equal(first[name], value) for name, value in again.model.state_dict().items())
    assert any(not torch.equal(first[name], value) for name, value in other.model.state_dict().items())
    torch.testing.assert_close(run(built[kind], built[kind].probes[0]), run(again, again.probes[0]))


def test_every_kind_of_layer_is_kept(built):
    assert set(built["gemma3_text"].model.config.layer_types) == {"sliding_attention", "full_attention"}


def test_biases_and_norms_are_not_trivial(built):
    layer = built["bert"].model.encoder.layer[0].attention
    assert layer.self.value.bias.abs().max() > 0.01
    assert layer.output.dense.bias.abs().max() > 0.01
    assert (layer.output.LayerNorm.weight - 1).abs().max() > 0.01


def test_a_users_own_configuration_is_shrunk_and_built():
    from transformers import LlamaConfig

    config = LlamaConfig(hidden_size=512, num_attention_heads=8, num_key_value_heads=2, attention_bias=True)
    whole = probes.build_from(config)
    assert whole.model.config.attention_bias
    assert whole.model.config.num_hidden_layers == 2
    assert whole.model.config.hidden_size < config.hidden_size


def test_a_type_that_cannot_be_built_says_why_in_one_line():
    with pytest.raises(probes.TinyError) as caught:
        probes.build("timm_backbone")
    assert "timm" in caught.value.reason
    assert "\n" not in caught.value.reason
