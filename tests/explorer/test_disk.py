"""A disk that is full is known by whoever finds it so, and said without a path."""

import errno

import pytest
from safetensors import SafetensorError

from normlens.explorer import child, disk
from normlens.lens.files import FileError


def behind(error: Exception) -> FileError:
    """As `trace.save` raises it."""
    outer = FileError("'/tmp/private/trace.safetensors' cannot be written")
    outer.__cause__ = error
    return outer


FULL = {
    "no room": OSError(errno.ENOSPC, "No space left on device", "/tmp/private"),
    "too large": OSError(errno.EFBIG, "File too large"),
    "the user's share": behind(OSError(errno.EDQUOT, "Disk quota exceeded")),
    "safetensors": SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
}


@pytest.mark.parametrize("what", FULL)
def test_a_worker_that_cannot_write_says_why(what, monkeypatch):
    def fail(*_):
        raise FULL[what]

    said = []
    worker = child.Worker({"model": None, "memory": 1}, said.append, set())
    monkeypatch.setattr(worker, "_run", fail)
    worker.do({"job": "1"})
    assert said == [{"job": "1", "end": "refused", "status": 507, **disk.refusal().body()}]
    assert "/tmp" not in str(said)


def test_a_file_that_cannot_be_written_for_another_reason_is_named_in_the_terminal_alone(monkeypatch, capsys):
    def fail(*_):
        raise behind(OSError(errno.EACCES, "Permission denied"))

    said = []
    worker = child.Worker({"model": None, "memory": 1}, said.append, set())
    monkeypatch.setattr(worker, "_run", fail)
    worker.do({"job": "1"})
    assert said[0]["status"] == 500
    assert "/tmp" not in str(said)
    assert "/tmp/private" in capsys.readouterr().err


def test_other_errors_are_others():
    for error in (OSError(errno.EACCES, "no"), SafetensorError("a header (os error 2)"), ValueError("28")):
        assert not disk.is_full(error)
