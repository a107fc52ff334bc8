"""Residual, norm and feed-forward block: every quantity is that of vectors written out, in every form of a layer."""

from itertools import pairwise

import pytest
import torch
from slow_layers import Notes, attention_parts, layer_norm, mixing, rms_norm, shared_out, with_own

import normlens as nl
from normlens import probes

FIELDS = (
    "weights transformed summed_norms residual_norms normed_norms encoder_norms output_norms output_norms_both "
    "mixing_attention mixing_residual mixing_normed mixing_output"
).split()


def lens_of(kind):
    built = probes.build(kind)
    return nl.load(built.model, probe=built.probes[0].inputs), built


def traced(lens, inputs, names):
    """Blocks, and what these modules read and returned; sequences of one length, so that no position is padding."""
    with Notes(lens.subject.model, names) as notes:
        trace = lens.trace(inputs, fields=FIELDS)
    return trace, notes.of


def ids(built, names=("input_ids",)):
    """The tokens of the probe without their padding."""
    given = built.probes[0].inputs
    return {name: given[name][:, :4].clamp_min(3) for name in names}


def same(ours, expected):
    torch.testing.assert_close(ours.double(), expected, rtol=1e-5, atol=1e-6)


def test_post_norm_is_that_of_bert_written_out():
    lens, built = lens_of("bert")
    layer = "encoder.layer.1."
    names = [
        layer + n for n in ("attention.output.LayerNorm", "output.LayerNorm", "intermediate", "intermediate.dense")
    ]
    names += [layer + "attention.self"]
    trace, noted = traced(lens, ids(built), names)
    block, modules = trace.self_attention[1], lens.subject.model.encoder.layer[1]
    parts = attention_parts(block)
    same(block.mixing_attention, mixing(parts))
    parts = with_own(parts, noted[names[4]].read)
    same(block.residual_norms, parts.norm(dim=-1))
    same(block.mixing_residual, mixing(parts))
    normed = layer_norm(parts, noted[names[0]].read, modules.attention.output.LayerNorm)
    same(block.normed_norms, normed.norm(dim=-1))
    same(block.mixing_normed, mixing(normed))
    ended = layer_norm(normed, noted[names[1]].read, modules.output.LayerNorm)
    same(block.encoder_norms, ended.norm(dim=-1))
    first, second = modules.intermediate.dense.weight, modules.output.dense.weight
    written = shared_out(normed, noted[names[3]].returned, noted[names[2]].returned, first, second)
    whole = layer_norm(normed + written, noted[names[1]].read, modules.output.LayerNorm)
    same(block.output_norms, whole.norm(dim=-1))
    same(block.mixing_output, mixing(whole))
    assert torch.equal(block.output_norms, block["output_norms_both"])


def test_pre_norm_is_that_of_gpt2_written_out():
    lens, built = lens_of("gpt2")
    names = ["h.1.ln_1", "h.1.ln_2", "h.1.mlp.c_fc", "h.1.mlp.act", "h.1.mlp"]
    trace, noted = traced(lens, ids(built), names)
    block, modules = trace.self_attention[1], lens.subject.model.h[1]
    parts = with_own(attention_parts(block), noted["h.1.ln_1"].read)
    same(block.residual_norms, parts.norm(dim=-1))
    same(block.encoder_norms, parts.norm(dim=-1))
    same(block.mixing_residual, mixing(parts))
    normed = layer_norm(parts, noted["h.1.ln_2"].read, modules.ln_2)
    sums, active = noted["h.1.mlp.c_fc"].returned, noted["h.1.mlp.act"].returned
    written = shared_out(normed, sums, active, modules.mlp.c_fc.weight.mT, modules.mlp.c_proj.weight.mT)
    same(block.output_norms, (parts + written).norm(dim=-1))
    same(block.mixing_output, mixing(parts + written))
    with pytest.raises(nl.NormlensError, match="no norm follows the sum with the residual"):
        _ = block.normed_norms


