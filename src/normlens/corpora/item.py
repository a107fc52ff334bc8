"""One item of a corpus, where items are in a file, and the error of this room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from normlens.errors import NormlensError

Split = Literal["line", "paragraph"]


class CorpusError(NormlensError):
    """A corpus, or a file that goes with one, that cannot be read."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The words of a text, and labelled relations between them."""

    spans: tuple[tuple[int, int], ...]  # of each word, in characters of the text
    pairs: tuple[tuple[str, int, int], ...]  # relation, head word, dependent; words counted from 0


@dataclass(frozen=True, slots=True)
class Item:
    """One text, a pair of texts, or a sequence that comes as tokens."""

    texts: tuple[str, ...]  # one or two; none when there are tokens
    tokens: tuple[str, ...] | None  # ready tokens, special ones included
    where: str  # "corpus.txt:12", for messages
    label: str | None = None  # what a classifier should answer
    labels: Labels | None = None  # words and relations of a single text


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the texts are in a file."""

    split: Split = "line"  # plain text: one text a line, or one a paragraph
    column: str | int | None = None  # tables and JSON: the text
    pair_column: str | int | None = None  # the second text
    label_column: str | int | None = None  # what a classifier should answer
    pairs: bool = False  # two consecutive texts make one item
    encoding: str = "utf-8"
