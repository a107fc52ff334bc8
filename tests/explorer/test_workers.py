"""Long work, crashed work, too much work: what happens to the one who asked, and not to the others."""

import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from talking import QUICK

LONG = "the cat sat on the mat and slept quietly " * 31


@pytest.fixture(scope="module")
def slow(start, folders):
    """An explorer whose one model takes its time, loaded already."""
    others = set(workers())
    limits = replace(QUICK, queue=3, gone_seconds=1.0, run_seconds=6.0, tokens=1000)
    client = start(folders["slow"], limits=limits)
    job = client.run(model="slow", text="the cat")
    assert job["state"] == "done", job
    client.others = others
    return client


@pytest.fixture(autouse=True)
def nobody_else_notices(slow):
    yield
    assert slow.run(model="slow", text="the cat sat")["state"] == "done"


def running(slow) -> dict:
    """A long job that has begun."""
    job = slow.follow(slow.post("/api/jobs", {"model": "slow", "text": LONG})[1], until="layers")
    assert job["state"] == "running", job
    return job


def workers() -> list[int]:
    """Processes that this process started to run models in."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == os.getpid() and b"normlens.explorer.child" in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


@pytest.fixture
def worker(slow):
    """The process of the slow model; other explorers of these tests have had theirs before it."""
    (found,) = set(workers()) - slow.others
    return found


def test_a_running_job_is_cancelled_at_the_next_block(slow, worker):
    job = running(slow)
    assert slow.send("DELETE", f"/api/jobs/{job['id']}")[0] == 202
    begun = time.monotonic()
    job = slow.follow(job)
    assert job["state"] == "cancelled"
    assert time.monotonic() - begun < QUICK.grace_seconds
    assert worker in workers(), "its worker lives on, with the model loaded"
    assert slow.get(f"/api/results/{job['id']}/header")[0] == 404


def test_a_queued_job_is_cancelled_at_once_and_the_others_move_up(slow):
    first = running(slow)
    queued = [slow.post("/api/jobs", {"model": "slow", "text": "a cat"})[1] for _ in range(2)]
    assert [job["position"] for job in queued] == [1, 2]
    assert slow.send("DELETE", f"/api/jobs/{queued[0]['id']}")[1]["state"] == "cancelled"
    assert slow.get(f"/api/jobs/{queued[1]['id']}?after={queued[1]['version']}")[1]["position"] == 1
    slow.send("DELETE", f"/api/jobs/{first['id']}")
    assert slow.follow(queued[1])["state"] == "done"


def test_a_full_queue_is_refused_with_a_time_to_come_back(slow):
    first = running(slow)
    got = [slow.post("/api/jobs", {"model": "slow", "text": "a"}) for _ in range(4)]
    assert [status for status, _ in got] == [202, 202, 202, 503]
    assert "3 runs wait" in got[-1][1]["what"]
    assert int(slow.headers["retry-after"]) > 0
    for _, job in got[:3]:
        slow.send("DELETE", f"/api/jobs/{job['id']}")
    slow.send("DELETE", f"/api/jobs/{first['id']}")


def test_a_job_nobody_asks_about_any_more_is_cancelled(slow):
    job = running(slow)
    time.sleep(3.5)
    status, job = slow.get(f"/api/jobs/{job['id']}")
    assert status == 404 or job["state"] == "cancelled", "it ends, and a moment later it is forgotten"


def test_a_worker_that_is_killed_fails_its_job_alone(slow, worker):
    job = running(slow)
    queued = slow.post("/api/jobs", {"model": "slow", "text": "a cat"})[1]
    os.kill(worker, signal.SIGKILL)
    job = slow.follow(job)
    assert job["state"] == "failed"
    assert "worker process died" in job["what"]
    assert slow.follow(queued)["state"] == "done"


def test_a_worker_that_does_not_stop_is_ended(slow, worker):
    job = running(slow)
    os.kill(worker, signal.SIGSTOP)
    slow.send("DELETE", f"/api/jobs/{job['id']}")
    assert slow.follow(job)["state"] == "cancelled"
    assert worker not in workers()


def test_a_job_has_so_much_time_and_no_more(slow, worker):
    job = running(slow)
    os.kill(worker, signal.SIGSTOP)
    job = slow.follow(job)
    assert job["state"] == "failed"
    assert "longer than 6 seconds" in job["what"]


def test_memory_is_asked_for_before_it_is_taken(slow, worker):
    job = slow.run(model="slow", text="cat " * 900)
    assert job["state"] == "failed"
    assert "901 tokens need about 9.4 GB" in job["what"]
    assert "--memory" in job["do"]
    assert worker in workers()


def test_a_model_that_cannot_be_loaded_tells_the_browser_so_and_the_terminal_why(start, folders, tmp_path, capfd):
    shutil.copytree(folders["reader"], tmp_path / "broken")
    (tmp_path / "broken" / "model.safetensors").unlink()
    client = start(str(tmp_path / "broken"), folders["reader"])
    job = client.run(model="broken", text="the cat")
    assert job["state"] == "failed"
    assert job["what"] == "The model 'broken' cannot be loaded."
    assert "No model can be loaded from the folder" in capfd.readouterr().err
    assert client.run(model="broken", text="the cat")["what"] == job["what"]
    assert capfd.readouterr().err == "", "it is not tried again at once"
