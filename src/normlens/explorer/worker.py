"""One worker process, as the server sees it: started when first needed, killed when it hangs, replaced when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from normlens.explorer.refusal import Refusal
from normlens.explorer.settings import Allowed, Limits

if TYPE_CHECKING:
    from normlens.explorer.jobs import Job


class Worker:
    """A process that runs one job at a time; if it is gone, the next job starts a new one."""

    def __init__(self, model: Allowed | None, limits: Limits, threads: int) -> None:
        self.start = {"model": model and asdict(model), "memory": limits.memory, "threads": threads}
        self.limits = limits
        self.process: Any = None
        self.job: Job | None = None
        self.wake = asyncio.Event()  # set when a job may wait
        self.clock: asyncio.Timeout  # of the running job
        self.seconds = 0.0  # that it may take
        self.loaded = self.cancelled = False

    async def run(self, job: Job) -> None:
        """See a job through to its end; whatever happens in the process or to it, nothing is raised."""
        self.job, self.cancelled = job, False
        job.update(state="running", progress={"stage": "starting"})
        try:
            async with asyncio.timeout(None) as self.clock:
                await self._begin()
                self._allow(self.limits.run_seconds if self.loaded else self.limits.load_seconds)
                await self._send({"job": job.id, **job.order})
                while not job.over:
                    self._hear(job, await self.process.stdout.readline())
        except Exception as error:
            await self.stop()
            if self.cancelled:
                job.update(state="cancelled", refusal=cancelled())
            else:
                job.update(state="failed", refusal=self._explained(error))
        finally:
            self.job = None

    def cancel(self) -> None:
        """Ask the running job to end; a moment later its process is killed."""
        if self.job is None or self.cancelled:
            return
        self.cancelled = True
        if self.process is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.write(_line({"cancel": self.job.id}))
        self._allow(self.limits.grace_seconds)

    async def stop(self) -> None:
        """Kill the process and wait until it is gone."""
        process, self.process, self.loaded = self.process, None, False
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)  # process.kill() may reap it before asyncio does
        process.stdin.close()
        await process.wait()

    async def _begin(self) -> None:
        if self.process is not None and self.process.returncode is None:
            return
        await self.stop()
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-P", "-m", "normlens.explorer.child")
        self.process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, start_new_session=True)
        await self._send(self.start)

    async def _send(self, message: dict[str, Any]) -> None:
        self.process.stdin.write(_line(message))
        await self.process.stdin.drain()

    def _hear(self, job: Job, line: bytes) -> None:
        if not line:
            raise EOFError
        message = json.loads(line)
        if message["job"] != job.id:
            return
        if "stage" in message and message["stage"] != "loading" and not self.loaded:
            self.loaded = True
            if not self.cancelled:
                self._allow(self.limits.run_seconds)
        if "stage" in message:
            job.update(progress={name: message[name] for name in ("stage", "done", "of")})
        elif "facts" in message:
            self.loaded = True
            job.update(state="done", facts=message["facts"])
        elif message["refused"] is None:
            job.update(state="cancelled", refusal=cancelled())
        else:
            job.update(state="failed", refusal=Refusal(**message["refused"]))

    def _allow(self, seconds: float) -> None:
        self.seconds = seconds
        with contextlib.suppress(RuntimeError):  # the time is over already
            self.clock.reschedule(asyncio.get_running_loop().time() + seconds)

    def _explained(self, error: Exception) -> Refusal:
        if isinstance(error, TimeoutError):
            return Refusal(422, f"The run took longer than {self.seconds:.0f} seconds.", do="shorten the text.")
        if not isinstance(error, EOFError | ConnectionError):  # which are how a process ends
            print(f"normlens: the worker failed: {type(error).__name__}: {error}", file=sys.stderr)
        return Refusal(
            500,
            "The worker process died during this run, or could not be started.",
            cause="more memory was needed than there is.",
            do="try again: the next run starts a new process; if it dies again, shorten the text.",
        )


def cancelled() -> Refusal:
    """What is said of a cancelled run."""
    return Refusal(409, "The run was cancelled.", do="press Show to run it again.")


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
