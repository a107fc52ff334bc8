"""The queue: who waits for which worker, who has given up, and what is full.

Room: jobs and workers. No HTTP. Everything here runs in the server's one thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import time
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

from normlens.explorer import result
from normlens.explorer.job import Job
from normlens.explorer.refusal import Refusal
from normlens.explorer.settings import Settings
from normlens.explorer.store import Store
from normlens.explorer.worker import Worker

OPENER = ""  # the worker without a model, which opens files
BASE = "base.safetensors"
WATCH = 1.0  # seconds between two looks whether somebody still waits for a page


class Queue:
    """Jobs in, results out: first come, first served, for each worker."""

    def __init__(self, settings: Settings) -> None:
        self.limits = settings.limits
        self.store = Store(self.limits)
        self.jobs: dict[str, Job] = {}  # all that can be asked about
        self.pages: dict[str, Job] = {}  # pages being made, one for a result, by its id
        self.numbers = count(1)  # of pages, so that a late word about one is not taken for the next
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
            self._line_up(Job("preload", "", "", name, {}, seen=float("inf")))

    def release(self) -> None:
        """The server is about to stop: whoever waits for news gets an answer now."""
        self.closing = True
        for job in self.jobs.values():
            job.tell()

    async def stop(self) -> None:
        """End every worker and throw every result away."""
        for job in (*self.jobs.values(), *self.pages.values()):
            job.tell("cancelled", error="The explorer was stopped.", do="start it again.")
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await asyncio.gather(*(worker.stop() for worker in self.workers.values()))
        self.store.close()

    @property
    def waiting(self) -> int:
        return sum(len(line) for line in self.lines.values())

    def check_room(self, client: str, address: str) -> None:
        """Refuse another job when too many wait."""
        unfinished = [job for job in self.jobs.values() if not job.over]
        mine = sum(job.client == client for job in unfinished)
        if mine >= self.limits.queue_per_client:
            raise Refusal(429, f"{mine} runs of yours are not done yet.", "wait for one, or cancel it.", retry_after=2)
        near = sum(job.address == address for job in unfinished)
        if near >= self.limits.queue_per_address:
            sentence = f"{near} runs from your address are not done yet."
            raise Refusal(429, sentence, "try again in a few seconds.", retry_after=5)
        if self.waiting >= self.limits.queue:
            raise Refusal(
                503,
                f"The explorer is busy: {self.waiting} runs wait already.",
                "try again in a few seconds.",
                retry_after=5,
            )

    def add(self, name: str, who: tuple[str, str], worker: str, order: dict[str, Any], base: Path | None) -> Job:
        """Put a job of this client and address, whose folder is there already, at the end of its line."""
        folder = self.store.root / name
        if base is not None:
            try:
                _linked(base, folder / BASE)  # so that it is there when the job's turn comes
            except OSError:
                self.store.drop(name)
                raise
        order |= {"folder": str(folder), "base": base and str(folder / BASE), "tokens": self.limits.tokens}
        job = self.jobs[name] = Job(name, *who, worker, order, place=len(self.lines[worker]) + 1)
        self._line_up(job)
        return job

    def base(self, name: str) -> Path:
        """The saved trace of an earlier result, to subtract from."""
        path = self.store.folder(name) / result.TRACE
        if not path.exists():
            raise Refusal(422, "A difference has no trace of its own to compare with.", "compare with a single run.")
        return path

    async def page(self, name: str, look: str, left: Callable[[], Awaitable[bool]]) -> Path:
        """The page to download, made when it is first asked for with this look; `left` says that nobody waits here."""
        file = f"view-{hashlib.sha256(look.encode()).hexdigest()[:16]}.html"
        while not (path := self.store.folder(name) / file).exists():
            if name not in self.pages:
                if self.waiting >= self.limits.queue:
                    raise Refusal(503, "The explorer is busy.", "try again in a few seconds.", retry_after=5)
                order = {"folder": str(path.parent), "page": file, "look": look}
                self.pages[name] = Job(f"page {next(self.numbers)}", "", "", OPENER, order)
                self._line_up(self.pages[name])
            job = self.pages[name]  # perhaps with another look, whose turn it is first
            await self._seen_through(name, job, left)
            if job.state != "done" and job.order["page"] == file:
                raise Refusal(job.status, job.error, job.do)
        return path

    async def _seen_through(self, name: str, job: Job, left: Callable[[], Awaitable[bool]]) -> None:
        """Wait for a page with others; the last who leaves before it is there cancels it."""
        job.watchers += 1
        try:
            while not job.over:
                await job.wait(job.version, WATCH)
                if await left():
                    raise Refusal(400, "The request broke off.", "send it again.")
        finally:
            job.watchers -= 1
            if not job.watchers and not job.over:
                del self.pages[name]
                self.cancel(job)

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
            self._settle(job)
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
            self._settle(job)

    def _line_up(self, job: Job) -> None:
        self.lines[job.worker].append(job)
        self.wake[job.worker].set()

    def _settle(self, job: Job) -> None:
        """Count what a job that is over has left on disk, or throw it away."""
        if "page" in job.order:
            name = Path(job.order["folder"]).name
            wanted = name in self.store.kept
            if self.pages.get(name) is job:
                del self.pages[name]
        elif job.id in self.jobs:
            name, wanted = job.id, job.state == "done"
        else:
            return  # a model was loaded ahead
        if wanted:
            self._tidied(lambda: self.store.keep(name))
        else:
            self.store.drop(name)

    def _tidied(self, thrown: Callable[[], list[str]]) -> None:
        """Forget the jobs of results that were thrown out."""
        with contextlib.suppress(OSError):
            for old in thrown():
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
            self._tidied(self.store.tidy)


def _linked(source: Path, path: Path) -> None:
    """The same file under a second name; where the file system has no such thing, a copy."""
    try:
        os.link(source, path)
    except OSError:
        shutil.copyfile(source, path)
