"""Every axis of every block knows whose positions it has, on real architectures; nothing is cut to fit the text."""

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

import normlens as nl
from normlens import probes


def traced(name):
    built = probes.build(name)
    return nl.load(built.model).trace(built.probes[0].inputs)


def gpt2():
    torch.manual_seed(0)
    ids = {"vocab_size": 60, "bos_token_id": 1, "eos_token_id": 1}
    return GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=32, **ids)).eval()


def test_an_image_tower_has_patches_and_the_text_tower_words():
    trace = traced("clip")
    assert {(b.tgt, b.src) for b in trace.self_attention} == {("text", "text")}
    assert {(b.tgt, b.src) for b in trace.layers("image")} == {("image", "image")}
    words, patches = trace.side("text").tokens, trace.side("image").tokens
    assert patches[:2] == ("[CLS]", "r0c0")
    table = trace[0].to_dataframe()
    seen = table[table.kind == "image"]
    assert tuple(seen.src_token.unique()) == patches
    assert not set(patches) & set(words)
    panels = trace.figure().panels
    assert {panel.size for panel in panels if panel.kind == "image"} == {(17, 17)}


def test_layers_of_each_tower_are_counted_alike_whether_or_not_the_other_runs():
    both, built = traced("llava"), probes.build("llava")
    alone = nl.load(built.model).trace({"input_ids": torch.tensor([[101, 102, 103]])})
    assert [b.layer for b in alone.self_attention] == [b.layer for b in both.self_attention] == [0, 1]
    assert [b.layer for b in both.layers("image")] == [0, 1]


def test_cached_keys_are_never_called_by_the_words_of_the_text():
    model = gpt2()
    lens, whole = nl.load(model), torch.tensor([[5, 6, 7, 8, 9]])
    with torch.no_grad():
        cache = model(whole[:, :3], use_cache=True).past_key_values
    trace = lens.trace({"input_ids": whole[:, 3:], "past_key_values": cache})
    full = lens.trace({"input_ids": whole})
    for block, reference in zip(trace.self_attention, full.self_attention, strict=True):
        assert (block.tgt, block.src) == ("text", "cached+text")
        torch.testing.assert_close(block.weights, reference.weights[:, :, 3:], atol=1e-6, rtol=1e-4)
    assert trace.side("cached+text").tokens == ("[c0]", "[c1]", "[c2]", "8", "9")
    assert list(trace.to_dataframe().src_token.unique()) == ["[c0]", "[c1]", "[c2]", "8", "9"]
    assert cache.get_seq_length() == 3


def test_one_softmax_over_target_and_source_names_both():
    trace = traced("t5gemma2")
    for block in trace.decoder_attention:
        assert (block.tgt, block.src) == ("target", "target+source")
        joined = trace.target_tokens[0] + trace.tokens[0]
        assert trace.side(block.src).tokens == joined
    assert set(trace[0].to_dataframe().query("kind == 'decoder'").src_token) == set(joined)


def test_a_saved_trace_keeps_every_side(tmp_path):
    trace = traced("clip")
    again = nl.open(trace.save(tmp_path / "clip.safetensors"))
    assert again.others == trace.others
    assert again[1].side("image").tokens == trace[1].side("image").tokens


class Repeated(nn.Module):
    """One layer, as often as the input says."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.eval()

    def forward(self, x, times=2):
        for _ in range(times):
            x = x + self.attention(x, x, x)[0]
        return x


def test_a_shared_layer_has_the_same_names_at_every_trace():
    x = torch.randn(1, 4, 8)
    lens = nl.load(Repeated(), probe={"x": x})
    wires = lens.wires
    for _ in range(3):
        trace = lens.trace({"x": x, "times": 4})
        assert [(b.kind, b.layer) for b in trace.blocks] == [("self", layer) for layer in range(4)]
    assert lens.wires == wires


def test_an_error_of_the_caller_s_own_function_is_the_caller_s(minilm):
    with pytest.raises(IndexError, match="mine"):
        minilm.each_block(lambda block: (_ for _ in ()).throw(IndexError("mine")), "A text.")


def test_autocast_around_a_trace_is_only_less_precise(minilm):
    plain = minilm.trace("The cat sat on the mat.")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = minilm.trace("The cat sat on the mat.")
    for block, reference in zip(cast.self_attention, plain.self_attention, strict=True):
        torch.testing.assert_close(block.weights, reference.weights, atol=0.05, rtol=0.1)
        assert block.weights.dtype == block.summed_norms.dtype == torch.float32


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_torch_s_own_encoder_may_leave_padding_out():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(layer, 2)
            self.eval()

        def forward(self, x, mask):
            return self.encoder(x, src_key_padding_mask=mask)

    inputs = {"x": torch.randn(2, 4, 8), "mask": torch.tensor([[False] * 4, [False, False, True, True]])}
    trace = nl.load(Encoder(), probe=inputs).trace(inputs)
    assert [b.layer for b in trace.self_attention] == [0, 1]
    assert trace.error < 1e-5


def test_a_text_encoder_and_a_decoder_of_sounds_have_ids_of_their_own():
    built = probes.build("musicgen")
    inputs = {name: value[:1] for name, value in built.probes[0].inputs.items() if name != "decoder_input_ids"}
    codes = built.probes[0].inputs["decoder_input_ids"]
    trace = nl.load(built.model).trace(inputs | {"decoder_input_ids": codes[: len(codes) // 2]})
    assert len(trace.encoder_attention) == len(trace.decoder_attention) == len(trace.cross_attention) == 2