@pytest.mark.parametrize("kind", ["llama", "gemma2"])
def test_gated_layers_are_those_of_vectors_written_out(kind):
    """Llama: norms before each part. Gemma 2: norms before and behind each part."""
    lens, built = lens_of(kind)
    behind, sandwich = "post_attention_layernorm", kind == "gemma2"
    before = "pre_feedforward_layernorm" if sandwich else behind
    names = ["layers.1." + n for n in ("input_layernorm", before, "mlp.gate_proj", "mlp.up_proj", "mlp.act_fn")]
    names += ["layers.1." + n for n in ("post_attention_layernorm", "post_feedforward_layernorm") if sandwich]
    trace, noted = traced(lens, ids(built), names)
    block, layer = trace.self_attention[1], lens.subject.model.layers[1]

    def normed(parts, name):
        norm = getattr(layer, name)
        weight = 1 + norm.weight if sandwich else norm.weight
        eps = norm.eps if sandwich else norm.variance_epsilon
        return rms_norm(parts, noted[f"layers.1.{name}"].read, weight, eps)

    parts = attention_parts(block)
    same(block.mixing_attention, mixing(parts))
    parts = normed(parts, behind) if sandwich else parts
    parts = with_own(parts, noted["layers.1.input_layernorm"].read)
    same(block.residual_norms, parts.norm(dim=-1))
    same(block.mixing_residual, mixing(parts))
    read, mlp = normed(parts, before), layer.mlp
    gate, up = noted["layers.1.mlp.gate_proj"].returned, noted["layers.1.mlp.up_proj"].returned
    active = noted["layers.1.mlp.act_fn"].returned
    through_up = read @ mlp.up_proj.weight.detach().double().mT
    through_gate = read @ mlp.gate_proj.weight.detach().double().mT
    rules = {
        "output_norms": active[:, :, None] * through_up,
        "output_norms_both": (active[:, :, None] * through_up + (active / gate * up)[:, :, None] * through_gate) / 2,
    }
    for name, units in rules.items():
        written = units @ mlp.down_proj.weight.detach().double().mT
        written = normed(written, "post_feedforward_layernorm") if sandwich else written
        same(block[name], (parts + written).norm(dim=-1))
        if name == "output_norms":
            same(block.mixing_output, mixing(parts + written))


def test_a_parallel_block_keeps_what_its_feed_forward_part_adds_for_the_token_itself():
    lens, built = lens_of("gptj")
    trace, noted = traced(lens, ids(built), ["h.1.ln_1", "h.1.mlp"])
    block = trace.self_attention[1]
    parts = with_own(attention_parts(block), noted["h.1.ln_1"].read)
    same(block.residual_norms, parts.norm(dim=-1))
    whole = with_own(parts, noted["h.1.mlp"].returned)
    same(block.output_norms, whole.norm(dim=-1))
    same(block.mixing_output, mixing(whole))


def test_cross_attention_keeps_the_residual_apart_from_the_keys():
    lens, built = lens_of("marian")
    name = "decoder.layers.0.encoder_attn_layer_norm"
    trace, noted = traced(lens, ids(built, ("input_ids", "decoder_input_ids")), [name])
    block, layer = trace.cross_attention[0], lens.subject.model.decoder.layers[0]
    parts = attention_parts(block)
    same(block.residual_norms, parts.norm(dim=-1))
    normed = layer_norm(parts, noted[name].read, layer.encoder_attn_layer_norm)
    same(block.normed_norms, normed.norm(dim=-1))
    with pytest.raises(nl.NormlensError, match="compares the queries of a block with each other"):
        _ = block.mixing_residual


def test_alti_is_the_distance_to_the_whole_written_out():
    """After the norm in BERT, at the sum with the residual in GPT-2; rows add up to 1."""
    for kind, read, norm in (
        ("bert", "encoder.layer.1.attention.self", "encoder.layer.1.attention.output.LayerNorm"),
        ("gpt2", "h.1.ln_1", None),
    ):
        lens, built = lens_of(kind)
        sums = norm or "h.1.ln_2"
        with Notes(lens.subject.model, [read, sums]) as notes:
            trace = lens.trace(ids(built), fields=("weights", "transformed", "alti"))
        block = trace.self_attention[1]
        parts, whole = with_own(attention_parts(block), notes.of[read].read), notes.of[sums].read
        if norm:
            parts = layer_norm(parts, whole, lens.subject.model.get_submodule(norm))
            whole = notes.of[sums].returned
        size = whole.abs().sum(-1)
        near = (size[:, :, None] - (whole[:, :, None] - parts).abs().sum(-1)).clamp_min(0)
        same(block.alti, near / near.sum(-1, keepdim=True))
        same(block.alti.sum(-1), torch.ones_like(size))


