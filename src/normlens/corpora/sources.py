"""The sources of a corpus: files, the files of a folder, a pipe, Python values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from normlens.corpora.files import BinaryFile, kind, lines, opened
from normlens.corpora.formats import FORMATS, items, record
from normlens.corpora.item import CorpusError, Item, Layout
from normlens.corpora.spool import Spool

Note = Callable[[str], None]
Start = Callable[[], Iterator[Item]]


def from_path(path: Path, layout: Layout, note: Note) -> Start:
    """A file, the files of a folder, or a pipe, which is read once and kept."""
    _check_exists(path)
    if path.is_dir():
        files = _files(path, layout, note)
        return lambda: _read(files, path, layout, note)
    if path.is_file():
        return lambda: _read([path], path.parent, layout, note)
    return Spool(_read([path], path.parent, layout, note)).__iter__


def from_stream(stream: BufferedIOBase, name: str, layout: Layout, note: Note) -> Start:
    """Plain text that passes once, as bytes."""
    return Spool(_with_text(items(stream, name, "", layout, note), name, layout, note)).__iter__


def from_values(source: Any, layout: Layout, note: Note) -> Start:
    """Texts, pairs or mappings; an iterator is read once and kept."""
    if isinstance(source, (bytes, Mapping)) or not isinstance(source, Iterable):
        raise CorpusError(
            f"A value of type {type(source).__name__} is not a corpus.",
            do="give a path, '-' for standard input, or a list of texts or of pairs of texts.",
        )

    def start() -> Iterator[Item]:
        given = (record(value, f"texts[{index}]", layout) for index, value in enumerate(source))
        return _with_text(given, "texts", layout, note)

    return Spool(start()).__iter__ if isinstance(source, Iterator) else start


def _check_exists(path: Path) -> None:
    try:
        if path.exists():
            return
    except OSError:
        pass  # a name no file can have, e.g. one that is too long
    raise CorpusError(
        f"There is no file or folder '{str(path)[:300]}'.",
        cause="a misspelt path, another working directory, or a text where a path is expected.",
        do="check the path; to study one text, write it to a file, or in Python give it in a list: ['...'].",
    )


def _files(folder: Path, layout: Layout, note: Note) -> list[Path]:
    """The corpus files of a folder and its subfolders, hidden ones and binary ones left out."""
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if not path.is_file() or any(part.startswith(".") for part in name.parts):
            continue
        try:
            if kind(path) not in FORMATS:
                with opened(path) as stream:
                    next(lines(stream, name.as_posix(), layout.encoding), None)
            found.append(path)
        except BinaryFile:
            note(f"{name.as_posix()} was left out: it seems binary")
    if not found:
        raise CorpusError(
            f"There is no corpus file in the folder '{folder}'.",
            cause="an empty folder, or files that are hidden or binary.",
            do=f"put plain text there, or {' '.join(FORMATS)}, packed or not.",
        )
    return found


def _read(files: list[Path], folder: Path, layout: Layout, note: Note) -> Iterator[Item]:
    for path in files:
        name = path.relative_to(folder).as_posix()
        with opened(path) as stream:
            yield from _with_text(items(stream, name, kind(path), layout, note), name, layout, note)


def _with_text(given: Iterator[Item], name: str, layout: Layout, note: Note) -> Iterator[Item]:
    """Items that hold text, in pairs if asked for. What is left out is noted at the end."""
    left_out = 0
    first: Item | None = None
    for item in given:
        if not (item.tokens or (item.texts and all(text.strip() for text in item.texts))):
            left_out += 1
        elif not layout.pairs:
            yield item
        elif len(item.texts) != 1:
            raise CorpusError(
                f"{item.where}: already {('a pair' if item.texts else 'tokens')}, so it cannot be half of a pair.",
                do="leave out --pairs (pairs=True in Python).",
            )
        elif item.labels is not None:
            raise CorpusError(
                f"{item.where}: its words are labelled, so it cannot be half of a pair.",
                do="leave out --pairs (pairs=True in Python).",
            )
        elif first is None:
            first = item
        else:
            yield Item((first.texts[0], item.texts[0]), None, first.where)
            first = None
    if left_out:
        note(f"{name}: {left_out} without text left out")
    if first is not None:
        note(f"{first.where} was left out: it has no second text to make a pair with")
