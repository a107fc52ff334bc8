"""Word links made by hand, to measure an aligner with: sure ones, which it must find, and possible ones, which it may.

talp      i-j sure, ipj possible, words counted from 1
Pharaoh   i-j sure, words counted from 0; possible links in a second file, if there are any
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from normlens.alignment.links import Links, LinksError
from normlens.alignment.pharaoh import Frame, Token, rows, uneven_lines

Format = Literal["auto", "talp", "pharaoh"]


@dataclass(frozen=True, slots=True)
class Gold:
    """The links of one sentence pair, (source, target) from 0. Sure links are always possible too: P = S ∪ possible."""

    sure: Links
    possible: Links

    def __post_init__(self) -> None:
        object.__setattr__(self, "possible", self.sure | self.possible)


@dataclass(frozen=True, slots=True)
class GoldFile:
    """Gold, and how it was read."""

    golds: list[Gold]
    format: Literal["talp", "pharaoh"]
    first: Literal[0, 1]


def read_gold(
    path: Path | str,
    *,
    format: Format = "auto",
    possible: Path | str | None = None,
    first: Literal[0, 1] | None = None,
    reverse: bool = False,
    sources: Sequence[int] | None = None,
    targets: Sequence[int] | None = None,
) -> list[Gold]:
    """Gold, one per line; a blank line is a sentence pair without links.

    `first` is the number of the first word, 1 in talp and 0 in Pharaoh unless said; `reverse` says that the file was
    written target-source; `sources` and `targets` are the words of each sentence, to check the links against.
    """
    return open_gold(
        path, format=format, possible=possible, first=first, reverse=reverse, sources=sources, targets=targets
    ).golds


def open_gold(
    path: Path | str,
    *,
    format: Format = "auto",
    possible: Path | str | None = None,
    first: Literal[0, 1] | None = None,
    reverse: bool = False,
    sources: Sequence[int] | None = None,
    targets: Sequence[int] | None = None,
) -> GoldFile:
    """As read_gold, with the format that was recognised."""
    path = Path(path)
    written = _written(path)
    if not any(written):
        raise LinksError(
            f"'{path.name}' holds no links.",
            do="give a file with gold links, one line per sentence pair.",
        )
    kind = _kind(path, written, format, possible)
    start = _start(path, written, kind, format, first)
    frame = Frame(path.name, start, reverse, sources, targets)
    frame.check_lines(len(written), blank=_blank(written))
    golds = [_gold(frame, row, number) for number, row in enumerate(written, start=1)]
    if possible is not None:
        more = _second(Path(possible), Frame(Path(possible).name, start, reverse, sources, targets), path, written)
        golds = [Gold(gold.sure, links) for gold, links in zip(golds, more, strict=True)]
    return GoldFile(golds, kind, start)


def _kind(path: Path, written: list[list[Token]], format: Format, possible: object) -> Literal["talp", "pharaoh"]:
    """The format, and no mixture of two."""
    marked = _first(written, "p")
    kind = format if format != "auto" else "talp" if marked or path.suffix.lower() == ".talp" else "pharaoh"
    if marked and kind == "pharaoh":
        raise LinksError(
            f"{path.name}:{marked[0]}: mixed formats: '{marked[1]}' is a possible link of talp, in a Pharaoh file.",
            do="name format talp; or write that link as i-j into a file of possible links.",
        )
    if kind == "talp" and possible is not None:
        raise LinksError(
            (f"{path.name}:{marked[0]}: mixed formats: '{marked[1]}'" if marked else f"{path.name}: mixed formats: it")
            + " is talp, which marks its possible links itself, and a file of possible links is given too.",
            do="leave that file out; or name format pharaoh, and first=1 if its words are counted from 1.",
        )
    return kind


def _start(
    path: Path, written: list[list[Token]], kind: str, format: Format, first: Literal[0, 1] | None
) -> Literal[0, 1]:
    """The number of the first word. It is not guessed where the file leaves it open."""
    if first is not None:
        return first
    if kind == "talp":
        return 1
    if format == "auto" and all(min(token.left, token.right) > 0 for row in written for token in row):
        raise LinksError(
            f"{path.name} does not show whether its words are counted from 0 or from 1: it never names word 0.",
            cause="talp without possible links.",
            do="say first=1 (--first 1) or first=0 (--first 0), or name the format.",
        )
    return 0


def _gold(frame: Frame, row: list[Token], number: int) -> Gold:
    placed = [(token.possible, frame.link(token, number)) for token in row]
    return Gold(*(frozenset(link for marked, link in placed if marked == kind) for kind in (False, True)))


def _second(path: Path, frame: Frame, beside: Path, sure: list[list[Token]]) -> list[Links]:
    """The possible links of a file of their own."""
    written = _written(path)
    if len(written) != len(sure):
        raise uneven_lines(path.name, len(written), f"lines of {beside.name}", len(sure), _blank(written))
    if marked := _first(written, "p"):
        raise LinksError(
            f"{path.name}:{marked[0]}: mixed formats: '{marked[1]}' is written as in talp, in a file of "
            "possible links.",
            do="write it as i-j; every link of this file is a possible one.",
        )
    return [_gold(frame, row, number).sure for number, row in enumerate(written, start=1)]


def _written(path: Path) -> list[list[Token]]:
    written = list(rows(path))
    if unsure := _first(written, ":"):
        raise LinksError(
            f"{path.name}:{unsure[0]}: '{unsure[1]}' has a confidence, which gold has not.",
            cause="the output of an aligner given as gold.",
            do="give gold; or write that link as i-j.",
        )
    return written


def _first(written: list[list[Token]], mark: str) -> tuple[int, str] | None:
    """The first link written with this mark, and its line."""
    return next(
        ((n, token.text) for n, row in enumerate(written, start=1) for token in row if mark in token.text), None
    )


def _blank(written: list[list[Token]]) -> int:
    return sum(not row for row in written)
