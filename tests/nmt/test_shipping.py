"""What is shipped is small, loads by transformers' own means, and holds what was trained."""

import json
import shutil

import pytest
import torch

from normlens.models.quiet import quiet
from normlens.nmt import FolderError, shipped

FILES = {
    "README.md", "config.json", "generation_config.json", "model.safetensors",
    "source.spm", "target.spm", "target_vocab.json", "tokenizer_config.json", "vocab.json",
}  # fmt: skip


@pytest.fixture(scope="module")
def ship(finished, tmp_path_factory):
    return shipped(finished[0], tmp_path_factory.mktemp("ship") / "small")


def test_the_weights_are_stored_once_in_half_precision(ship):
    from safetensors.torch import load_file

    assert {path.name for path in ship.iterdir()} == FILES
    weights = load_file(ship / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}
    assert not [name for name in weights if "position" in name or "lm_head" in name]
    assert json.loads((ship / "config.json").read_text())["dtype"] == "float16"


def test_it_loads_in_single_precision_with_the_stored_values(ship, finished):
    from transformers import MarianMTModel

    with quiet():
        whole = MarianMTModel.from_pretrained(finished[0]).state_dict()
        model = MarianMTModel.from_pretrained(ship, dtype=torch.float32)
    assert model.lm_head.weight.data_ptr() == model.model.decoder.embed_tokens.weight.data_ptr()
    for name, tensor in model.state_dict().items():
        expected = whole[name] if "position" in name else whole[name].half().float()
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, expected), name


def test_its_tokenizer_reads_and_writes_as_before(ship, finished, toy):
    from transformers import AutoTokenizer

    with quiet():
        before, after = (AutoTokenizer.from_pretrained(folder) for folder in (finished[0], ship))
    for source, target in toy[:9]:
        assert after(source).input_ids == before(source).input_ids
        ids = after(text_target=target).input_ids
        assert ids == before(text_target=target).input_ids
        assert after.decode(ids, skip_special_tokens=True) == before.decode(ids, skip_special_tokens=True)


def test_no_file_tells_where_it_was_made(ship, finished):
    for path in ship.iterdir():
        for place in (finished[0].parent, ship.parent):
            assert str(place).encode() not in path.read_bytes(), path.name


def test_the_card_comes_along(ship, finished):
    card = (ship / "README.md").read_text(encoding="utf-8")
    assert card.startswith((finished[0] / "README.md").read_text(encoding="utf-8"))
    assert "half precision" in card


def test_an_unfinished_training_is_not_shipped(finished, tmp_path):
    shutil.copytree(finished[0], tmp_path / "m")
    (tmp_path / "m" / "README.md").unlink()
    with pytest.raises(FolderError, match="no model card"):
        shipped(tmp_path / "m", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_weights_beyond_half_precision_are_refused(finished, tmp_path):
    from safetensors.torch import load_file, save_file

    shutil.copytree(finished[0], tmp_path / "m")
    weights = load_file(tmp_path / "m" / "model.safetensors")
    weights["model.encoder.layers.0.fc1.bias"][0] = 1e6
    save_file(weights, tmp_path / "m" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(FolderError, match=r"do not fit.*\n.*1e\+06"):
        shipped(tmp_path / "m", tmp_path / "out")
