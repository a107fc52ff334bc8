"""The program of a worker process: `python -m normlens.server.child`. One model, one job at a time, no network.

Room: lines of JSON in from the server, lines of JSON out. torch is imported here and nowhere else in the explorer.

in   {"model": ..., "memory": bytes, "threads": n}        once, first
     {"job": id, "folder": ..., ...}  or  {"cancel": id}  (with "page": write the page to download)
out  {"job": id, "stage": ..., "done": k, "of": n}        many
     {"job": id, "end": "done" | "cancelled" | "refused", ...}
"""

from __future__ import annotations

import gc
import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from normlens import views
from normlens.errors import NormlensError
from normlens.server import memory, result
from normlens.server.refusal import Refusal, from_error

QUIET = 0.05  # seconds between two messages about the same stage


class Cancelled(Exception):  # an end, not a mistake
    """The job is no longer wanted."""


def main() -> None:
    """Serve orders until the server is gone: the end of its pipe ends this process, whatever it is doing."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what libraries print must not look like a reply
    start = json.loads(sys.stdin.readline())
    memory.wall(start["memory"])
    orders: queue.Queue[dict[str, Any]] = queue.Queue()
    unwanted: set[str] = set()
    threading.Thread(target=_listen, args=(sys.stdin, orders, unwanted), daemon=True).start()
    worker = Worker(start, lambda message: print(json.dumps(message), file=replies, flush=True), unwanted)
    while True:
        worker.do(orders.get())


def _listen(lines: IO[str], orders: queue.Queue[dict[str, Any]], unwanted: set[str]) -> None:
    for line in lines:
        order = json.loads(line)
        if "cancel" in order:
            unwanted.add(order["cancel"])
        else:
            orders.put(order)
    os._exit(0)


class Worker:
    """What the process holds between two jobs: the loaded model."""

    def __init__(self, start: dict[str, Any], say: Callable[[dict[str, Any]], None], unwanted: set[str]) -> None:
        self.start, self.say, self.unwanted = start, say, unwanted
        self.lens: Any = None
        self.told: tuple[str, float] = ("", 0.0)

    def do(self, order: dict[str, Any]) -> None:
        """One order, to its end; whatever happens, there is one closing reply."""
        try:
            self.say({"job": order["job"], "end": "done", "facts": self._run(order)})
        except Cancelled:
            self.say({"job": order["job"], "end": "cancelled"})
        except Exception as error:
            self.say({"job": order["job"], "end": "refused", **self._explained(error).body()})
        self.unwanted.discard(order["job"])

    def _run(self, order: dict[str, Any]) -> dict[str, Any]:
        def tell(stage: str, done: int, of: int) -> None:
            if order["job"] in self.unwanted:
                raise Cancelled
            now = time.monotonic()
            if stage != self.told[0] or now - self.told[1] > QUIET:
                self.told = stage, now
                self.say({"job": order["job"], "stage": stage, "done": done, "of": of})

        self.told = "", 0.0
        if "page" in order:
            Path(order["page"]).write_text(views.page(result.figure(Path(order["folder"]))), encoding="utf-8")
            return {}
        tracing = self._ready(tell)
        if "folder" not in order:
            return {}
        folder, base = Path(order["folder"]), order["base"] and Path(order["base"])
        order |= {"memory": self.start["memory"]}
        if "file" in order:
            tell("opening", 0, 0)
            trace = tracing.opened(Path(order["file"]), order)
        else:
            trace = tracing.traced(self.lens, order, tell)
        return tracing.finished(folder, trace, base, tell)

    def _ready(self, tell: Callable[[str, int, int], None]) -> Any:
        """Import torch and load the model, the first time."""
        if "torch" not in sys.modules or (self.lens is None and self.start["model"]):
            tell("loading", 0, 0)
        import torch

        from normlens.server import tracing

        torch.set_num_threads(self.start["threads"])
        if self.lens is None and self.start["model"]:
            self.lens = tracing.load(self.start["model"])
        return tracing

    def _explained(self, error: Exception) -> Refusal:
        if memory.ran_out(error) or (error.__cause__ is not None and memory.ran_out(error.__cause__)):
            error.__traceback__ = None  # it holds on to what was too much
            gc.collect()
            return memory.refusal(self.start["memory"])
        if isinstance(error, Refusal):
            return error
        known = isinstance(error, NormlensError)
        if self.lens is None and self.start["model"]:  # the reason names folders, which a browser need not know
            print(f"normlens: {error}", file=sys.stderr) if known else traceback.print_exception(error)
            name = self.start["model"]["name"]
            return Refusal(422, f"The model '{name}' cannot be loaded.", "the terminal of the explorer says why.")
        if known:
            return from_error(error)
        traceback.print_exception(error)
        return Refusal(
            500,
            f"The run failed inside ({type(error).__name__}); the terminal of the explorer shows where.",
            "try another text; if it fails as well, `normlens doctor` examines the model.",
        )


if __name__ == "__main__":
    main()
