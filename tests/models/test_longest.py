"""How long a text may be is said by the table of its own positions, not by that of a picture's patches."""

import pytest
from transformers import GPT2Config, GPT2Model

import normlens as nl
from normlens import probes
from normlens.models import Subject, longest


@pytest.mark.filterwarnings("ignore:.*attention blocks of 'kosmos-2':UserWarning")
@pytest.mark.parametrize("kind", ["llava", "paligemma", "kosmos-2", "janus"])
def test_the_positions_of_a_vision_tower_do_not_limit_the_text(kind):
    built = probes.build(kind)
    lens = nl.load(built.model, probe=built.probes[0].inputs)
    assert lens.trace(built.probes[0].inputs).error < 1e-5


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("bert", "max_position_embeddings"),
        ("gpt2", "n_positions"),
        ("bart", "max_position_embeddings"),
        ("opt", "max_position_embeddings"),
        ("xlm", "max_position_embeddings"),
        ("whisper", "max_target_positions"),
    ],
)
def test_the_table_beside_the_token_embedding_does(kind, field):
    model = probes.build(kind).model
    assert longest(Subject(model, None, kind, "")) == getattr(model.config, field)


def test_a_padding_row_is_no_position():
    model = probes.build("roberta").model
    expected = model.config.max_position_embeddings - model.config.pad_token_id - 1
    assert longest(Subject(model, None, "roberta", "")) == expected


def test_a_table_that_the_vocabulary_outgrew_still_counts():
    model = GPT2Model(GPT2Config(n_embd=8, n_layer=1, n_head=2, n_positions=12, vocab_size=20))
    model.resize_token_embeddings(32)
    model.config.vocab_size = 20
    assert longest(Subject(model, None, "gpt2", "")) == 12
