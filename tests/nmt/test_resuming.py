"""A training that is killed and resumed is the training that was not; a folder of something else is refused."""

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from toy_text import SUBWORDS, TOY, begun, toy_pairs, write_pairs

from normlens.errors import NormlensError
from normlens.nmt import FolderError, Watch, parallel, train, training
from normlens.nmt.folder import Setup, StateError, enter

KILLED = """
import os, signal, sys, torch
from pathlib import Path
from toy_text import TOY
from normlens.nmt import Watch, parallel, train
def updated(one):
    if one.update == 17:
        os.kill(os.getpid(), signal.SIGKILL)
torch.set_num_threads(1)
train(parallel(*sys.argv[1:3]), Path(sys.argv[3]), recipe=TOY, resume=True, watch=Watch(updated=updated))
"""


class Killed(BaseException):
    """What no `except Exception` stops."""


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return parallel(*write_pairs(tmp_path_factory.mktemp("toy"), toy_pairs()))


@pytest.fixture(scope="module")
def whole(text, finished, tmp_path_factory):
    """A training that nothing happened to: its folder and its last state."""
    folder = begun(tmp_path_factory.mktemp("whole") / "m", finished[0])
    return folder, last_state(text, folder, resume=True)


def last_state(text, folder, **options):
    """Train to the end and return the state that was saved last."""
    states = []
    train(
        text,
        folder,
        recipe=TOY,
        watch=Watch(validated=lambda look: states.append(torch.load(folder / "training.pt", weights_only=True))),
        **options,
    )
    return states[-1]


def check_same(folder, state, whole):
    for name in ("model.safetensors", *SUBWORDS):
        assert (folder / name).read_bytes() == (whole[0] / name).read_bytes(), name
    for name, tensor in whole[1]["model"].items():
        assert torch.equal(state["model"][name], tensor), name
    assert state["update"] == 30
    looks = [[{**look, "minutes": 0} for look in one["history"]] for one in (state, whole[1])]
    assert looks[0] == looks[1]


@pytest.mark.slow
def test_a_training_killed_by_the_system_ends_with_the_same_bytes(text, whole, tmp_path):
    folder = begun(tmp_path / "m", whole[0])
    job = [sys.executable, "-c", KILLED, str(text.source), str(text.target), str(folder)]
    found = subprocess.run(job, capture_output=True, cwd=Path(__file__).parent, check=False)
    assert found.returncode == -signal.SIGKILL, found.stderr.decode()
    assert torch.load(folder / "training.pt", weights_only=True)["update"] == 10
    check_same(folder, last_state(text, folder, resume=True), whole)


@pytest.mark.parametrize("place", ["updated 3", "updated 20", "validated 20", "save_state 1", "save_state 2", "card 1"])
def test_whenever_it_is_killed_it_ends_with_the_same_bytes(text, whole, tmp_path, monkeypatch, place):
    folder = begun(tmp_path / "m", whole[0])
    event, number = place.split()

    def kill(one):
        if one.update == int(number):
            raise Killed

    if event in ("updated", "validated"):
        watch = Watch(**{event: kill})
    else:
        watch, real, calls = Watch(), getattr(training, event), []

        def killed(*arguments, **options):
            calls.append(event)
            if len(calls) == int(number):
                raise Killed
            return real(*arguments, **options)

        monkeypatch.setattr(training, event, killed)
    with pytest.raises(Killed):
        train(text, folder, recipe=TOY, resume=True, watch=watch)
    monkeypatch.undo()
    if place == "card 1":
        train(text, folder, recipe=TOY, resume=True)
        assert (folder / "model.safetensors").read_bytes() == (whole[0] / "model.safetensors").read_bytes()
        assert (folder / "README.md").exists()
    else:
        check_same(folder, last_state(text, folder, resume=True), whole)
    assert not (folder / "training.pt").exists()


def test_a_finished_training_says_so_and_changes_nothing(text, whole):
    before = {path: path.read_bytes() for path in whole[0].iterdir()}
    lines = []
    train(text, whole[0], recipe=TOY, resume=True, watch=Watch(noted=lines.append))
    assert lines == ["This training is finished: 30 updates were made."]
    assert {path: path.read_bytes() for path in whole[0].iterdir()} == before


