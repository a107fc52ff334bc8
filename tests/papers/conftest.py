"""A file like Clark et al.'s, and a model of the paper's number of heads."""

import pytest
import torch
from transformers import BertConfig, BertModel

from normlens.corpora import default_corpus


@pytest.fixture(scope="session")
def sequences(minilm):
    """Pairs of the bundled text as wordpieces: [CLS] P1 [SEP] P2 [SEP]."""
    tokenizer = minilm.subject.tokenizer
    texts = [item.texts for item in default_corpus()][:4]
    return [
        tokenizer.convert_ids_to_tokens(tokenizer(*pair, truncation=True, max_length=48)["input_ids"]) for pair in texts
    ]


@pytest.fixture(scope="session")
def pkl(sequences, tmp_path_factory):
    """As Python 2 writes it: protocol 2, byte strings."""
    path = tmp_path_factory.mktemp("clark") / "unlabeled_attn.pkl"
    path.write_bytes(
        b"\x80\x02]("
        + b"".join(b"}" + text("tokens") + b"](" + b"".join(map(text, tokens)) + b"es" for tokens in sequences)
        + b"e."
    )
    return path


def text(token):
    return b"U" + bytes([len(token)]) + token.encode("latin1")


@pytest.fixture(scope="session")
def twelve(minilm, tmp_path_factory):
    """A folder with a random BERT of 12 layers of 12 heads, 2 dimensions each."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30522, hidden_size=24, num_hidden_layers=12, num_attention_heads=12, intermediate_size=24,
        max_position_embeddings=128,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("twelve")
    BertModel(config).eval().save_pretrained(folder)
    minilm.subject.tokenizer.save_pretrained(folder)
    return folder
