"""The lines of a text file: unpacked, decoded, with one kind of line end."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from normlens.corpora.item import CorpusError
from normlens.errors import first_line

BLOCK = 1 << 16
UNPACK: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # control bytes that text is not made of


class BinaryFile(CorpusError):
    """A file that is not text."""


@contextmanager
def opened(path: Path) -> Iterator[BufferedIOBase]:
    """The bytes of a file, unpacked when its name says that it is packed."""
    try:
        with UNPACK.get(path.suffix.lower(), open)(path, "rb") as stream:
            yield stream
    except FileNotFoundError as error:
        raise CorpusError(
            f"There is no file '{path}'.",
            cause="a misspelt path, or another working directory.",
            do="check the path.",
        ) from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise CorpusError(
            f"'{path}' cannot be read.",
            got=first_line(error),
            cause="a download that was cut short, a suffix (.gz, .xz, .bz2) that is not the file's format, or a file "
            "that you may not read.",
            do="fetch it again, or check it with the tool that made it.",
        ) from error


def file_lines(path: Path, encoding: str = "utf-8", *, name: str | None = None) -> Iterator[str]:
    """The lines of a file, plain or packed, without their ends; errors call it by `name`."""
    with opened(path) as stream:
        yield from lines(stream, str(path) if name is None else name, encoding)


def kind(path: Path) -> str:
    """The suffix that names the format, without that of the packing: '.jsonl' for 'a.jsonl.gz'."""
    return (path.with_suffix("") if path.suffix.lower() in UNPACK else path).suffix.lower()


def lines(stream: BufferedIOBase, name: str, encoding: str) -> Iterator[str]:
    """The lines, without their ends."""
    held: list[str] = []
    for text in _decoded(stream, name, encoding):
        first, *rest = text.split("\n")
        held.append(first)
        if rest:
            yield "".join(held)
            yield from rest[:-1]
            held = rest[-1:]
    if last := "".join(held):
        yield last


def _decoded(stream: BufferedIOBase, name: str, encoding: str) -> Iterator[str]:
    block = stream.read(BLOCK)
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(_marked(block, encoding))(), translate=True)
    read, ended = 0, 0
    while True:
        is_first, read = read == 0, read + len(block)
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            if is_first and CONTROL.search(error.object):
                raise _binary(name) from error
            raise _undecodable(name, encoding, error, read, ended) from error
        except UnicodeError as error:  # some codecs say no more than this, such as UTF-16 without its mark
            raise _not_in(name, encoding, ended + 1, first_line(error)) from error
        if is_first and "\0" in text:
            raise _binary(name)
        yield text
        if not block:
            return
        ended += text.count("\n")
        block = stream.read(BLOCK)


def _marked(block: bytes, encoding: str) -> str:
    """The encoding that a byte order mark at the start declares, when the default was asked for."""
    declared = next((codec for mark, codec in MARKS.items() if block.startswith(mark)), encoding)
    return declared if codecs.lookup(encoding).name == "utf-8" else encoding


def _binary(name: str) -> BinaryFile:
    return BinaryFile(
        f"'{name}' seems binary: its first bytes are not text.",
        cause="an archive, a picture, a document of a word processor, or text in UTF-16.",
        do="save it as plain text, .jsonl or .csv; for UTF-16 give --encoding utf-16 (encoding='utf-16' in Python).",
    )


def _undecodable(name: str, encoding: str, error: UnicodeDecodeError, read: int, ended: int) -> CorpusError:
    line = ended + error.object[: error.start].count(b"\n") + 1
    offset = read - len(error.object) + error.start
    got = f"byte 0x{error.object[error.start]:02x} at byte offset {offset} ({error.reason})."
    return _not_in(name, encoding, line, got)


def _not_in(name: str, encoding: str, line: int, got: str) -> CorpusError:
    return CorpusError(
        f"{name}:{line}: not text in {encoding}.",
        got=got,
        cause="the file is in another encoding.",
        do="give its encoding: --encoding latin-1 for Western European, cp1252 for Windows, utf-16 "
        "(encoding='latin-1' in Python).",
    )
