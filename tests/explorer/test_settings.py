"""Which models an explorer may run, found out without loading any."""

import json

import pytest

from normlens.explorer import ServerError, allowed

KINDS = {
    "encoder": {"architectures": ["BertModel"]},
    "decoder": {"architectures": ["GPT2LMHeadModel"]},
    "seq2seq": {"architectures": ["BartForConditionalGeneration"], "is_encoder_decoder": True},
}


def folder(path, config):
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config))
    return str(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_says_how_many_sides_its_model_has(tmp_path, kind):
    (one,) = allowed([folder(tmp_path / "mine", KINDS[kind])])
    assert (one.name, one.kind) == ("mine", kind)


def test_two_folders_of_one_name_are_told_apart_and_one_given_twice_is_one(tmp_path):
    first, second = (folder(tmp_path / at / "mine", KINDS["encoder"]) for at in "ab")
    assert {one.name for one in allowed([first, second])} == {first, second}
    assert [one.name for one in allowed([first, first])] == ["mine"]


@pytest.mark.parametrize("text", ["", "[]", "{", "7"])
def test_a_folder_without_a_configuration_is_refused(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ServerError, match="save_pretrained"):
        allowed([str(tmp_path)])


def test_without_a_name_there_are_the_bundled_ones():
    assert [one.name for one in allowed([])] == ["all-MiniLM-L6-v2", "bundled de-en", "bundled en-de"]
