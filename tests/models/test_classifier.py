"""The bundled classifier: MiniLM's lower layers, tuned upper layers, two classes."""

import pytest
import torch
from safetensors.torch import load_file

import normlens as nl
from normlens.models import default_folder
from normlens.models.classifier import TUNED


@pytest.fixture(scope="module")
def classifier():
    return nl.load("sst2")


def test_it_is_proved_like_every_model_and_tells_good_from_bad(classifier):
    assert len([wire for wire in classifier.wires if wire.exact]) == 6
    texts = ["a gripping , beautifully acted film .", "a dull , lifeless mess ."]
    inputs = classifier.subject.tokenizer(texts, return_tensors="pt", padding=True)
    with torch.no_grad():
        classes = classifier.subject.model(**inputs).logits.argmax(dim=-1).tolist()
    assert [classifier.subject.config.id2label[number] for number in classes] == ["positive", "negative"]


def test_below_the_tuned_layers_it_is_minilm(classifier):
    package, tuned = load_file(default_folder() / "model.safetensors"), load_file(TUNED)
    state = classifier.subject.model.state_dict()
    for name, value in state.items():
        if name in tuned:
            assert torch.equal(value, tuned[name].float()), name
        else:
            assert torch.equal(value, package[name.removeprefix("bert.")]), name
    assert not torch.equal(
        state["bert.encoder.layer.5.output.dense.weight"], package["encoder.layer.5.output.dense.weight"]
    )
    assert {name for name in tuned if name.startswith("classifier")} == {"classifier.weight", "classifier.bias"}


def test_its_files_are_small_and_say_where_they_come_from():
    assert TUNED.stat().st_size < 12e6
    card = TUNED.with_name("README.md").read_text(encoding="utf-8")
    assert all(word in card for word in ("SST-2", "Accuracy", "python tools/classifier.py"))


def test_loading_it_takes_no_random_numbers_and_another_precision():
    before = torch.random.get_rng_state()
    lens = nl.load("sst2", dtype="float64")
    assert torch.equal(before, torch.random.get_rng_state())
    assert next(lens.subject.model.parameters()).dtype == torch.float64


def test_a_model_of_its_name_in_the_working_directory_comes_first_and_no_other_folder(tmp_path, monkeypatch):
    (tmp_path / "sst2").mkdir()
    monkeypatch.chdir(tmp_path)
    assert nl.load("sst2").subject.config.id2label[1] == "positive"
    (tmp_path / "sst2" / "config.json").write_text("{}")
    with pytest.raises(nl.LoadError, match="No model can be loaded from the folder 'sst2'"):
        nl.load("sst2")
