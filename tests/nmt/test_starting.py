"""A training can begin from a model that was trained before."""

import json
from dataclasses import replace

import pytest
import torch
from toy_text import SUBWORDS, TOY, begun, write_pairs

from normlens.cli.main import main
from normlens.nmt import FolderError, load_translator, train


def weights(folder):
    return load_translator(folder)[0].state_dict()


def test_a_start_gives_its_subwords_sizes_and_weights(finished, toy, tmp_path):
    start, out = finished[0], tmp_path / "more"
    other = replace(TOY, width=32, inner=64, layers=2, updates=1, every=1, rate=1e-12)
    train(toy, out, recipe=other, languages=("de", "en"), start=start)
    for name in SUBWORDS:
        assert (out / name).read_bytes() == (start / name).read_bytes()
    before, after = weights(start), weights(out)
    assert before.keys() == after.keys()
    assert max(float((before[name] - after[name]).abs().max()) for name in before) < 1e-9
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "| width | 16 |" in card
    assert "trained from an earlier model (sha256 " in card


def test_a_start_is_where_the_loss_begins_from(finished, toy, tmp_path):
    start = finished[0]
    train(toy, tmp_path / "more", recipe=replace(TOY, updates=2, every=2), languages=("de", "en"), start=start)
    train(toy, begun(tmp_path / "fresh", start), recipe=replace(TOY, updates=2, every=2), languages=("de", "en"))
    more, fresh = (
        json.loads((tmp_path / name / "history.json").read_text())[-1]["valid_loss"] for name in ("more", "fresh")
    )
    assert more < 0.7 * fresh


def test_a_training_from_another_start_does_not_go_on(finished, toy, tmp_path):
    train(toy, tmp_path / "a", recipe=replace(TOY, updates=1, every=1), languages=("de", "en"), start=finished[0])
    with pytest.raises(FolderError, match=r"start: [0-9a-f]{64} there, fresh weights now"):
        train(toy, tmp_path / "a", recipe=replace(TOY, updates=1, every=1), languages=("de", "en"), resume=True)


def test_a_folder_without_a_model_is_no_start(toy, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FolderError, match=r"has no config.json, no model.safetensors, no source.spm"):
        train(toy, tmp_path / "a", recipe=TOY, start=tmp_path / "empty")
    assert not (tmp_path / "a").exists()


def test_sizes_and_a_start_exclude_each_other(finished, toy, tmp_path, capsys):
    source, target = write_pairs(tmp_path, toy)
    command = ["nmt", "train", "--source", str(source), "--target", str(target), "--out", str(tmp_path / "a")]
    assert main([*command, "--start", str(finished[0]), "--width", "64", "--heads", "2"]) == 1
    assert "--width and --heads cannot be given" in capsys.readouterr().err
    before = torch.get_num_threads()
    started = ["--start", str(finished[0]), "--updates", "1", "--every", "1", "--cooldown", "0.5"]
    assert main([*command, *started, "--languages", "de-en"]) == 0
    assert torch.get_num_threads() == before
    assert "| cooldown | 0.5 |" in (tmp_path / "a" / "README.md").read_text(encoding="utf-8")
