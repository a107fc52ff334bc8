"""Who waits for what, without any process: the rules of the queue alone."""

import asyncio
import os
from dataclasses import replace

import pytest

from normlens.explorer import Allowed, Limits, Settings
from normlens.explorer.queue import OPENER, Queue, _linked
from normlens.explorer.refusal import Refusal
from normlens.explorer.run import prepared

MODEL = Allowed("reader", "/nowhere", "encoder")


@pytest.fixture
def with_queue():
    """Runs a test inside the loop that its queue lives in."""

    def run(test, **limits):
        async def inside():
            queue = Queue(Settings((MODEL,), limits=replace(Limits(), **limits)))
            try:
                return await asyncio.wait_for(test(queue), 10)
            finally:
                await queue.stop()

        return asyncio.run(inside())

    return run


def kept(queue: Queue) -> str:
    name, _ = queue.store.new()
    queue.store.keep(name)
    return name


def test_a_page_is_made_once_for_all_who_wait_and_not_when_they_have_left(with_queue):
    async def test(queue):
        name, left = kept(queue), []

        async def has_left():
            return bool(left)

        waiting = [asyncio.create_task(queue.page(name, "", has_left)) for _ in range(5)]
        waiting.append(asyncio.create_task(queue.page(name, "another", has_left)))
        await asyncio.sleep(0)
        assert len(queue.lines[OPENER]) == 1
        left.append(True)
        gone = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(one, Refusal) for one in gone)
        assert queue.waiting == 0
        assert not queue.pages
        assert queue.store.folder(name), "the result itself stays"

    with_queue(test)


def test_one_address_cannot_take_every_place_under_many_names(with_queue):
    async def test(queue):
        for number in range(3):
            queue.check_room(f"tab {number}", "10.0.0.1")
            queue.add(queue.store.new()[0], (f"tab {number}", "10.0.0.1"), "reader", {}, None)
        with pytest.raises(Refusal, match="from your address") as refused:
            queue.check_room("tab 3", "10.0.0.1")
        assert refused.value.status == 429
        queue.check_room("tab 4", "10.0.0.2")

    with_queue(test, queue_per_address=3)


def test_a_process_that_cannot_be_started_fails_its_job_and_the_line_goes_on(with_queue, monkeypatch, capsys):
    async def fail(*_, **__):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", fail)

    async def test(queue):
        queue.start(preload=False)
        for _ in range(2):
            job = queue.add(queue.store.new()[0], ("tab", "10.0.0.1"), "reader", {}, None)
            while not job.over:
                await job.wait(job.version, 1)
            assert job.state == "failed"
            assert "could not be started" in job.error

    with_queue(test)
    assert capsys.readouterr().err.count("can't start new thread") == 2


def test_where_a_file_cannot_have_two_names_it_is_copied(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "a").write_text("trace")
    _linked(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "trace"


def test_an_interrupt_before_the_server_runs_is_no_error():
    server, listening = prepared(Settings((MODEL,), port=0), print)
    with listening:
        server.handle_exit(2, None)
    assert server.should_exit
