"""Who waits for what, without any process: the rules of the queue alone."""

import asyncio
import os
from dataclasses import replace

import pytest
from starlette.requests import Request

from normlens.explorer import Allowed, Limits, Settings
from normlens.explorer.app import Explorer
from normlens.explorer.jobs import OPENER, Jobs, _link
from normlens.explorer.refusal import Refusal
from normlens.explorer.start import prepared

MODEL = Allowed("reader", "/nowhere", "encoder")


@pytest.fixture
def with_jobs():
    """Runs a test inside the loop that its jobs live in."""

    def run(test, **limits):
        async def inside():
            jobs = Jobs(Settings((MODEL,), limits=replace(Limits(), **limits)))
            try:
                return await asyncio.wait_for(test(jobs), 10)
            finally:
                await jobs.stop()

        return asyncio.run(inside())

    return run


def test_a_page_is_not_written_for_a_request_that_broke_off(with_jobs):
    async def broken_off():
        return {"type": "http.disconnect"}

    async def test(jobs):
        explorer = Explorer(Settings((MODEL,)))
        explorer.jobs, name = jobs, jobs.store.new()
        jobs.store.keep(name)
        scope = {"type": "http", "path_params": {"id": name}, "query_string": b"", "headers": []}
        with pytest.raises(Refusal, match="cancelled"):
            await explorer.get_view(Request(scope, broken_off))
        assert jobs.line(OPENER) == []
        assert list(jobs.store.kept) == [name], "the result itself stays"

    with_jobs(test)


def test_a_process_that_cannot_be_started_fails_its_job_and_the_line_goes_on(with_jobs, monkeypatch, capsys):
    async def fail(*_, **__):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", fail)

    async def test(jobs):
        jobs.start(preload=False)
        for _ in range(2):
            job = jobs.add("reader", {})
            while not job.over:
                await job.wait(job.version, 1)
            assert job.state == "failed"
            assert "could not be started" in job.refusal.what

    with_jobs(test)
    assert capsys.readouterr().err.count("can't start new thread") == 2


def test_where_a_file_cannot_have_two_names_it_is_copied(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "a").write_text("trace")
    _link(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "trace"


def test_an_interrupt_before_the_server_runs_is_no_error():
    server, listening = prepared(Settings((MODEL,), port=0), print)
    with listening:
        server.handle_exit(2, None)
    assert server.should_exit
