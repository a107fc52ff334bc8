"""A corpus: texts or pairs of texts, streamed from files, folders, standard input or Python values."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from normlens.corpora.item import CorpusError, Item, Layout, Split
from normlens.corpora.sources import Start, from_path, from_stream, from_values


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Items to iterate over, again and again; one at a time is in memory."""

    name: str
    start: Start  # begins a pass
    notes: list[str]  # what a reader should know, e.g. that an odd last text was left out; complete after a pass

    def __iter__(self) -> Iterator[Item]:
        item = None
        for item in self.start():
            yield item
        if item is None:
            raise CorpusError(
                f"There is no text in the corpus ({self.name}).",
                cause="an empty file or list, or a file of blank lines.",
                do="give at least one text (two for --pairs).",
            )

    def describe(self) -> str:
        """A short name: the file's, "stdin", "12 texts"."""
        return self.name


@dataclass(frozen=True, slots=True)
class Survey:
    """How much there is, and what tells it from another corpus."""

    items: int
    digest: str  # twelve hex digits over the content, wherever it lies


def corpus(
    source: str | os.PathLike[str] | Iterable[Any],
    *,
    split: Split = "line",
    column: str | int | None = None,
    pair_column: str | int | None = None,
    label_column: str | int | None = None,
    pairs: bool = False,
    encoding: str = "utf-8",
) -> Corpus:
    """Texts from a file, a folder, "-" for standard input, or Python values: a list of texts, pairs or mappings.

    The suffix names the format: .jsonl .ndjson .json .csv .tsv .conllu .pkl, each also packed as .gz .xz .bz2; all else
    is plain text, split by `split`. `pairs` makes one item of two consecutive texts. `label_column` holds what a
    classifier should answer, "label" by default where there is one.
    """
    if isinstance(source, Corpus):
        return source
    _check(split, encoding)
    layout = Layout(split, column, pair_column, label_column, pairs, encoding)
    notes: list[str] = []

    def note(text: str) -> None:
        if text not in notes:
            notes.append(text)

    if not isinstance(source, (str, os.PathLike)):
        return Corpus(_count(source), from_values(source, layout, note), notes)
    if source == "-":
        typed: Any = sys.stdin.buffer
        return Corpus("stdin", from_stream(typed, "stdin", layout, note), notes)
    path = Path(source)
    start = from_path(path, layout, note)
    return Corpus(f"{path.resolve().name}/" if path.is_dir() else path.name, start, notes)


def default_corpus() -> Corpus:
    """The bundled text: pairs of paragraphs of English, written for this project."""
    found = corpus(Path(__file__).parent / "bundled" / "paragraphs.txt", split="paragraph", pairs=True)
    return replace(found, name="the bundled text")


def survey(corpus: Corpus, limit: int | None = None) -> Survey:
    """Count and hash the first `limit` items, or all, in one pass."""
    if limit is not None and limit < 1:
        raise CorpusError(
            f"limit must be at least 1 (got {limit}).",
            do="give --limit 1 or more (limit= in Python), or leave it out.",
        )
    content, count = hashlib.sha256(), 0
    for item in islice(corpus, limit):
        count += 1
        labels = [] if item.labels is None else [item.labels.spans, item.labels.pairs]
        label = [] if item.label is None else [item.label]
        content.update(json.dumps([item.texts, item.tokens, *label, *labels]).encode())
    return Survey(count, content.hexdigest()[:12])


def _check(split: str, encoding: str) -> None:
    if split not in get_args(Split):
        raise CorpusError(
            f"split must be {' or '.join(get_args(Split))} (got {split!r}).",
            do="give --split line or --split paragraph (split= in Python).",
        )
    try:
        "".encode(encoding)
    except LookupError as error:
        raise CorpusError(
            f"There is no text encoding '{encoding}'.",
            do="give --encoding utf-8, latin-1, cp1252 or utf-16 (encoding= in Python), or another that Python knows.",
        ) from error


def _count(source: Any) -> str:
    if not isinstance(source, Sized):
        return "a stream of texts"
    if not len(source):
        return "an empty list"
    return f"{len(source)} text{'' if len(source) == 1 else 's'}"