def test_effective_weights_give_the_same_output_and_the_same_numbers_alone(minilm):
    texts = ["A token can receive half of the attention and contribute almost nothing.", "Short."]
    trace = minilm.trace(texts, fields=("weights", "transformed", "effective_weights"))
    for block in trace.blocks:
        given, effective = (m.double() @ block.transformed.double() for m in (block.weights, block.effective_weights))
        torch.testing.assert_close(effective, given, rtol=1e-4, atol=1e-5)
    alone = minilm.trace(texts[1], fields=("effective_weights",))
    count = len(alone.tokens[0])
    for ours, theirs in zip(trace.blocks, alone.blocks, strict=True):
        batch = ours.effective_weights[1, :, :count, :count]
        torch.testing.assert_close(batch, theirs.effective_weights[0], rtol=1e-3, atol=1e-4)
    long = minilm.trace(" ".join(["one two three four five six seven"] * 8), fields=("weights", "effective_weights"))
    assert any(not torch.allclose(b.weights, b.effective_weights, atol=1e-3) for b in long.blocks)


def test_a_padded_batch_has_the_numbers_of_its_texts_alone(minilm):
    texts = ["A token can receive half of the attention and contribute almost nothing.", "Short."]
    fields = [name for name in FIELDS if name not in ("transformed", "weights")] + ["alti"]
    batch = minilm.trace(texts, fields=fields)
    for index, text in enumerate(texts):
        alone = minilm.trace(text, fields=fields)
        for ours, theirs in zip(batch[index].blocks, alone.blocks, strict=True):
            for name in fields:
                torch.testing.assert_close(ours[name], theirs[name], rtol=1e-4, atol=1e-5)


def test_a_saved_trace_knows_its_layers_and_what_they_lack(tmp_path):
    lens, built = lens_of("gpt2")
    lens.trace(ids(built), fields=FIELDS).save(tmp_path / "t.safetensors")
    block = nl.open(tmp_path / "t.safetensors").self_attention[1]
    assert block.mixing_output.shape == (2, 4)
    with pytest.raises(nl.NormlensError, match="no norm follows the sum"):
        _ = block.normed_norms


def test_what_the_probe_did_not_show_is_refused_in_the_pass():
    """The parts of the layer are refused; those of the attention are not."""
    lens, built = lens_of("bert")
    dense = lens.subject.model.encoder.layer[0].attention.output.dense
    handle = dense.register_forward_hook(lambda _, __, output: output * 2)
    try:
        with pytest.raises(nl.ReconstructionError, match="cannot be split in this pass"):
            lens.trace(ids(built), fields=("residual_norms",))
        lens.trace(ids(built))
    finally:
        handle.remove()
    lens.trace(ids(built), fields=("residual_norms",))


CHAINED = """
bert roberta distilbert electra deberta mpnet xlnet gpt2 gpt_neo gptj gpt_neox bloom falcon opt llama qwen3 gemma2 olmo2
granite cohere phi mixtral deepseek_v3 gpt_oss vit dinov2 wav2vec2 afmoe
""".split()


@pytest.mark.parametrize("kind", CHAINED)
def test_the_end_of_a_layer_is_what_the_residual_of_the_next_one_carries(kind):
    """Adding up does not prove the name of a state; that the next layer begins with it does."""
    built = probes.build(kind)
    inputs = built.probes[0].inputs
    lens = nl.load(built.model, probe=inputs)
    blocks = lens.trace(inputs, fields=("layer_inputs", "layer_outputs", "residual_norms")).blocks
    assert all("residual_norms" in block.kept for block in blocks)
    compared = 0
    for block, following in pairwise(blocks):
        if "layer_outputs" in block.kept and block["layer_outputs"].shape == following["layer_inputs"].shape:
            torch.testing.assert_close(block["layer_outputs"], following["layer_inputs"], rtol=1e-4, atol=1e-5)
            compared += 1
    assert compared


def test_an_error_in_what_is_done_with_a_block_is_raised():
    lens, built = lens_of("bert")

    def fail(block):
        raise ValueError("not of the model")

    with pytest.raises(ValueError, match="not of the model"):
        lens.each_block(fail, ids(built), fields=("residual_norms",))
