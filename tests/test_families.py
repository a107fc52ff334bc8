"""Every kind of architecture, built tiny from its configuration: each block is exact, batched with padding."""

import pytest
import torch

import normlens as nl
from normlens import probes

EXACT = """
bert roberta distilbert albert electra deberta deberta-v2 mpnet modernbert squeezebert funnel xlnet xlm flaubert rembert
roformer megatron-bert openai-gpt gpt2 gpt_neo gptj gpt_neox codegen bloom falcon opt mpt llama mistral mixtral qwen2
qwen3 gemma gemma2 gemma3_text gpt_oss phi3 deepseek_v3 jamba t5 mt5 bart mbart marian pegasus fsmt m2m_100 whisper
speech_to_text wav2vec2 hubert vit deit swin beit clip siglip dinov2 qwen2_vl_text trocr blip_2_qformer
""".split()
REFUSED = {
    "qwen3_next": "gate",
    "bitnet": "before any output matrix",
    "longformer": "does not multiply the values",
    "convbert": "before the output matrix",
}


@pytest.mark.parametrize("kind", EXACT)
def test_every_block_is_exact(kind):
    built = probes.build(kind)
    lens = nl.load(built.model, probe=built.probes[0].inputs)
    assert lens.wires
    assert all(wire.exact and wire.error < 1e-5 for wire in lens.wires)
    trace = lens.trace(built.probes[0].inputs)
    assert trace.error < 1e-5
    assert len(trace.blocks) == len(lens.wires)
    for block in trace.blocks:
        assert bool((block.weights.sum(dim=-1) <= 1 + 1e-5).all())
        assert bool((block.summed_norms <= block.weighted_norms.sum(dim=1) * (1 + 1e-5) + 1e-12).all())


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_exact_says_why(kind):
    built = probes.build(kind)
    with pytest.raises(nl.ReconstructionError, match=REFUSED[kind]):
        nl.load(built.model, probe=built.probes[0].inputs)


@pytest.mark.parametrize("kind", ["bert", "llama", "bart"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_any_precision(kind, dtype):
    built = probes.build(kind)
    lens = nl.load(built.model.to(dtype), probe=built.probes[0].inputs)
    block = lens.trace(built.probes[0].inputs).blocks[0]
    assert block.transformed_norms.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


@pytest.mark.parametrize("kind", ["bert", "llama", "gpt2", "t5", "vit"])
def test_fused_and_written_out_attention_show_the_same(kind):
    built = probes.build(kind)
    found = {}
    for implementation in ("eager", "sdpa"):
        built.model.set_attn_implementation(implementation)
        trace = nl.load(built.model, probe=built.probes[0].inputs).trace(built.probes[0].inputs)
        found[implementation] = [block.summed_norms for block in trace.blocks]
    for eager, fused in zip(*found.values(), strict=True):
        torch.testing.assert_close(eager, fused, rtol=1e-4, atol=1e-5)
