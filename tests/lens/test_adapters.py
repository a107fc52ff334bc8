"""Models in wrappers of other libraries: told by what runs, not by what they are called."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, MarianConfig, MarianMTModel

import normlens as nl

peft = pytest.importorskip("peft", reason="peft is not installed")
KINDS = {(kind, layer) for kind in ("encoder", "decoder", "cross") for layer in range(2)}


def marian():
    torch.manual_seed(0)
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    widths = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 32}
    ids = {"vocab_size": 60, "pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1}
    return MarianMTModel(MarianConfig(**sizes, **widths, **ids)).eval()


def gpt2():
    torch.manual_seed(0)
    ids = {"vocab_size": 60, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1}
    return GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=32, **ids)).eval()


@pytest.mark.parametrize("task", ["SEQ_2_SEQ_LM", None])
def test_an_adapted_translation_model_keeps_its_kinds(task):
    """Also in a wrapper whose forward does not say what it takes."""
    config = peft.LoraConfig(target_modules=["q_proj", "v_proj"], r=2, task_type=task, init_lora_weights=False)
    lens = nl.load(peft.get_peft_model(marian(), config).eval())
    trace = lens.trace({"input_ids": torch.arange(5, 9)[None], "decoder_input_ids": torch.arange(9, 13)[None]})
    assert {(block.kind, block.layer) for block in trace.blocks} == KINDS
    assert {(block.tgt, block.src) for block in trace.cross_attention} == {("target", "source")}


def test_an_adapter_on_the_output_matrix_is_refused_and_exact_once_merged():
    config = peft.LoraConfig(target_modules=["out_proj"], r=2, task_type="SEQ_2_SEQ_LM", init_lora_weights=False)
    model = peft.get_peft_model(marian(), config).eval()
    with pytest.raises(nl.ReconstructionError, match="two matrices"):
        nl.load(model)
    assert len(nl.load(model.merge_and_unload().eval()).wires) == len(KINDS)


def test_virtual_tokens_of_a_tuned_prompt_are_no_words():
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    trace = nl.load(peft.get_peft_model(gpt2(), config).eval()).trace([[5, 6, 7, 8]])
    for block in trace.blocks:
        assert (block.tgt, block.src) == ("virtual+text", "virtual+text")
        assert block.weights.shape == (1, 2, 7, 7)
        assert trace.side(block.src).tokens == ("[+0]", "[+1]", "[+2]", "5", "6", "7", "8")
        assert trace.side(block.src).special == (True,) * 3 + (False,) * 4


def test_a_tuned_prefix_stands_among_the_keys_alone():
    config = peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    trace = nl.load(peft.get_peft_model(gpt2(), config).eval()).trace([[5, 6, 7, 8]])
    for block in trace.blocks:
        assert (block.tgt, block.src) == ("text", "virtual+text")
        assert trace.side(block.src).tokens == ("[+0]", "[+1]", "[+2]", "5", "6", "7", "8")
