"""The queue: who waits for which worker, who has given up, and what is full.

Room: jobs and workers. No HTTP. Everything here runs in the server's one thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from pathlib import Path
from typing import Any

from normlens.server import result
from normlens.server.job import Job
from normlens.server.refusal import Refusal
from normlens.server.settings import Settings
from normlens.server.store import Store
from normlens.server.worker import Worker

OPENER = ""  # the worker without a model, which opens files
BASE, PAGE = "base.safetensors", "view.html"


class Queue:
    """Jobs in, results out: first come, first served, for each worker."""

    def __init__(self, settings: Settings) -> None:
        self.limits = settings.limits
        self.store = Store(self.limits)
        self.jobs: dict[str, Job] = {}  # all that can be asked about
        self.lines: dict[str, deque[Job]] = {one.name: deque() for one in settings.models} | {OPENER: deque()}
        threads = max(1, (os.cpu_count() or 1) // (len(settings.models) + 1))  # one share for the server and the page
        self.workers = {one.name: Worker(one, self.limits, threads) for one in settings.models}
        self.workers[OPENER] = Worker(None, self.limits, threads)
        self.wake = {name: asyncio.Event() for name in self.lines}
        self.tasks: list[asyncio.Task[None]] = []
        self.closing = False

    def start(self, *, preload: bool) -> None:
        """Begin to serve the lines; with `preload`, every model is asked for at once."""
        self.tasks = [asyncio.create_task(self._serve(name)) for name in self.lines]
        self.tasks.append(asyncio.create_task(self._look_around()))
        for name in self.lines if preload else ():
            self.lines[name].append(Job("preload", "", name, {}, seen=float("inf")))
            self.wake[name].set()

    def release(self) -> None:
        """The server is about to stop: whoever waits for news gets an answer now."""
        self.closing = True
        for job in self.jobs.values():
            job.tell()

    async def stop(self) -> None:
        """End every worker and throw every result away."""
        for job in self.jobs.values():
            job.tell("cancelled", error="The explorer was stopped.", do="start it again.")
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await asyncio.gather(*(worker.stop() for worker in self.workers.values()))
        self.store.close()

    @property
    def waiting(self) -> int:
        return sum(len(line) for line in self.lines.values())

    def check_room(self, client: str) -> None:
        """Refuse another job when too many wait."""
        mine = sum(job.client == client for job in self.jobs.values() if not job.over)
        if mine >= self.limits.queue_per_client:
            raise Refusal(429, f"{mine} runs of yours are not done yet.", "wait for one, or cancel it.", retry_after=2)
        if self.waiting >= self.limits.queue:
            raise Refusal(
                503,
                f"The explorer is busy: {self.waiting} runs wait already.",
                "try again in a few seconds.",
                retry_after=5,
            )

    def add(self, name: str, client: str, worker: str, order: dict[str, Any], base: Path | None) -> Job:
        """Put a job, whose folder is there already, at the end of its line."""
        folder = self.store.root / name
        if base is not None:
            os.link(base, folder / BASE)  # so that it is there when the job's turn comes
        order |= {"folder": str(folder), "base": base and str(folder / BASE), "tokens": self.limits.tokens}
        job = self.jobs[name] = Job(name, client, worker, order, place=len(self.lines[worker]) + 1)
        self.lines[worker].append(job)
        self.wake[worker].set()
        return job

    def base(self, name: str) -> Path:
        """The saved trace of an earlier result, to subtract from."""
        path = self.store.folder(name) / result.TRACE
        if not path.exists():
            raise Refusal(422, "A difference has no trace of its own to compare with.", "compare with a single run.")
        return path

    async def page(self, name: str) -> Path:
        """The page to download, made when it is first asked for."""
        folder = self.store.folder(name)
        path = folder / PAGE
        if not path.exists():
            if self.waiting >= self.limits.queue:
                raise Refusal(503, "The explorer is busy.", "try again in a few seconds.", retry_after=5)
            order = {"folder": str(folder), "page": str(path)}
            job = Job(f"page of {name}", "", OPENER, order)
            self.lines[OPENER].append(job)
            self.wake[OPENER].set()
            while not job.over:
                await job.wait(job.version, self.limits.run_seconds)
            if job.state != "done":
                raise Refusal(500, job.error, job.do)
        return path

    def job(self, name: str) -> Job:
        """The job of this id, which by being asked for stays wanted."""
        found = self.jobs.get(name)
        if found is None:
            raise self.store.missing(name)
        found.seen = time.monotonic()
        return found

    def cancel(self, job: Job) -> None:
        """Drop it from its line, or ask its worker to end it."""
        if job in self.lines[job.worker]:
            self.lines[job.worker].remove(job)
            job.tell("cancelled", error="The run was cancelled.", do="press Show to run it again.")
            self.store.drop(job.id)
        elif self.workers[job.worker].job is job:
            self.workers[job.worker].cancel()

    async def _serve(self, name: str) -> None:
        line, worker = self.lines[name], self.workers[name]
        while True:
            while not line:
                self.wake[name].clear()
                await self.wake[name].wait()
            job = line.popleft()
            await worker.run(job)
            if job.id in self.jobs:
                with contextlib.suppress(OSError):
                    for old in self.store.keep(job.id) if job.state == "done" else self.store.drop(job.id):
                        self.jobs.pop(old, None)

    async def _look_around(self) -> None:
        """Once a second: places in the queue, jobs nobody asks about any more, results that are too old."""
        while True:
            await asyncio.sleep(1)
            for place, job in [one for line in self.lines.values() for one in enumerate(line, 1)]:
                if job.place != place:
                    job.tell(place=place)
            for job in [one for one in self.jobs.values() if one.abandoned(self.limits.gone_seconds)]:
                if not job.over:
                    self.cancel(job)
                elif job.id not in self.store.kept:
                    del self.jobs[job.id]
            with contextlib.suppress(OSError):
                for old in self.store.tidy():
                    self.jobs.pop(old, None)
