"""Which pairs are masked is read from what the softmax got, not from weights that happen to be 0."""

import pytest
import torch
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

import normlens as nl

SMALL = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 50}
SIZE, WINDOW = 12, 4
CAUSAL = torch.ones(SIZE, SIZE).tril()


def sharp(model):
    """Queries so long that most weights are too small for a number."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if any(
                part in name for part in ("query.weight", "c_attn.weight", "q_proj.weight", "SelfAttention.q.weight")
            ):
                parameter.mul_(300 if "c_attn" in name else 2e5)
    return model.eval()


def mistral():
    config = MistralConfig(**SMALL, num_key_value_heads=1, head_dim=8, sliding_window=WINDOW, attention_dropout=0.0)
    return MistralForCausalLM(config)


MODELS = {
    "bert": (lambda: BertModel(BertConfig(**SMALL)), torch.ones(SIZE, SIZE)),
    "gpt2": (lambda: GPT2LMHeadModel(GPT2Config(n_embd=24, n_layer=2, n_head=2, vocab_size=50)), CAUSAL),
    "mistral": (mistral, CAUSAL - torch.ones(SIZE, SIZE).tril(-WINDOW)),
}


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", MODELS)
def test_a_weight_too_small_for_a_number_is_no_mask(name, attention):
    torch.manual_seed(0)
    make, expected = MODELS[name]
    model = sharp(make())
    model.set_attn_implementation(attention)
    inputs = {"input_ids": torch.arange(SIZE)[None] % 50, "attention_mask": torch.ones(1, SIZE, dtype=torch.long)}
    for block in nl.load(model).trace(inputs, fields=("weights", "visible")).self_attention:
        assert bool((block.weights == 0).all(dim=1)[expected[None] > 0].any())
        assert torch.equal(block.visible[0], expected)


def test_padding_and_masks_of_every_side_are_seen():
    torch.manual_seed(0)
    config = T5Config(d_model=24, d_kv=12, d_ff=16, num_layers=1, num_heads=2, vocab_size=50, decoder_start_token_id=0)
    lens = nl.load(T5ForConditionalGeneration(config).eval())
    inputs = {
        "input_ids": torch.arange(10).view(2, 5) % 50,
        "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
        "decoder_input_ids": torch.arange(8).view(2, 4) % 50,
    }
    trace = lens.trace(inputs, fields=("weights", "visible"))
    there = torch.tensor([[1.0, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    assert torch.equal(trace.encoder_attention[0]["visible"], there[:, :, None] * there[:, None])
    assert torch.equal(trace.decoder_attention[0]["visible"], torch.ones(4, 4).tril().expand(2, 4, 4))
    assert torch.equal(trace.cross_attention[0]["visible"], there[:, None].expand(2, 4, 5))
