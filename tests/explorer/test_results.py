"""Results are kept in bounds, and what is gone is said to be gone."""

import subprocess
import sys
import tempfile
import time
from dataclasses import replace

import pytest

from normlens.explorer.refusal import Refusal
from normlens.explorer.results import LOCKED, Store
from normlens.explorer.settings import Limits


@pytest.fixture
def make():
    stores = []

    def store(**limits) -> Store:
        stores.append(Store(replace(Limits(), **limits)))
        return stores[-1]

    yield store
    for one in stores:
        one.close()
        assert not one.root.exists()


def fill(store, size):
    name = store.new()
    (store.root / name / "x").write_bytes(b"x" * size)
    store.keep(name)
    return name


def test_the_oldest_goes_first_by_number_and_by_size(make):
    by_number, by_size = make(results=2), make(result_bytes=250)
    for store in (by_number, by_size):
        names = [fill(store, 100) for _ in range(3)]
        assert list(store.kept) == names[1:]
        assert {path.name for path in store.root.iterdir()} == {*names[1:], LOCKED}
        with pytest.raises(Refusal, match="run it again") as gone:
            store.folder(names[0])
        assert gone.value.status == 410


def test_the_newest_stays_however_large(make):
    store = make(result_bytes=10)
    fill(store, 5)
    newest = fill(store, 100)
    assert list(store.kept) == [newest]


def test_what_is_old_goes_without_being_pushed(make):
    store = make(result_seconds=0.05)
    fill(store, 1)
    time.sleep(0.1)
    assert len(store.tidy()) == 1
    assert store.size == 0


def test_uploads_are_counted_until_their_jobs_are_over(make):
    store = make(result_bytes=100)
    first, second = store.new(), store.new()
    store.expect(first, 60)
    store.expect(first, 30)
    with pytest.raises(Refusal, match="wait to be opened") as full:
        store.expect(second, 20)
    assert full.value.status == 507
    store.drop(first)
    store.expect(second, 20)


def test_what_a_killed_server_left_is_removed_and_nothing_else(make, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = "import os, sys; from normlens.explorer.results import *; import tempfile; tempfile.tempdir = sys.argv[1]"
    program += "; print(Store(Limits()).root, flush=True); os.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    left = done.stdout.strip()
    living = make()
    assert not (tmp_path / left).exists()
    unmarked, target = tmp_path / "normlens-serve-unmarked", tmp_path / "target"
    for folder in (unmarked, target):
        folder.mkdir()
    (target / LOCKED).write_text("1")
    (tmp_path / "normlens-serve-link").symlink_to(target)
    make()
    assert living.root.exists()
    assert unmarked.exists()
    assert (target / LOCKED).exists()


def test_an_id_that_never_was_is_not_one_that_is_gone(make):
    with pytest.raises(Refusal) as missing:
        make().folder("nothing")
    assert missing.value.status == 404


def test_only_its_owner_can_look_into_the_folder(make):
    assert make().root.stat().st_mode & 0o777 == 0o700
