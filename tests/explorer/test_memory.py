"""The wall of a worker, and the estimate that keeps work away from it."""

import subprocess
import sys

import pytest

MEASURED = """
import resource, sys, tempfile
from pathlib import Path
from normlens.explorer import memory, tracing
from normlens import lens as lenses

lens = lenses.load()
order = {"text": "cat " * int(sys.argv[1]), "pair": None, "target": None, "tokens": 512, "memory": 10**12}
tell = lambda *_: None
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "warm").mkdir(), Path(folder, "real").mkdir()
    tracing.finished(Path(folder, "warm"), tracing.traced(lens, order | {"text": "cat"}, tell), None, tell)
    Path("/proc/self/clear_refs").write_text("5")
    peak = lambda: 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
    before = peak()
    trace = tracing.traced(lens, order, tell)
    tracing.finished(Path(folder, "real"), trace, None, tell)
    print(peak() - before, memory.needed(lens, {"text": len(trace.tokens[0])}) / memory.FACTOR)
"""


@pytest.mark.slow
def test_a_job_takes_no_more_than_the_estimate_says():
    from normlens.explorer import memory

    done = subprocess.run([sys.executable, "-c", MEASURED, "400"], capture_output=True, text=True, check=True)
    taken, weights = map(float, done.stdout.split())
    assert taken < memory.FACTOR * weights, f"{taken / weights:.2f} times the bytes of all weights"


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA is Linux's")
def test_beyond_the_wall_every_allocation_fails_and_is_known_for_what_it_is():
    program = """
from normlens.explorer import memory
import torch
memory.wall(memory.used() + 200_000_000)
for take in (lambda: bytearray(10**9), lambda: torch.zeros(10**9)):
    try:
        take()
    except Exception as error:
        print(memory.ran_out(error))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
