"""Small tokenizers of each kind, made on the spot."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn
from transformers import PreTrainedTokenizerFast

from normlens.models import Subject

TEXTS = ["The cat sat , slept, and dreamt.", "So did the dog — all day long.", "Birds sang , or so they say."]


@pytest.fixture(scope="session")
def shared():
    """Files that are not part of the package, beside the repository."""
    folder = Path(__file__).parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the data to try normlens on is not beside the repository")
    return folder


@pytest.fixture(scope="session")
def byte_level():
    """As GPT-2 and RoBERTa write tokens: Ġ before a word, bytes as letters."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXTS * 4, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    )
    return tokenizer


@pytest.fixture(scope="session")
def sentence_pieces():
    """As T5, Marian and Llama write tokens: ▁ before a word."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    specials = ["<pad>", "</s>", "<unk>", "<s>"]
    tokenizer.train_from_iterator(
        TEXTS * 4, trainers.BpeTrainer(vocab_size=200, special_tokens=specials, show_progress=False)
    )
    return tokenizer


@pytest.fixture(scope="session")
def wrapped():
    """A tokenizer with these special tokens, around a backend."""

    def wrap(backend, **special):
        return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(backend.to_str()), **special)

    return wrap


@pytest.fixture(scope="session")
def subject_of():
    """A subject with this tokenizer and configuration, whose model is never run."""

    def make(tokenizer, **config):
        model = nn.Linear(1, 1)
        model.config = SimpleNamespace(**config)
        return Subject(model, tokenizer, "tiny", "0")

    return make
