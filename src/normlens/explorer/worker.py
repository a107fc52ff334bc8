"""One worker process, from the server's side: started when first needed, told what to do, ended when it must be.

Room: a process and its two pipes. Knows no HTTP and no queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from typing import Any

from normlens.explorer.allowed import Allowed
from normlens.explorer.job import Job
from normlens.explorer.settings import Limits


class Worker:
    """A process that runs one job at a time. When it is gone, the next job gets a new one."""

    def __init__(self, model: Allowed | None, limits: Limits, threads: int) -> None:
        self.model, self.limits, self.threads = model, limits, threads
        self.process: asyncio.subprocess.Process | None = None
        self.job: Job | None = None
        self.loaded = False
        self.why = ""  # why the running job is being ended by us
        self.timers: list[asyncio.TimerHandle] = []

    async def run(self, job: Job) -> None:
        """See a job through to its end. Whatever happens in the process or to it, nothing is raised."""
        self.job, self.why = job, ""
        try:
            await self._start()
            job.tell("running", stage="loading" if not self.loaded else "starting")
            self._limit(self.limits.run_seconds if self.loaded else self.limits.load_seconds, "time")
            await self._send({"job": job.id, **job.order})
            while not job.over:
                self._hear(job, await self._line())
        except Exception as error:
            if not isinstance(error, EOFError | ConnectionError):  # which are how a process ends
                print(f"normlens: the worker failed: {type(error).__name__}: {error}", file=sys.stderr)
            await self.stop()
            self._ended(job)
        finally:
            self._clear()
            self.job = None

    def cancel(self, why: str = "cancelled") -> None:
        """Ask the running job to end; a moment later its process is ended instead."""
        if self.job is None or self.why:
            return
        self.why = why
        if self.process is not None and self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.write(_encoded({"cancel": self.job.id}))
        self.timers.append(asyncio.get_running_loop().call_later(self.limits.grace_seconds, self._kill))

    async def stop(self) -> None:
        """End the process and wait until it is gone."""
        process, self.process, self.loaded = self.process, None, False
        if process is None:
            return
        _kill(process)
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()

    async def _start(self) -> None:
        if self.process is not None and self.process.returncode is None:
            return
        await self.stop()
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "normlens.explorer.child",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        model = self.model.order if self.model else None
        await self._send({"model": model, "memory": self.limits.memory, "threads": self.threads})

    def _hear(self, job: Job, message: dict[str, Any]) -> None:
        if message.get("job") != job.id:
            return
        if "end" not in message:
            if message["stage"] != "loading" and not self.loaded:
                self.loaded = True
                self._limit(self.limits.run_seconds, "time")
            job.tell(stage=message["stage"], done=message["done"], of=message["of"])
            return
        if message["end"] == "done":
            self.loaded = True
            job.tell("done", facts=message["facts"])
        elif message["end"] == "cancelled":
            self._ended(job)
        else:
            job.tell("failed", error=message["error"], do=message["do"], status=message["status"])

    def _ended(self, job: Job) -> None:
        """The job ended without a result, by our will or by the death of its process."""
        if self.why == "cancelled":
            job.tell("cancelled", error="The run was cancelled.", do="press Show to run it again.")
        elif self.why == "time":
            most = self.limits.run_seconds if self.loaded or job.stage != "loading" else self.limits.load_seconds
            job.tell("failed", error=f"The run took longer than {most:.0f} seconds.", do="shorten the text.")
        else:
            job.tell(
                "failed",
                error="The worker process died during this run, or could not be started; the next one gets a new one.",
                do="try again; if it dies again, the text may need more memory than there is: shorten it.",
            )

    async def _send(self, message: dict[str, Any]) -> None:
        assert self.process is not None and self.process.stdin is not None  # noqa: PT018
        self.process.stdin.write(_encoded(message))
        await self.process.stdin.drain()

    async def _line(self) -> dict[str, Any]:
        assert self.process is not None and self.process.stdout is not None  # noqa: PT018
        line = await self.process.stdout.readline()
        if not line:
            raise EOFError
        return json.loads(line)

    def _limit(self, seconds: float, why: str) -> None:
        if self.why:
            return
        self._clear()
        self.timers.append(asyncio.get_running_loop().call_later(seconds, self.cancel, why))

    def _clear(self) -> None:
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()

    def _kill(self) -> None:
        if self.process is not None:
            _kill(self.process)


def _kill(process: asyncio.subprocess.Process) -> None:
    """Not process.kill(), which also collects a process that is dead already, before asyncio can."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def _encoded(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
