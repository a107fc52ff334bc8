"""Results are kept in bounds, and what is gone is said to be gone."""

import time
from dataclasses import replace

import pytest

from normlens.server.refusal import Refusal
from normlens.server.settings import Limits
from normlens.server.store import Store


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
    name, folder = store.new()
    (folder / "x").write_bytes(b"x" * size)
    store.keep(name)
    return name


def test_the_oldest_goes_first_by_number_and_by_size(make):
    by_number, by_size = make(results=2), make(result_bytes=250)
    for store in (by_number, by_size):
        names = [fill(store, 100) for _ in range(3)]
        assert list(store.kept) == names[1:]
        assert [path.name for path in sorted(store.root.iterdir())] == sorted(names[1:])
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


def test_an_id_that_never_was_is_not_one_that_is_gone(make):
    with pytest.raises(Refusal) as missing:
        make().folder("nothing")
    assert missing.value.status == 404


def test_only_its_owner_can_look_into_the_folder(make):
    assert make().root.stat().st_mode & 0o777 == 0o700
