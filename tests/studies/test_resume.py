"""Interrupted, killed, resumed: the numbers are the same."""

import os
import random
import signal
import time

import numpy as np
import pytest
import torch

from normlens.statistics import read
from normlens.studies import STATISTICS, StudyError, study

ITEMS = [f"The {n} birds, {n + 1} of them grey, flew over the {'old ' * (n % 5)}town." for n in range(60)]


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr("normlens.studies.run.SHARD", 4)
    monkeypatch.setattr("normlens.studies.run.SAVE", 0.0)


def flat(found):
    """Every number of the findings, in order."""
    for group in found.results.values():
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
    assert counted(one.run) == counted(other.run)


def counted(run):
    return run.items, run.tokens, run.squares, run.error


@pytest.mark.slow
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


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_saved(minilm, small_shards, tmp_path):
    whole = study(minilm, ITEMS[:12])
    with pytest.raises(KeyboardInterrupt) as stopped:
        study(minilm, ITEMS[:12], folder=tmp_path, progress=interrupting(9))
    assert stopped.value.__notes__ == [
        f"  8 of 12 items are saved in {tmp_path}.\n"
        "  Do: the same again with --resume (resume=True in Python) goes on from there."
    ]
    begun = []
    same(study(minilm, ITEMS[:12], folder=tmp_path, resume=True, progress=lambda n, _: begun.append(n)), whole)
    assert begun[0] == 8


def test_an_interrupt_without_a_save_says_so(minilm, tmp_path):
    for options, said in (({}, "Nothing is saved"), ({"folder": tmp_path}, "Nothing is saved yet in")):
        with pytest.raises(KeyboardInterrupt) as stopped:
            study(minilm, ITEMS[:3], studies=["categories"], progress=interrupting(1), **options)
        assert said in stopped.value.__notes__[0]
        assert "Do: " in stopped.value.__notes__[0]


def test_an_interrupted_run_is_not_thrown_away_by_accident(minilm, small_shards, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        study(minilm, ITEMS[:20], studies=["categories"], folder=tmp_path, progress=interrupting(9))
    with pytest.raises(StudyError, match="interrupted after 8 items"):
        study(minilm, ITEMS[:20], studies=["categories"], folder=tmp_path)


def interrupting(after):
    done = [0]

    def progress(items, total):
        done[0] += items
        if done[0] >= after:
            raise KeyboardInterrupt

    return progress


ALL = "dispersion, categories, correlation, frequency"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"length": 64}, ["length: 128 then, 64 now"]),
        ({"seed": 1, "batch_tokens": 9}, ["seed: 0 then, 1 now", "batch_tokens: 4096 then, 9 now"]),
        (
            {"studies": ["categories"]},
            ["ranks: vocabulary order then, none now", f"studies: {ALL} then, categories now"],
        ),
        (
            {"categories": {"birds": ["birds"]}},
            [r"categories: [CLS]=[CLS]; [SEP]=[SEP]; comma & period=\,,. then, birds=birds now"],
        ),
    ],
)
def test_a_run_is_resumed_only_as_what_it_was(minilm, finished, change, told):
    folder, _ = finished
    with pytest.raises(StudyError, match="was another one") as refused:
        study(minilm, ITEMS[:3], folder=folder, resume=True, **change)
    assert str(refused.value).splitlines()[1:-1] == [f"  {line}" for line in told]
    with pytest.raises(StudyError, match=r"corpus: 3 texts@\w+ then, 3 texts@\w+ now"):
        study(minilm, ITEMS[1:4], folder=folder, resume=True)


def test_without_a_folder_there_is_nothing_to_resume(minilm):
    with pytest.raises(StudyError, match="nothing to resume"):
        study(minilm, ITEMS[:3], resume=True)


def test_what_a_run_was_is_written_the_same_way_by_every_process(finished):
    """Sets have no order: one that changed from process to process would make every run look like another one."""
    _, facts = read(finished[0] / STATISTICS)
    assert facts["identity"]["categories"] == r"[CLS]=[CLS]; [SEP]=[SEP]; comma & period=\,,."


def test_a_finished_run_that_is_resumed_computes_nothing_again(minilm, finished, monkeypatch):
    folder, first = finished
    monkeypatch.setattr(type(minilm), "observe", None)
    same(study(minilm, ITEMS[:3], folder=folder, resume=True), first)


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(minilm, tmp_path):
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(StudyError, match=f"Nothing can be written .*: '{tmp_path / 'file'}' is a file") as refused:
            study(minilm, ITEMS[:3], folder=folder)
        assert "Errno" not in str(refused.value)


def test_the_statistics_are_one_file(finished):
    assert [path.name for path in finished[0].iterdir()] == [STATISTICS]
