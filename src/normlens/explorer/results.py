"""Results on disk: the files of one result, and a private folder of them bounded in number, bytes and time.

    header.json, chunk-N.bin    the packed figure, which the page shows
    exact.npz                   the numbers of every panel in float32, by row and by column, for a pinned token
    trace.safetensors           the trace; a difference has first.safetensors and second.safetensors

Ids are made here, and nothing a browser sends becomes a path. A killed server leaves its folder behind. Each folder
holds a file that its server keeps locked; a lock ends with its process, so the next server can tell.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import stat
import tempfile
import time
import zipfile
from collections import deque
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

import numpy as np

from normlens.explorer.refusal import Refusal, gone
from normlens.explorer.settings import Limits

if TYPE_CHECKING:
    from normlens.views import Figure

HEADER, EXACT, PAGE, TRACE = "header.json", "exact.npz", "view.html", "trace.safetensors"
AXES: tuple[Literal["tgt", "src"], ...] = ("tgt", "src")
FIRST, SECOND = "first.safetensors", "second.safetensors"
PREFIX, LOCKED = "normlens-serve-", "server.pid"
REMEMBERED = 4096  # ids of deleted results


def write(folder: Path, figure: Figure) -> None:
    """Write everything but the traces."""
    from normlens import views

    packed = views.packed(figure)
    (folder / HEADER).write_text(json.dumps(packed.header, ensure_ascii=False), encoding="utf-8")
    for number, chunk in enumerate(packed.chunks):
        (folder / f"chunk-{number}.bin").write_bytes(chunk)
    with zipfile.ZipFile(folder / EXACT, "w") as archive:  # one panel in memory at a time
        for panel, axis in product(range(len(figure.panels)), AXES):
            with archive.open(f"{panel}-{axis}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, views.exact_lines(figure, panel, axis), allow_pickle=False)


def exact(folder: Path, panel: int, axis: str, at: int) -> bytes:
    """Row (tgt) or column (src) `at` of every map of one panel, in float32."""
    try:
        with np.load(folder / EXACT) as lines:
            rows = lines[f"{panel}-{axis}"]
    except OSError as error:
        raise gone() from error
    except KeyError as error:
        raise Refusal(404, f"This result has no panel {panel}.", do="ask for one that the header lists.") from error
    if at >= len(rows):
        raise Refusal(404, f"Panel {panel} has no {axis} position {at}.", do=f"ask for one of 0 to {len(rows) - 1}.")
    return rows[at].tobytes()


@dataclass(frozen=True, slots=True)
class Kept:
    """A finished result."""

    size: int  # bytes
    since: float


class Store:
    """Finished results by id; the oldest is deleted first."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        delete_leftovers(Path(tempfile.gettempdir()))
        self.root = Path(tempfile.mkdtemp(prefix=PREFIX))
        self.lock = _locked(self.root)
        self.kept: dict[str, Kept] = {}
        self.uploads: dict[str, int] = {}  # bytes by id, until their runs are over
        self.gone: deque[str] = deque(maxlen=REMEMBERED)

    @property
    def size(self) -> int:
        return sum(result.size for result in self.kept.values())

    def new(self) -> str:
        """An id that cannot be guessed, with a folder."""
        name = secrets.token_urlsafe(16)
        (self.root / name).mkdir()
        return name

    def expect(self, name: str, size: int) -> None:
        """Count further bytes of an upload before they are written."""
        if sum(self.uploads.values()) + size > self.limits.result_bytes:
            raise Refusal(507, "Too many files wait to be opened.", do="try again in a few seconds.", wait=5)
        self.uploads[name] = self.uploads.get(name, 0) + size

    def keep(self, name: str) -> list[str]:
        """Count a finished result, and return the ids of those deleted for it."""
        self.uploads.pop(name, None)
        with contextlib.suppress(OSError):  # its folder was deleted by somebody else
            size = sum(path.stat().st_size for path in (self.root / name).iterdir())
            self.kept[name] = Kept(size, time.monotonic())
        return self.tidy()

    def tidy(self) -> list[str]:
        """Delete what is too old or too much; the newest result stays, whatever its size."""
        deleted = []
        for name, result in list(self.kept.items()):
            old = time.monotonic() - result.since > self.limits.result_seconds
            full = len(self.kept) > self.limits.results or self.size > self.limits.result_bytes
            if not old and not (full and len(self.kept) > 1):
                break
            self.drop(name)
            deleted.append(name)
        return deleted

    def drop(self, name: str) -> None:
        """Delete a result, or the folder of a run without one."""
        self.uploads.pop(name, None)
        if self.kept.pop(name, None) is not None:
            self.gone.append(name)
        shutil.rmtree(self.root / name, ignore_errors=True)

    def folder(self, name: str) -> Path:
        """The folder of the result of this id."""
        if name not in self.kept:
            raise self.missing(name)
        return self.root / name

    def missing(self, name: str) -> Refusal:
        """The refusal for an id that is not there."""
        return gone() if name in self.gone else Refusal(404, "There is no such result.", do="run it again.")

    def close(self) -> None:
        self.lock.close()
        shutil.rmtree(self.root, ignore_errors=True)


def delete_leftovers(parent: Path) -> None:
    """Delete what killed servers of this user left here: real folders whose lock nobody holds."""
    for folder in parent.glob(f"{PREFIX}*") if os.name == "posix" else ():
        with contextlib.suppress(OSError):
            about = folder.lstat()
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
                continue
            with open(os.open(folder / LOCKED, os.O_RDWR | os.O_NOFOLLOW), "rb") as file:
                _lock(file)  # fails while its server lives
                shutil.rmtree(folder, ignore_errors=True)


def _locked(root: Path) -> IO[bytes]:
    """The locked file of a folder, named after it is locked, so that nobody finds it without its lock."""
    unnamed = root / f"{LOCKED}.new"
    file = unnamed.open("wb")
    with contextlib.suppress(OSError, ImportError):  # a system without locks: such a folder is never deleted
        _lock(file)
        unnamed.rename(root / LOCKED)
    return file


def _lock(file: IO[bytes]) -> None:
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
