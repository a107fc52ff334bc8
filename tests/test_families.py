"""Every kind of architecture, built tiny from its configuration: each block is exact, batched with padding."""

import warnings

import pytest
import torch

import normlens as nl
from normlens import probes
from normlens.capture import run
from normlens.lens import PartlyExact
from normlens.measures import measured

EXACT = """
bert roberta distilbert albert electra deberta deberta-v2 mpnet modernbert squeezebert funnel xlnet xlm flaubert rembert
roformer megatron-bert openai-gpt gpt2 gpt_neo gptj gpt_neox codegen bloom falcon opt mpt llama mistral mixtral qwen2
qwen3 gemma gemma2 gemma3_text gpt_oss phi3 deepseek_v3 jamba t5 mt5 bart mbart marian pegasus fsmt m2m_100 whisper
speech_to_text wav2vec2 hubert vit deit swin beit clip siglip dinov2 qwen2_vl_text trocr blip_2_qformer
""".split()
GATED = """
qwen3_next qwen3_5_text qwen4_exp_text afmoe step3p5 step3p7 minicpmv4_7 bitnet kosmos-2 granite_swa
granitemoe_swa laguna axk2 beam hy_v4 muse_glimmer muse_spark hrm_text diffllama aimv2
""".split()
WITH_IMAGES = [
    "qwen3_5",
    "qwen4_exp",
    "minicpmv4_6",
    "minicpm_ocr",
]  # their probe is a batch that is traced text by text
REFUSED = {
    "deepseek_v4": "'bmm', which is not a plain matrix",
    "longformer": "does not multiply the values",
    "convbert": "before the output matrix",
}


@pytest.mark.parametrize("kind", EXACT + GATED)
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
        if block.no_transformed is None:
            assert block.transformed_norms.shape == block.weights.shape[:2] + block.weights.shape[3:]
        assert bool((block.summed_norms <= block.weighted_norms.sum(dim=1) * (1 + 1e-5) + 1e-12).all())


@pytest.mark.parametrize("kind", WITH_IMAGES)
def test_every_block_of_a_gated_model_that_reads_images_is_exact(kind):
    built = probes.build(kind)
    lens = nl.load(built.model, probe=built.probes[0].inputs)
    assert lens.wires
    assert all(wire.exact and wire.error < 1e-5 for wire in lens.wires)


@pytest.mark.parametrize("kind", [*GATED, "bailing_hybrid"])
@torch.no_grad()
def test_gated_contributions_are_those_of_every_vector_written_out(kind):
    """Every α·scale·(gate ⊙ v)·W_O of every pair, in double precision."""
    built = probes.build(kind)
    inputs, found = built.probes[0].inputs, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartlyExact)
        lens = nl.load(built.model, probe=inputs)
    options = lens.examination.options
    run(built.model, inputs, found.append, **options)
    assert any(block.scales is not None or block.gates is not None for block in found) == (kind != "aimv2")
    for attended in found:
        numbers = measured(attended, ("weights", "transformed_norms", "weighted_norms", "summed_norms"), None).kept
        weights = attended.weights.double()
        weights = weights if attended.scales is None else weights * attended.scales.double()[..., None]
        values = attended.values.double()[:, :, None]
        values = values if attended.gates is None else values * attended.gates.double()[:, :, :, None]
        parts = torch.einsum("bhtsd,hdm->bhtsm", weights[..., None] * values, attended.out_weight.double())
        ours = numbers.get("weighted_norms")
        ours = weights.abs() * numbers["transformed_norms"].double()[:, :, None] if ours is None else ours.double()
        torch.testing.assert_close(ours, parts.norm(dim=-1), rtol=1e-5, atol=1e-9)
        torch.testing.assert_close(
            numbers["summed_norms"].double(), parts.sum(dim=1).norm(dim=-1), rtol=1e-5, atol=1e-9
        )
        assert ("transformed_norms" in numbers) == (attended.no_transformed is None)


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
