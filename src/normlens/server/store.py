"""Results on disk, in one private folder that is gone when the server is: bounded in number, bytes and time.

Room: folders by id. The ids are made here; a browser's words never become a path.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from pathlib import Path

from normlens.server.refusal import Refusal
from normlens.server.settings import Limits

REMEMBERED = 4096  # ids of results that are gone, so that their owners are told so


@dataclass(frozen=True, slots=True)
class Kept:
    """One result."""

    folder: Path
    size: int  # bytes
    since: float


class Store:
    """Finished results by id, oldest first out."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.root = Path(tempfile.mkdtemp(prefix="normlens-serve-"))
        self.kept: OrderedDict[str, Kept] = OrderedDict()
        self.gone: deque[str] = deque(maxlen=REMEMBERED)
        self.size = 0

    def new(self) -> tuple[str, Path]:
        """An id that cannot be guessed, and a folder for it."""
        name = secrets.token_urlsafe(16)
        folder = self.root / name
        folder.mkdir()
        return name, folder

    def keep(self, name: str) -> list[str]:
        """Count a finished result, and give the ids of those that had to go for it."""
        folder = self.root / name
        size = sum(path.stat().st_size for path in folder.iterdir())
        self.kept[name] = Kept(folder, size, time.monotonic())
        self.size += size
        return self.tidy()

    def tidy(self) -> list[str]:
        """Throw out what is too old or too much; the newest result stays, however large."""
        thrown = []
        while self.kept:
            name, oldest = next(iter(self.kept.items()))
            late = time.monotonic() - oldest.since > self.limits.result_seconds
            full = len(self.kept) > self.limits.results or self.size > self.limits.result_bytes
            if not late and not (full and len(self.kept) > 1):
                break
            self.drop(name)
            thrown.append(name)
        return thrown

    def drop(self, name: str) -> tuple[str, ...]:
        """Forget a result, or the folder of a job that came to nothing."""
        found = self.kept.pop(name, None)
        if found is not None:
            self.size -= found.size
            self.gone.append(name)
        shutil.rmtree(self.root / name, ignore_errors=True)
        return ()

    def folder(self, name: str) -> Path:
        """Where the result of this id lies."""
        found = self.kept.get(name)
        if found is not None:
            return found.folder
        raise self.missing(name)

    def missing(self, name: str) -> Refusal:
        """What to say of an id that is not there."""
        if name in self.gone:
            return Refusal(410, "This result is no longer kept.", "run it again.")
        return Refusal(404, "There is no such result.", "run it again.")

    def close(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
