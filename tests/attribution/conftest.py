"""Small random models with heads: a classifier, a language model, a translation model, one that fills a gap."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    MarianConfig,
    MarianMTModel,
    PreTrainedTokenizerFast,
)

import normlens as nl

WORDS = "<pad> <s> </s> <unk> <mask> the a cat dog sat ran on mat under tree and slept quietly big old".split()
ENCODER = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
ENCODER |= {"vocab_size": len(WORDS), "max_position_embeddings": 40, "initializer_range": 0.5, "pad_token_id": 0}
LABELS = {"id2label": {0: "bad", 1: "so-so", 2: "good"}, "label2id": {"bad": 0, "so-so": 1, "good": 2}}


def words(template):
    """A tokenizer of whole words."""
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if template is not None:
        inner.post_processor = processors.TemplateProcessing(single=template, special_tokens=[("<s>", 1), ("</s>", 2)])
    named = {
        "pad_token": "<pad>",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    }
    return PreTrainedTokenizerFast(tokenizer_object=inner, **named)


@pytest.fixture(scope="session")
def classifier():
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(**ENCODER, **LABELS, num_labels=3)).eval()
    return nl.load(model, words("<s> $A </s>"))


@pytest.fixture(scope="session")
def filler():
    torch.manual_seed(1)
    return nl.load(BertForMaskedLM(BertConfig(**ENCODER)).eval(), words("<s> $A </s>"))


@pytest.fixture(scope="session")
def writer():
    torch.manual_seed(2)
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=len(WORDS), n_positions=40, initializer_range=0.5)
    config.update(ids)
    return nl.load(GPT2LMHeadModel(config).eval(), words(None))


@pytest.fixture(scope="session")
def translator():
    torch.manual_seed(3)
    size = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2}
    size |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "vocab_size": len(WORDS)}
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
    config = MarianConfig(**size, **ids, forced_eos_token_id=None, init_std=0.5, max_position_embeddings=40)
    return nl.load(MarianMTModel(config).eval(), words("$A </s>"))
