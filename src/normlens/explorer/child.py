"""The program of a worker process, `python -m normlens.explorer.child`: one model, one job at a time.

It reads lines of JSON from the server and answers in lines of JSON. A model named by a hub id is downloaded here if it
is not in the cache; nothing else uses the network.

in   {"model": ..., "memory": bytes, "threads": n}    once, first
     {"job": id}                                      load the model
     {"job": id, "text": ..., "folder": ...}          trace a text; with "file": open a saved trace
     {"job": id, "page_of": ..., "folder": ...}       write the page of a result
     {"cancel": id}
out  {"job": id, "stage": ..., "done": k, "of": n}    many
     {"job": id, "facts": {...}}                      done
     {"job": id, "refused": {...}}                    the parts of a refusal; null: cancelled
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
from typing import IO, TYPE_CHECKING, Any

from normlens.errors import NormlensError
from normlens.explorer import memory
from normlens.explorer.refusal import Refusal, disk_full

if TYPE_CHECKING:
    from normlens.lens import Lens

QUIET = 0.05  # seconds between two messages about the same stage
PAUSE = 10.0  # seconds until a model that could not be loaded is tried again


class Cancelled(Exception):
    """The job is no longer wanted."""


def main() -> None:
    """Work until the server is gone: the end of its pipe ends this process, whatever it is doing."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what libraries print is no reply
    start = json.loads(sys.stdin.readline())
    memory.limit(start["memory"])
    orders: queue.Queue[dict[str, Any]] = queue.Queue()
    unwanted: set[str] = set()
    threading.Thread(target=_listen, args=(sys.stdin, orders, unwanted), daemon=True).start()
    child = Child(start, lambda message: print(json.dumps(message), file=replies, flush=True), unwanted)
    while True:
        child.run(orders.get())


def _listen(lines: IO[str], orders: queue.Queue[dict[str, Any]], unwanted: set[str]) -> None:
    for line in lines:
        order = json.loads(line)
        if "cancel" in order:
            unwanted.add(order["cancel"])
        else:
            orders.put(order)
    os._exit(0)


class Child:
    """What the process keeps between two jobs: the loaded model."""

    def __init__(self, start: dict[str, Any], say: Callable[[dict[str, Any]], None], unwanted: set[str]) -> None:
        self.start, self.say, self.unwanted = start, say, unwanted
        self.lens: Lens | None = None
        self.failed: tuple[float, Refusal] | None = None  # when the model could not be loaded, and why
        self.told = "", 0.0  # the last stage, and when

    def run(self, order: dict[str, Any]) -> None:
        """One order, to its one closing reply."""
        try:
            reply = {"facts": self._result(order | {"memory": self.start["memory"]})}
        except Cancelled:
            reply = {"refused": None}
        except Exception as error:
            refusal = self._explained(error)
            reply = {"refused": {"status": refusal.status, **refusal.body()}}
        self.say({"job": order["job"], **reply})
        self.unwanted.discard(order["job"])
        self.told = "", 0.0

    def _result(self, order: dict[str, Any]) -> dict[str, Any]:
        def tell(stage: str, done: int = 0, of: int = 0) -> None:
            if order["job"] in self.unwanted:
                raise Cancelled
            now = time.monotonic()
            if stage != self.told[0] or now - self.told[1] > QUIET:
                self.told = stage, now
                self.say({"job": order["job"], "stage": stage, "done": done, "of": of})

        if "torch" not in sys.modules or (self.lens is None and self.start["model"]):
            tell("loading")
        import torch  # not sooner: this process ends with its server, also while it imports

        from normlens.explorer import tracing, uploads

        torch.set_num_threads(self.start["threads"])
        if self.lens is None and self.start["model"]:
            self.lens = self._loaded(tracing.load)
        tell("opening" if "file" in order else "packing" if "page_of" in order else "starting")
        if "page_of" in order:
            return tracing.write_page(order)
        if "file" in order:
            return tracing.finish(uploads.opened(Path(order["file"]), order["memory"]), order, tell)
        if "text" in order and self.lens is not None:
            return tracing.finish(tracing.trace(self.lens, order, tell), order, tell)
        return {}

    def _loaded(self, load: Callable[[dict[str, Any]], Lens]) -> Lens:
        if self.failed is not None and time.monotonic() - self.failed[0] < PAUSE:
            raise self.failed[1]
        try:
            return load(self.start["model"])
        except Exception as error:
            self.failed = time.monotonic(), self._explained(error)
            raise self.failed[1] from None

    def _explained(self, error: Exception) -> Refusal:
        if memory.ran_out(error):
            error.__traceback__ = None  # it keeps what was too much
            gc.collect()
            return memory.refusal(self.start["memory"])
        if isinstance(error, Refusal):
            return error
        if (full := disk_full(error)) is not None:
            return full
        loading = self.lens is None and self.start["model"]
        if isinstance(error, NormlensError):
            if not loading and not isinstance(error.__cause__, OSError):
                return Refusal.of(error)
            print(f"normlens: {error}", file=sys.stderr)  # in the terminal alone, because it names files
        else:
            traceback.print_exception(error)
        failed = f"The model '{loading['name']}' cannot be loaded." if loading else "The run failed."
        return Refusal(500, failed, got=type(error).__name__, do="read the reason in the terminal of the explorer.")


if __name__ == "__main__":
    main()
