"""Files that are whole or not there at all: written beside their place, then moved into it. Tables need pandas."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from normlens.errors import NormlensError


class TablesMissing(NormlensError, ImportError):
    """pandas is not installed."""


class NotWritten(NormlensError, OSError):
    """A file that cannot be written."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes `path` when the block ends and is removed when it fails."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file at once: whoever reads it sees all of the old content or all of the new."""
    with replacing(path) as unfinished:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)


def import_pandas() -> Any:
    """pandas, or an error that names what to install."""
    try:
        import pandas
    except ImportError as error:
        raise TablesMissing(
            "Tables need pandas, which is not installed.",
            do="pip install 'normlens[tables]'.",
        ) from error
    return pandas


@contextmanager
def writing(path: Path, refused: type[NormlensError] = NotWritten) -> Iterator[None]:
    """The folder of a file is made, and a file that cannot be written is an error in words."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise refused(f"'{path}' cannot be written: {error.strerror or error}.", do="choose another place.") from error


def write_table(table: Any, path: Path) -> None:
    """Write a data frame as .csv or .parquet."""
    with writing(path):
        table.to_csv(path, index=False) if path.suffix == ".csv" else table.to_parquet(path, index=False)
