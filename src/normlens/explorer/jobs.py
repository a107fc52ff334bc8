"""Jobs: one run each, in the line of its worker, from the question to the result; all in the server's one thread."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from normlens.explorer import results
from normlens.explorer.refusal import Refusal
from normlens.explorer.settings import Settings
from normlens.explorer.worker import Worker, cancelled

OPENER = ""  # the worker without a model, which opens files and writes pages


@dataclass(slots=True, eq=False)
class Job:
    """One run and its progress, kept as long as its result."""

    id: str
    worker: str  # the name of its model, or OPENER
    order: dict[str, Any]  # for the worker
    place: int = 0  # in its line; 1 is next
    state: Literal["waiting", "running", "done", "failed", "cancelled"] = "waiting"
    progress: dict[str, Any] = field(default_factory=dict)  # stage, done and of
    refusal: Refusal | None = None
    facts: dict[str, Any] = field(default_factory=dict)  # about the result
    version: int = 1
    seen: float = field(default_factory=time.monotonic)  # when its client last asked
    watchers: int = 0  # requests that wait for news
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def over(self) -> bool:
        return self.state in ("done", "failed", "cancelled")

    def update(self, **changes: Any) -> None:
        """Change some fields, and wake all who wait for news."""
        if self.over:
            return
        for name, value in changes.items():
            setattr(self, name, value)
        self.version += 1
        self.news.set()
        self.news = asyncio.Event()

    async def wait(self, after: int, seconds: float) -> None:
        """Wait for a version newer than `after`, at most so long."""
        if self.version > after or self.over:
            return
        self.watchers += 1
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), seconds)
        finally:
            self.watchers -= 1
            self.seen = time.monotonic()

    def body(self) -> dict[str, Any]:
        """The job as JSON."""
        news = {"waiting": {"position": self.place}, "running": self.progress, "done": {"result": self.facts}}
        refused = self.refusal.body() if self.refusal else {}
        return {"id": self.id, "state": self.state, "version": self.version, **news.get(self.state, refused)}


class Jobs:
    """All jobs: first come, first served, for each worker."""

    def __init__(self, settings: Settings) -> None:
        self.limits = settings.limits
        self.store = results.Store(self.limits)
        self.known: dict[str, Job] = {}  # by id, oldest first, until their results are deleted
        threads = max(1, (os.cpu_count() or 1) // (len(settings.models) + 1))  # one share for the server
        self.workers = {model.name: Worker(model, self.limits, threads) for model in settings.models}
        self.workers[OPENER] = Worker(None, self.limits, threads)
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, *, preload: bool) -> None:
        """Begin to run jobs; with `preload`, every model is loaded first."""
        self.tasks = [asyncio.create_task(self._serve(name, preload)) for name in self.workers]
        self.tasks.append(asyncio.create_task(self._every_second()))

    async def stop(self) -> None:
        """End every worker and delete every result."""
        for job in self.known.values():
            job.update(state="cancelled", refusal=Refusal(503, "The explorer was stopped.", do="start it again."))
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await asyncio.gather(*(worker.stop() for worker in self.workers.values()))
        self.store.close()

    def line(self, worker: str) -> list[Job]:
        """The jobs that wait for a worker."""
        return [job for job in self.known.values() if job.worker == worker and job.state == "waiting"]

    def add(self, worker: str, order: dict[str, Any], base: str | None = None, name: str | None = None) -> Job:
        """Put a job at the end of its line; its result is subtracted from that of `base`."""
        waiting = sum(job.state == "waiting" for job in self.known.values())
        if waiting >= self.limits.queue:
            what = f"The explorer is busy: {waiting} runs wait already."
            raise Refusal(503, what, do="try again in a few seconds.", wait=5)
        trace = None if base is None else self.store.folder(base) / results.TRACE
        if trace is not None and not trace.exists():
            raise Refusal(422, "A difference has no trace to compare with.", do="compare with a single run.")
        name = name or self.store.new()
        folder = self.store.root / name
        try:
            if trace is not None:
                _link(trace, folder / results.FIRST)  # so that it is there when the job begins
        except OSError:
            self.store.drop(name)
            raise
        order = {"folder": str(folder), "difference": trace is not None, "tokens": self.limits.tokens, **order}
        job = self.known[name] = Job(name, worker, order, place=len(self.line(worker)) + 1)
        self.workers[worker].wake.set()
        return job

    def job(self, name: str) -> Job:
        """The job of this id; a job that is asked for is not abandoned."""
        if name not in self.known:
            raise self.store.missing(name)
        self.known[name].seen = time.monotonic()
        return self.known[name]

    def cancel(self, job: Job) -> None:
        """Take a job out of its line, or ask its worker to end it."""
        if job.state == "waiting":
            job.update(state="cancelled", refusal=cancelled())
            self.store.drop(job.id)
        elif self.workers[job.worker].job is job:
            self.workers[job.worker].cancel()

    async def _serve(self, name: str, preload: bool) -> None:
        worker = self.workers[name]
        if preload:
            await worker.run(Job("preload", name, {}))
        while True:
            while not self.line(name):
                worker.wake.clear()
                await worker.wake.wait()
            job = self.line(name)[0]
            await worker.run(job)
            if job.state == "done":
                self._forget(self.store.keep(job.id))
            else:
                self.store.drop(job.id)

    def _forget(self, deleted: list[str]) -> None:
        for name in deleted:
            self.known.pop(name, None)

    async def _every_second(self) -> None:
        """Update places in the lines, cancel abandoned jobs, delete old results."""
        while True:
            await asyncio.sleep(1)
            for place, job in [placed for name in self.workers for placed in enumerate(self.line(name), 1)]:
                if job.place != place:
                    job.update(place=place)
            oldest = time.monotonic() - self.limits.gone_seconds
            for job in [job for job in self.known.values() if not job.watchers and job.seen < oldest]:
                if not job.over:
                    self.cancel(job)
                elif job.id not in self.store.kept:
                    del self.known[job.id]
            self._forget(self.store.tidy())


def _link(source: Path, path: Path) -> None:
    """The same file under a second name; a copy where the file system has no such thing."""
    try:
        os.link(source, path)
    except OSError:
        shutil.copyfile(source, path)
