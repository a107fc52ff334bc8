"""One job as its client sees it: where it stands, and news of it as they come.

Room: state. No process, no HTTP.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["waiting", "running", "done", "failed", "cancelled"]
OVER: tuple[State, ...] = ("done", "failed", "cancelled")


@dataclass(slots=True, eq=False)
class Job:
    """A job, from being asked for until its result is thrown away. Only the server's own thread touches it."""

    id: str
    client: str
    address: str  # of the client
    worker: str  # the model's name; "" is the worker that opens files
    order: dict[str, Any]  # for the worker
    place: int = 0  # in its line, as of the last second; 1 is next
    state: State = "waiting"
    stage: str = ""  # "loading", "writing", "layers", "opening", "packing"
    done: int = 0
    of: int = 0
    error: str = ""
    do: str = ""
    status: int = 500  # of the error
    facts: dict[str, Any] = field(default_factory=dict)
    version: int = 1
    seen: float = field(default_factory=time.monotonic)  # when its client last asked
    watchers: int = 0  # questions that wait for news right now
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def over(self) -> bool:
        return self.state in OVER

    def tell(self, state: State | None = None, **changes: Any) -> None:
        """Change, and wake whoever waits for it."""
        if self.over:
            return
        for name, value in changes.items():
            setattr(self, name, value)
        self.state = state or self.state
        self.version += 1
        self.news.set()
        self.news = asyncio.Event()

    async def wait(self, after: int, seconds: float) -> None:
        """Until there is something newer than version `after`, or the time is over."""
        if self.version > after or self.over:
            return
        self.watchers += 1
        try:
            await asyncio.wait_for(self.news.wait(), seconds)
        except TimeoutError:
            return
        finally:
            self.watchers -= 1
            self.seen = time.monotonic()

    def abandoned(self, seconds: float) -> bool:
        """Whether nobody has asked about it for so long."""
        return not self.watchers and time.monotonic() - self.seen > seconds

    def body(self) -> dict[str, Any]:
        """JSON for the browser."""
        shown: dict[str, Any] = {"id": self.id, "state": self.state, "version": self.version}
        if self.state == "waiting":
            shown["position"] = self.place
        if self.state == "running":
            shown |= {"stage": self.stage, "done": self.done, "of": self.of}
        if self.state == "done":
            shown["result"] = self.facts
        if self.error:
            shown |= {"error": self.error, "do": self.do}
        return shown
