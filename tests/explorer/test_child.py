"""A worker process from the inside: a disk that is full, and memory that has a limit."""

import errno
import subprocess
import sys

import pytest
from safetensors import SafetensorError

from normlens.errors import NormlensError
from normlens.explorer import memory
from normlens.explorer.child import Child
from normlens.explorer.refusal import disk_full


def behind(error: Exception) -> NormlensError:
    """As `trace.save` raises it."""
    outer = NormlensError("'/tmp/private/trace.safetensors' cannot be written")
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
    child = Child({"model": None, "memory": 1}, said.append, set())
    monkeypatch.setattr(child, "_result", fail)
    child.run({"job": "1"})
    (refused,) = [message["refused"] for message in said]
    assert refused["status"] == 507
    assert refused["what"] == "The disk of the explorer is full."
    assert "/tmp" not in str(said)


def test_a_file_that_cannot_be_written_for_another_reason_is_named_in_the_terminal_alone(monkeypatch, capsys):
    def fail(*_):
        raise behind(OSError(errno.EACCES, "Permission denied"))

    said = []
    child = Child({"model": None, "memory": 1}, said.append, set())
    monkeypatch.setattr(child, "_result", fail)
    child.run({"job": "1"})
    assert said[0]["refused"]["status"] == 500
    assert "/tmp" not in str(said)
    assert "/tmp/private" in capsys.readouterr().err


def test_other_errors_are_others():
    for error in (OSError(errno.EACCES, "no"), SafetensorError("a header (os error 2)"), ValueError("28")):
        assert disk_full(error) is None


MEASURED = """
import resource, sys, tempfile
from pathlib import Path
from normlens.explorer import memory, tracing
from normlens import lens as lenses

lens = lenses.load()
order = {"text": "cat " * int(sys.argv[1]), "pair": None, "target": None, "tokens": 512, "memory": 10**12}
order["difference"] = False
tell = lambda *_: None
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "warm").mkdir(), Path(folder, "real").mkdir()
    warm = order | {"text": "cat", "folder": str(Path(folder, "warm"))}
    tracing.finish(tracing.trace(lens, warm, tell), warm, tell)
    Path("/proc/self/clear_refs").write_text("5")
    peak = lambda: 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
    before = peak()
    trace = tracing.trace(lens, order, tell)
    tracing.finish(trace, order | {"folder": str(Path(folder, "real"))}, tell)
    print(peak() - before, memory.needed(lens, {"text": len(trace.tokens[0])}) / memory.FACTOR)
"""


@pytest.mark.slow
def test_a_job_takes_no_more_than_the_estimate_says():
    done = subprocess.run([sys.executable, "-c", MEASURED, "400"], capture_output=True, text=True, check=True)
    taken, weights = map(float, done.stdout.split())
    assert taken < memory.FACTOR * weights, f"{taken / weights:.2f} times the bytes of all weights"


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA is Linux's")
def test_beyond_the_wall_every_allocation_fails_and_is_known_for_what_it_is():
    program = """
from normlens.explorer import memory
import torch
memory.limit(memory.used() + 200_000_000)
for take in (lambda: bytearray(10**9), lambda: torch.zeros(10**9)):
    try:
        take()
    except Exception as error:
        print(memory.ran_out(error))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
