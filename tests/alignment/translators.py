"""Tiny translation models and their text, for the tests of this room."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

import normlens as nl

PIECES = "<pad> </s> <unk> das ein kleine hau ##s ist alt the a small house is ol ##d here".split()
PAIRS = [
    ("das haus ist alt".split(), "the house is old".split()),
    ("ein haus".split(), "a".split()),
    ("das kleine haus ist das alt".split(), "the small house is here is old".split()),
]


def tokens():
    """A WordPiece tokenizer that ends a sentence with </s>."""
    book = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(PIECES)}, unk_token="<unk>"))
    book.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    book.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=book, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def marian(seed):
    """A Marian model of two layers and two heads, untrained, of at most twelve positions."""
    torch.manual_seed(seed)
    config = MarianConfig(
        d_model=8,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=8,
        decoder_ffn_dim=8,
        max_position_embeddings=12,
        init_std=0.4,
        vocab_size=len(PIECES),
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
    )
    return nl.load(MarianMTModel(config).eval(), tokens())
