"""The program of a worker process: `python -m normlens.explorer.child`. One model, one job at a time.

Room: lines of JSON in from the server, lines of JSON out. torch is imported here and nowhere else in the explorer.
A model named by a hub id is downloaded here if it is not in the cache; nothing else uses the network.

in   {"model": ..., "memory": bytes, "threads": n}        once, first
     {"job": id, "folder": ..., ...}  or  {"cancel": id}  (with "page" and "look": write the page to download)
out  {"job": id, "stage": ..., "done": k, "of": n}        many
     {"job": id, "end": "done" | "cancelled" | "refused", ...}  (with "status", "error" and "do" when refused)
"""

from __future__ import annotations

import base64
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
from normlens.explorer import disk, memory, result
from normlens.explorer.refusal import Refusal, from_error

QUIET = 0.05  # seconds between two messages about the same stage
PAUSE = 10.0  # seconds until a model that could not be loaded is tried again


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
        self.failed: tuple[float, Refusal] | None = None  # when the model could not be loaded, and what was said
        self.told: tuple[str, float] = ("", 0.0)

    def do(self, order: dict[str, Any]) -> None:
        """One order, to its end; whatever happens, there is one closing reply."""
        try:
            self.say({"job": order["job"], "end": "done", "facts": self._run(order)})
        except Cancelled:
            self.say({"job": order["job"], "end": "cancelled"})
        except Exception as error:
            refusal = self._explained(error)
            self.say({"job": order["job"], "end": "refused", "status": refusal.status, **refusal.body()})
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
            tell("packing", 0, 0)
            _write_page(Path(order["folder"]), order["page"], order["look"])
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

        from normlens.explorer import tracing

        torch.set_num_threads(self.start["threads"])
        if self.lens is None and self.start["model"]:
            if self.failed is not None and time.monotonic() - self.failed[0] < PAUSE:
                raise self.failed[1]
            try:
                self.lens = tracing.load(self.start["model"])
            except Exception as error:
                self.failed = time.monotonic(), self._explained(error)
                raise self.failed[1] from None
        return tracing

    def _explained(self, error: Exception) -> Refusal:
        if memory.ran_out(error) or (error.__cause__ is not None and memory.ran_out(error.__cause__)):
            error.__traceback__ = None  # it holds on to what was too much
            gc.collect()
            return memory.refusal(self.start["memory"])
        if disk.is_full(error):
            return disk.refusal()
        if isinstance(error, Refusal):
            return error
        known = isinstance(error, NormlensError)
        if self.lens is None and self.start["model"]:  # the reason names folders, which a browser need not know
            print(f"normlens: {error}", file=sys.stderr) if known else traceback.print_exception(error)
            name = self.start["model"]["name"]
            return Refusal(422, f"The model '{name}' cannot be loaded.", "the terminal of the explorer says why.")
        if known and not isinstance(error.__cause__, OSError):  # which names files, too
            return from_error(error)
        traceback.print_exception(error)
        return Refusal(
            500,
            f"The run failed inside ({type(error).__name__}); the terminal of the explorer shows where.",
            "try another text; if it fails as well, `normlens doctor` examines the model.",
        )


def _write_page(folder: Path, name: str, look: str) -> None:
    """The one page of a result that is kept: the last that was asked for."""
    part = folder / f"{name}.part"
    part.write_text(views.page(_looked_at(result.figure(folder), look)), encoding="utf-8")
    for old in folder.glob("view-*"):
        if old != part:
            old.unlink()
    part.replace(folder / name)


def _looked_at(figure: views.Figure, look: str) -> views.Figure:
    """With the look of a browser, JSON in base64url; one that does not fit the figure is left out."""
    try:
        return figure.looking(**json.loads(base64.urlsafe_b64decode(look + "=" * (-len(look) % 4))))
    except Exception:  # a stranger's words: whatever is wrong with them, the page opens as it would without
        return figure


if __name__ == "__main__":
    main()
