"""Small corpora and small models for the studies."""

from pathlib import Path

import pytest
import torch
from made_findings import two_kinds
from transformers import GPT2Config, GPT2LMHeadModel, MarianConfig, MarianMTModel

import normlens as nl
from normlens.studies import Report

TEXTS = [
    ("The mill stood by the river, and the river, they said, stood still.", "Nobody believed it. Why would they?"),
    ("A short one.", "And a second"),
    ("no stop and no pause here", "nor here either"),
    ("Seven, eight, nine; ten.", "Numbers, numbers and more of the same old numbers, one after the other, in a row."),
    ("What the baker knew, she kept.", "What she kept, she sold."),
]


@pytest.fixture(scope="session")
def texts():
    return TEXTS


@pytest.fixture(scope="session")
def causal(minilm):
    """A decoder that reads the bundled tokenizer's ids."""
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=30522, n_positions=64, n_embd=24, n_layer=2, n_head=3, bos_token_id=101, eos_token_id=102
    )
    return nl.load(GPT2LMHeadModel(config).eval(), minilm.subject.tokenizer)


@pytest.fixture(scope="session")
def translator(minilm):
    """A sequence-to-sequence model that reads the bundled tokenizer's ids."""
    torch.manual_seed(0)
    config = MarianConfig(
        vocab_size=30522, d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64,
        pad_token_id=0, eos_token_id=102, decoder_start_token_id=0, forced_eos_token_id=102,
    )  # fmt: skip
    return nl.load(MarianMTModel(config).eval(), minilm.subject.tokenizer)


@pytest.fixture(scope="session")
def written_report(tmp_path_factory) -> Path:
    """The page of `two_kinds`, in a folder that nobody writes to."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
    return Report(two_kinds()).save(tmp_path_factory.mktemp("report"))


@pytest.fixture
def as_users_run_it(monkeypatch):
    """Without the checks of types that only tests make, so that what a user gets wrong arrives as it does for users."""
    import jaxtyping

    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
