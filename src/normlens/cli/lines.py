"""Lines from a file or from standard input, as they come, and lines into a file."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from normlens.corpora.files import lines, opened
from normlens.errors import NormlensError


class LinesError(NormlensError):
    """A file that lines cannot be written to."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines, where they come from, and whether somebody is typing them."""

    lines: Iterator[str]
    name: str
    typed: bool


def lines_from(file: str, *, encoding: str = "utf-8") -> Lines:
    """The lines of a file, plain or packed, or of standard input for '-'."""
    if file == "-":
        return Lines(lines(Eager(sys.stdin.buffer), "stdin", encoding), "stdin", sys.stdin.isatty())
    return Lines(_of_file(Path(file), encoding), file, False)


def write_lines(texts: Iterable[str], path: Path, *, behind: int = 0, total: int | None = None) -> None:
    """Write lines as they come, so that an interruption loses none that was there; a bar counts them.

    `behind` is the number of lines that the file has already and keeps.
    """
    try:
        out = path.open("a" if behind else "w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise LinesError(
            f"'{path}' cannot be written.",
            got=f"{error.strerror}.",
            cause="its folder does not exist, or you may not write there.",
            do="name another file.",
        ) from error
    with out:
        for text in tqdm(texts, initial=behind, total=total, unit="line", disable=None, file=sys.stderr, leave=False):
            out.write(text + "\n")


class Eager(io.BufferedIOBase):
    """A stream that gives what it has instead of waiting for as much as was asked for."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def read(self, size: int | None = -1, /) -> bytes:
        return self.stream.read1(-1 if size is None else size)


def _of_file(path: Path, encoding: str) -> Iterator[str]:
    with opened(path) as stream:
        yield from lines(stream, str(path), encoding)
