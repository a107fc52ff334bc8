"""Value zeroing by algebra is that of hooks on the values of the real model, in double precision."""

import copy

import pytest
import torch

import normlens as nl
from normlens import probes

VALUES = {  # the module that writes the values of layer 1, which part of its columns they are, and its end
    "bert": ("encoder.layer.1.attention.self.value", 0, 1, "encoder.layer.1"),
    "gpt2": ("h.1.attn.c_attn", 2, 3, "h.1"),
    "llama": ("layers.1.self_attn.v_proj", 0, 1, "layers.1"),
    "gemma2": ("layers.1.self_attn.v_proj", 0, 1, "layers.1"),
    "olmo2": ("layers.1.self_attn.v_proj", 0, 1, "layers.1"),
    "gptj": ("h.1.attn.v_proj", 0, 1, "h.1"),
    "qwen3": ("layers.1.self_attn.v_proj", 0, 1, "layers.1"),
    "granite": ("layers.1.self_attn.v_proj", 0, 1, "layers.1"),
    "t5 encoder": ("encoder.block.1.layer.0.SelfAttention.v", 0, 1, "encoder.block.1"),
    "t5 cross": ("decoder.block.1.layer.1.EncDecAttention.v", 0, 1, "decoder.block.1"),
    "bart decoder": ("decoder.layers.1.self_attn.v_proj", 0, 1, "decoder.layers.1.self_attn_layer_norm"),
}


def slow(model, inputs, values, part, parts, layer):
    """1 - cos of the layer's output with and without the values of each token, a run of the model for each."""
    model = copy.deepcopy(model).double()
    outputs, counts = [], []

    def note(_, __, output):
        outputs.append(output[0] if isinstance(output, tuple) else output)

    def run(zeroed):
        def zero(_, __, output):
            width = output.shape[-1] // parts
            counts.append(output.shape[1])
            changed = output.clone()
            if zeroed is not None:
                changed[:, zeroed, part * width : (part + 1) * width] = 0
            return changed

        handles = [model.get_submodule(values).register_forward_hook(zero)]
        handles.append(model.get_submodule(layer).register_forward_hook(note))
        with torch.no_grad():
            model(**inputs)
        for handle in handles:
            handle.remove()
        return outputs.pop()

    whole = run(None)
    far = torch.stack([1 - torch.cosine_similarity(whole, run(j), dim=-1) for j in range(counts[0])], dim=-1)
    return far / far.sum(-1, keepdim=True)


@pytest.mark.parametrize("name", VALUES)
def test_it_is_what_hooks_on_the_values_find(name):
    """Where another attention follows, the layer ends before it."""
    torch.manual_seed(0)
    model, kind = (*name.split(), "self")[:2]
    built = probes.build(model)
    given = ["input_ids"] if kind == "self" else ["input_ids", "decoder_input_ids"]
    inputs = {one: built.probes[0].inputs[one][:, : 5 - at].clamp_min(3) for at, one in enumerate(given)}
    lens = nl.load(built.model, probe=built.probes[0].inputs)
    ours = lens.trace(inputs, fields=("value_zeroing",)).layers(kind)[1].value_zeroing.double()
    torch.testing.assert_close(ours, slow(built.model, inputs, *VALUES[name]), rtol=2e-3, atol=2e-4)


def test_in_double_precision_it_agrees_to_many_digits():
    torch.manual_seed(0)
    built = probes.build("bert")
    model = built.model.double()
    inputs = {"input_ids": built.probes[0].inputs["input_ids"][:, :5].clamp_min(3)}
    ours = nl.load(model, probe=built.probes[0].inputs).trace(inputs, fields=("value_zeroing",))
    expected = slow(model, inputs, *VALUES["bert"])
    torch.testing.assert_close(ours.self_attention[1].value_zeroing, expected, rtol=1e-7, atol=1e-9)


def test_a_padded_batch_has_the_numbers_of_its_texts_alone_and_rolls(minilm):
    texts = ["The old cat slept quietly under a tree.", "Short."]
    both = minilm.trace(texts, fields=("value_zeroing",))
    for index, text in enumerate(texts):
        alone = minilm.trace(text, fields=("value_zeroing",))
        for ours, theirs in zip(both[index].blocks, alone.blocks, strict=True):
            torch.testing.assert_close(ours.value_zeroing, theirs.value_zeroing, rtol=1e-3, atol=1e-5)
        rolled = both.rollout("value_zeroing")[index]
        torch.testing.assert_close(rolled.values, alone.rollout("value_zeroing").values, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(rolled.values.sum(-1), torch.ones(rolled.values.shape[:2]))


def test_a_key_that_is_never_attended_to_has_no_share():
    built = probes.build("gpt2")
    lens = nl.load(built.model, probe=built.probes[0].inputs)
    inputs = {"input_ids": built.probes[0].inputs["input_ids"][:, :5].clamp_min(3)}
    for block in lens.trace(inputs, fields=("value_zeroing",)).blocks:
        assert not block.value_zeroing.triu(1).any()
        torch.testing.assert_close(block.value_zeroing[:, 0, 0], torch.ones(len(block.value_zeroing)))


@pytest.mark.parametrize(
    ("kind", "reason"), [("mixtral", "route a changed token anew"), ("falcon_h1", "made beside the attention is added")]
)
def test_what_cannot_be_run_again_is_refused_with_the_reason(kind, reason):
    built = probes.build(kind)
    inputs = built.probes[0].inputs
    block = nl.load(built.model, probe=inputs).trace(inputs, fields=("value_zeroing",)).self_attention[0]
    with pytest.raises(nl.NormlensError, match=reason):
        _ = block.value_zeroing