def test_a_folder_without_a_plan_is_accepted_and_gets_its_card(text, whole, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(whole[0], folder)
    for name in ("recipe.json", "README.md"):
        (folder / name).unlink()
    train(text, folder, recipe=TOY, resume=True)
    assert (folder / "README.md").read_bytes() == (whole[0] / "README.md").read_bytes()
    with pytest.raises(FolderError, match="a model of 30 updates, but no state"):
        train(text, folder, recipe=replace(TOY, updates=40), resume=True)


def test_a_folder_that_holds_a_model_is_refused_without_resume(text, whole):
    with pytest.raises(FolderError, match=r"already holds a model.*\n.*--resume"):
        train(text, whole[0], recipe=TOY)


OTHER = {
    "width": ({"recipe": replace(TOY, width=32)}, "width: 16 there, 32 now"),
    "updates": ({"recipe": replace(TOY, updates=40)}, "updates: 30 there, 40 now"),
    "languages": ({"languages": ("de", "en")}, "languages: .*'source', 'target'.* there"),
    "seed": ({"seed": 1}, "seed: 0 there, 1 now"),
    "text": ({"pairs": toy_pairs(40)}, "text: .* there"),
    "validation": ({"valid": toy_pairs(4)}, "valid: its last 3 pairs"),
    "limit": ({"valid_limit": 2}, "valid_limit: 500 there, 2 now"),
}


@pytest.mark.parametrize("name", OTHER)
def test_another_training_is_not_gone_on_with(text, whole, name):
    change, said = OTHER[name]
    options = {"pairs": text, "recipe": TOY, "resume": True} | change
    with pytest.raises(FolderError, match=said):
        train(options.pop("pairs"), whole[0], **options)


def test_a_folder_of_something_else_is_left_alone(text, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for resume in (False, True):
        with pytest.raises(FolderError, match=r"not of a training.\n  Got: notes\.txt"):
            train(text, tmp_path, recipe=TOY, resume=resume)
    with pytest.raises(FolderError, match="is a file"):
        train(text, tmp_path / "notes.txt", recipe=TOY)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_model_that_was_not_trained_here_is_not_gone_on_with(text, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(FolderError, match="no state to resume from"):
        train(text, tmp_path, recipe=TOY, resume=True)


@pytest.mark.parametrize("content", [b"", b"no state at all", None])
def test_a_damaged_state_is_refused_in_words(text, whole, tmp_path, content):
    folder = begun(tmp_path / "m", whole[0])
    if content is None:
        torch.save({"model": {}, "optimizer": {}}, folder / "training.pt")
    else:
        (folder / "training.pt").write_bytes(content)
    with pytest.raises(StateError, match="does not hold the state"):
        train(text, folder, recipe=TOY, resume=True)


def test_a_state_of_another_size_is_refused_in_words(text, whole, tmp_path):
    folder = begun(tmp_path / "m", whole[0])
    torch.save(whole[1], folder / "training.pt")
    with pytest.raises(StateError, match="model of another size"):
        train(text, folder, recipe=replace(TOY, width=32, inner=64), resume=True)


def test_a_plan_that_cannot_be_read_is_refused(text, whole, tmp_path):
    folder = begun(tmp_path / "m", whole[0])
    for content in ("{", "[]", json.dumps({"recipe": {}})):
        (folder / "recipe.json").write_text(content)
        with pytest.raises(FolderError, match="does not say what was trained here"):
            train(text, folder, recipe=TOY, resume=True)


def test_beginning_again_leaves_no_subwords_of_another_text(whole, tmp_path):
    folder = begun(tmp_path / "m", whole[0])
    setup = Setup(TOY, ("de", "en"), 0, "another text", "held back", 500)
    assert enter(folder, setup, resume=True) == "new"
    assert {*SUBWORDS, "recipe.json"} == {path.name for path in folder.iterdir()}
    assert enter(folder, setup, resume=False) == "new"
    assert [path.name for path in folder.iterdir()] == ["recipe.json"]


def test_a_disk_that_is_full_is_said_and_loses_nothing(text, whole, tmp_path, monkeypatch):
    folder = begun(tmp_path / "m", whole[0])
    real, calls = torch.save, []

    def full(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        real(*arguments)

    monkeypatch.setattr("torch.save", full)
    with pytest.raises(NormlensError, match="No space left"):
        train(text, folder, recipe=TOY, resume=True)
    monkeypatch.undo()
    check_same(folder, last_state(text, folder, resume=True), whole)
