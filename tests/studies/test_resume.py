"""Interrupted, killed, resumed: the numbers are the same."""

import os
import random
import signal
import time

import numpy as np
import pytest
import torch

from normlens.statistics import read
from normlens.studies import StudyError, study
from normlens.studies.questions import STATE

ITEMS = [f"The {n} birds, {n + 1} of them grey, flew over the {'old ' * (n % 5)}town." for n in range(60)]


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr("normlens.studies.run.SHARD", 4)
    monkeypatch.setattr("normlens.studies.run.SAVE", 0.0)


def flat(found):
    """Every number of the findings, in order."""
    for group in (found.dispersion, found.categories, found.correlation, found.frequency):
        for result in group.values():
            for field in result.__dataclass_fields__:
                value = getattr(result, field)
                for part in [getattr(value, f) for f in getattr(value, "__dataclass_fields__", ())] or [value]:
                    yield field, part


@pytest.fixture(scope="module")
def finished(minilm, tmp_path_factory):
    """A run that came to its end: its folder, and what it found."""
    folder = tmp_path_factory.mktemp("finished")
    return folder, study(minilm, ITEMS[:3], folder=folder)


def same(one, other):
    for (field, a), (_, b) in zip(flat(one), flat(other), strict=True):
        if isinstance(a, np.ndarray):
            assert a.tobytes() == b.tobytes(), field
        else:
            assert a == b or (a != a and b != b), field
    assert (one.items, one.tokens, one.squares, one.error) == (other.items, other.tokens, other.squares, other.error)


def test_killed_ten_times_at_random_moments_and_resumed(minilm, small_shards, tmp_path):
    torch.set_num_threads(1)
    whole = study(minilm, ITEMS)
    chance, kills = random.Random(0), 0
    while kills < 10:
        child = os.fork()
        if child == 0:
            try:
                study(minilm, ITEMS, folder=tmp_path / "killed", resume=True)
            finally:
                os._exit(0)
        time.sleep(chance.uniform(0.05, 1.0))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills += 1
    same(study(minilm, ITEMS, folder=tmp_path / "killed", resume=True), whole)


def test_an_interrupt_keeps_what_was_saved(minilm, small_shards, tmp_path):
    whole = study(minilm, ITEMS[:12])
    with pytest.raises(KeyboardInterrupt):
        study(minilm, ITEMS[:12], folder=tmp_path, progress=interrupting(9))
    begun = []
    same(study(minilm, ITEMS[:12], folder=tmp_path, resume=True, progress=lambda n, _: begun.append(n)), whole)
    assert begun[0] == 8


def test_an_interrupted_run_is_not_thrown_away_by_accident(minilm, small_shards, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        study(minilm, ITEMS[:20], names=["categories"], folder=tmp_path, progress=interrupting(9))
    with pytest.raises(StudyError, match="interrupted after 8 items"):
        study(minilm, ITEMS[:20], names=["categories"], folder=tmp_path)


def interrupting(after):
    done = [0]

    def progress(items, total):
        done[0] += items
        if done[0] >= after:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize(
    "change", [{"length": 64}, {"seed": 1}, {"names": ["categories"]}, {"categories": {"birds": ["birds"]}}]
)
def test_a_run_is_resumed_only_as_what_it_was(minilm, finished, change):
    folder, _ = finished
    with pytest.raises(StudyError, match="was another one"):
        study(minilm, ITEMS[:3], folder=folder, resume=True, **change)
    with pytest.raises(StudyError, match="was another one"):
        study(minilm, ITEMS[1:4], folder=folder, resume=True)


def test_what_a_run_was_is_written_the_same_way_by_every_process(finished):
    """Sets have no order: one that changed from process to process would make every run look like another one."""
    _, facts = read(finished[0] / STATE)
    assert ["comma & period", [",", "."], None, None] in facts["identity"]["categories"]


def test_a_finished_run_that_is_resumed_computes_nothing_again(minilm, finished, monkeypatch):
    folder, first = finished
    monkeypatch.setattr(type(minilm), "observe", None)
    same(study(minilm, ITEMS[:3], folder=folder, resume=True), first)


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(minilm, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StudyError, match="Nothing can be written"):
        study(minilm, ITEMS[:3], folder=tmp_path / "file")


def test_the_state_is_one_file(finished):
    assert [path.name for path in finished[0].iterdir()] == [STATE]
