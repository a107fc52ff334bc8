"""Parallel text: two files, of which line n of one is the translation of line n of the other.

It is streamed as often as wanted, never held whole; some of it is held back to validate on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from normlens.corpora import file_lines
from normlens.errors import NormlensError

Pair = tuple[str, str]
HELD_BACK = (1000, 0.05)  # pairs, or this share of them, whichever is less


class TextError(NormlensError):
    """Two files, or pairs, that are no parallel text."""


@dataclass(frozen=True, slots=True)
class Parallel:
    """The lines of two files, side by side, without white space around them; one pair at a time is in memory."""

    source: Path
    target: Path
    encoding: str = "utf-8"

    def __iter__(self) -> Iterator[Pair]:
        both = zip_longest(file_lines(self.source, self.encoding), file_lines(self.target, self.encoding))
        for number, (source, target) in enumerate(both, 1):
            if source is None or target is None:
                raise self._uneven(number, 1 + sum(1 for _ in both))
            yield source.strip(), target.strip()

    def describe(self) -> str:
        """The names of the two files, wherever they lie."""
        return f"{self.source.name} and {self.target.name}"

    def _uneven(self, number: int, rest: int) -> TextError:
        """`number` is the first line that only one file has, `rest` how many it has from there on."""
        longer = (
            self.source
            if any(n == number for n, _ in enumerate(file_lines(self.source, self.encoding), 1))
            else self.target
        )
        counts = {self.source: number - 1, self.target: number - 1} | {longer: number - 1 + rest}
        return TextError(
            f"{longer}:{number}: there is no such line in the other file.",
            got=f"{counts[self.source]} lines in '{self.source}', {counts[self.target]} in '{self.target}'.",
            cause="one download was cut short, empty lines were deleted in one file only, or a line break is inside "
            "a sentence.",
            do="give two files of the same number of lines, where line n of one is the translation of line n of the "
            "other.",
        )


@dataclass(frozen=True, slots=True)
class Survey:
    """How much there is, and what tells it from another text."""

    pairs: int  # with text on both sides
    left_out: int  # with an empty side
    digest: str  # twelve hex digits over the pairs, wherever they lie


def parallel(source: str | Path, target: str | Path, *, encoding: str = "utf-8") -> Parallel:
    """Two text files, each plain or packed as .gz, .xz or .bz2 by its name."""
    both = Parallel(Path(source), Path(target), encoding)
    for path in (both.source, both.target):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise TextError(
                f"'{path}' is a pipe, which can be read only once.",
                cause="<( ) on the command line; the text is read several times.",
                do="give a file; it may be packed as .gz, .xz or .bz2.",
            )
    if both.source.is_file() and both.target.is_file() and both.source.samefile(both.target):
        raise _same(both.describe())
    return both


def with_text(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """The pairs that have text on both sides."""
    return ((source, target) for source, target in pairs if source.strip() and target.strip())


def survey(pairs: Iterable[Pair], name: str = "the pairs") -> Survey:
    """Read everything once: count, hash, and refuse what is no parallel text."""
    if isinstance(pairs, Iterator):
        raise TextError(
            f"The pairs are a {type(pairs).__name__}, which can be read only once.",
            do="give a list of pairs, or parallel(source, target) for files.",
        )
    content, count, left_out, differ = hashlib.sha256(), 0, 0, False
    for source, target in pairs:
        if not (source.strip() and target.strip()):
            left_out += 1
            continue
        count += 1
        differ = differ or source != target
        content.update(json.dumps([source, target]).encode())
    if count == 0:
        raise TextError(
            f"There is no text in {name}.",
            got=f"{left_out} pairs, each with an empty side.",
            cause="an empty file, or a file of blank lines.",
            do="give at least one pair of sentences.",
        )
    if not differ:
        raise _same(name)
    return Survey(count, left_out, content.hexdigest()[:12])


@dataclass(frozen=True, slots=True)
class Text:
    """Parallel text, read once to know it, with the pairs that are held back."""

    pairs: Iterable[Pair]
    kept: int  # pairs to train on, the first ones
    left_out: int  # with an empty side
    digest: str
    name: str
    held: list[Pair]
    held_digest: str
    held_name: str

    def training(self) -> Iterator[Pair]:
        """The pairs to train on."""
        return islice(with_text(self.pairs), self.kept)


def read(pairs: Iterable[Pair], valid: Iterable[Pair] | None) -> Text:
    """Read the text once and decide what is held back: `valid`, or the last pairs."""
    name = _name(pairs)
    found = survey(pairs, name)
    if valid is not None:
        named = _name(valid)
        other = survey(valid, named)
        return Text(pairs, found.pairs, found.left_out, found.digest, name, list(with_text(valid)), other.digest, named)
    count = max(1, min(HELD_BACK[0], int(found.pairs * HELD_BACK[1])))
    kept = found.pairs - count
    if not kept:
        raise TextError(
            "One pair is not enough: the last pairs are held back for validation.",
            do="give more pairs, or pairs to validate on with --valid-source and --valid-target (valid= in Python).",
        )
    held, named = list(islice(with_text(pairs), kept, None)), f"its last {count} pairs, held back"
    return Text(pairs, kept, found.left_out, found.digest, name, held, named, named)


def _name(pairs: Iterable[Pair]) -> str:
    describe: Any = getattr(pairs, "describe", None)
    return describe() if describe else "pairs given in Python"


def _same(name: str) -> TextError:
    return TextError(
        f"Source and target are the same text: {name}.",
        cause="one file was given for both sides.",
        do="give a text and its translation.",
    )
