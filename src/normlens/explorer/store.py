"""Results on disk, in one private folder that is gone when the server is: bounded in number, bytes and time.

Room: folders by id. The ids are made here; a browser's words never become a path.

A server that was killed leaves its folder behind. Each folder holds a file that its server keeps locked, so that the
next one can tell: a lock ends with its process, whatever number that process had.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from normlens.explorer.refusal import Refusal, gone
from normlens.explorer.settings import Limits

PREFIX, MARK = "normlens-serve-", "server.pid"
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
        sweep(Path(tempfile.gettempdir()))
        self.root = Path(tempfile.mkdtemp(prefix=PREFIX))
        self.mark = _marked(self.root)
        self.kept: OrderedDict[str, Kept] = OrderedDict()
        self.pending: dict[str, int] = {}  # bytes of uploads by id, until their jobs are over
        self.gone: deque[str] = deque(maxlen=REMEMBERED)
        self.size = 0

    def new(self) -> tuple[str, Path]:
        """An id that cannot be guessed, and a folder for it."""
        name = secrets.token_urlsafe(16)
        folder = self.root / name
        folder.mkdir()
        return name, folder

    def expect(self, name: str, size: int) -> None:
        """Count further bytes of an upload, before they are written."""
        if sum(self.pending.values()) + size > self.limits.result_bytes:
            raise Refusal(
                507, "Too many files wait to be opened.", "try again when some of them are done.", retry_after=10
            )
        self.pending[name] = self.pending.get(name, 0) + size

    def keep(self, name: str) -> list[str]:
        """Count a finished result, or one that has grown, and give the ids of those that had to go for it."""
        folder = self.root / name
        self.pending.pop(name, None)
        size = sum(path.stat().st_size for path in folder.iterdir())
        before = self.kept.get(name)
        self.kept[name] = Kept(folder, size, before.since if before else time.monotonic())
        self.size += size - (before.size if before else 0)
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

    def drop(self, name: str) -> None:
        """Forget a result, or the folder of a job that came to nothing."""
        self.pending.pop(name, None)
        found = self.kept.pop(name, None)
        if found is not None:
            self.size -= found.size
            self.gone.append(name)
        shutil.rmtree(self.root / name, ignore_errors=True)

    def folder(self, name: str) -> Path:
        """Where the result of this id lies."""
        found = self.kept.get(name)
        if found is not None:
            return found.folder
        raise self.missing(name)

    def missing(self, name: str) -> Refusal:
        """What to say of an id that is not there."""
        if name in self.gone:
            return gone()
        return Refusal(404, "There is no such result.", "run it again.")

    def close(self) -> None:
        self.mark.close()
        shutil.rmtree(self.root, ignore_errors=True)


def sweep(parent: Path) -> None:
    """Remove what killed servers of this user left here: real folders whose mark nobody holds any more."""
    for folder in parent.glob(f"{PREFIX}*") if os.name == "posix" else ():
        with contextlib.suppress(OSError):
            about = folder.lstat()
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
                continue
            mark = os.open(folder / MARK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                _lock(mark)  # fails while its server lives
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(mark)


def _marked(root: Path) -> IO[str]:
    """The locked mark of a folder. It gets its name when it has its lock, so that nobody finds it without."""
    unnamed = root / f"{MARK}.new"
    mark = unnamed.open("w", encoding="ascii")
    mark.write(f"{os.getpid()}\n")
    mark.flush()
    with contextlib.suppress(OSError, ImportError):  # a system without locks; a mark without a name is never swept
        _lock(mark.fileno())
        unnamed.rename(root / MARK)
    return mark


def _lock(file: int) -> None:
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
