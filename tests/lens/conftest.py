"""Small models with a tokenizer made on the spot."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BartConfig, BartForConditionalGeneration, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import normlens as nl

WORDS = "<pad> <s> </s> <unk> the a cat dog sat ran on mat under tree and slept quietly big old".split()


@pytest.fixture(scope="session")
def tokenizer():
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


@pytest.fixture(scope="session")
def translator(tokenizer):
    torch.manual_seed(0)
    size = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 2}
    size |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "vocab_size": len(WORDS)}
    ids = {
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": 2,
    }
    config = BartConfig(**size, **ids, init_std=0.5, max_position_embeddings=40)
    return nl.load(BartForConditionalGeneration(config).eval(), tokenizer)


@pytest.fixture(scope="session")
def writer(tokenizer):
    torch.manual_seed(0)
    config = GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=len(WORDS), n_positions=40, initializer_range=0.5)
    config.pad_token_id, config.bos_token_id, config.eos_token_id = 0, 1, 2
    return nl.load(GPT2LMHeadModel(config).eval(), tokenizer)
