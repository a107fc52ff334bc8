"""Links as lines of text, one line per sentence pair: `0-0 1-2`, with confidences `0-0:0.93`, and talp's `1p2`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from normlens.alignment.links import Alignment, LinksError
from normlens.corpora import CorpusError, lines, opened
from normlens.exhibits import many

TOKEN = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})(?::(\S+))?")


def read_pharaoh(
    path: Path | str,
    *,
    first: Literal[0, 1] = 0,
    reverse: bool = False,
    sources: Sequence[int] | None = None,
    targets: Sequence[int] | None = None,
) -> list[Alignment]:
    """The links of a file. A link without a confidence has confidence 1; a blank line is a sentence without links.

    `first` is the number of the first word in the file, `reverse` says that it was written target-source, and
    `sources` and `targets` are the words of each sentence, to check the links against.
    """
    frame = Frame(Path(path).name, first, reverse, sources, targets)
    alignments: list[Alignment] = []
    for number, row in enumerate(rows(path), start=1):
        confidences: dict[tuple[int, int], float] = {}
        for token in row:
            if token.possible:
                raise LinksError(
                    f"{frame.name}:{number}: a possible link, '{token.text}', which only gold can have.",
                    cause="a gold file given as an alignment.",
                    do="write every link as i-j.",
                )
            link = frame.link(token, number)
            confidences[link] = max(token.confidence, confidences.get(link, 0.0))
        alignments.append(Alignment.of(confidences))
    frame.check_lines(len(alignments), blank=sum(not one.links for one in alignments))
    return alignments


def to_pharaoh(alignment: Alignment, *, confidence: bool = False, first: Literal[0, 1] = 0) -> str:
    """One line, without its end.

    >>> to_pharaoh(Alignment(((0, 0), (1, 2)), (0.93, 0.5)), confidence=True)
    '0-0:0.93 1-2:0.5'
    """
    return " ".join(
        f"{source + first}-{target + first}" + (f":{sure:.3g}" if confidence else "")
        for (source, target), sure in zip(alignment.links, alignment.confidence, strict=True)
    )


def write_pharaoh(alignments: Iterable[Alignment], path: Path | str, *, confidence: bool = False) -> None:
    """One line per alignment, as they come."""
    path = Path(path)
    if not path.parent.is_dir():
        raise LinksError(
            f"There is no folder '{path.parent}' to write links to.",
            do="make it, or give another file.",
        )
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.writelines(to_pharaoh(one, confidence=confidence) + "\n" for one in alignments)


class Token(NamedTuple):
    """One link as it was written."""

    left: int
    right: int
    possible: bool
    confidence: float
    text: str


@dataclass(frozen=True, slots=True)
class Frame:
    """How the links of a file are numbered, and the sentences that they must stay within."""

    name: str
    first: Literal[0, 1]
    reverse: bool
    sources: Sequence[int] | None
    targets: Sequence[int] | None

    def link(self, token: Token, number: int) -> tuple[int, int]:
        """A token of line `number`, as (source, target) from 0."""
        sides = (token.right, token.left) if self.reverse else (token.left, token.right)
        for side, words, written in zip(("source", "target"), (self.sources, self.targets), sides, strict=True):
            if written < self.first:
                raise LinksError(
                    f"{self.name}:{number}: '{token.text}' names word 0, and words are counted from 1 here.",
                    cause="a file that counts from 0.",
                    do="say so: --first 0 (first=0 in Python); or check the format that was named.",
                )
            if words is not None and number <= len(words) and written - self.first >= words[number - 1]:
                raise LinksError(
                    f"{self.name}:{number}: '{token.text}' names {side} word {written}, and that sentence has "
                    f"{words[number - 1]} words, counted from {self.first}.",
                    cause=(
                        "links written target-source, counted from the other number, lines that slipped, or text "
                        "that was split into words in another way."
                    ),
                    do="try --reverse or --first (reverse=, first= in Python), or give the text as it was split.",
                )
        return sides[0] - self.first, sides[1] - self.first

    def check_lines(self, lines: int, *, blank: int) -> None:
        """Every sentence has its line."""
        for side, words in (("source", self.sources), ("target", self.targets)):
            if words is not None and len(words) != lines:
                raise uneven_lines(self.name, lines, f"{side} sentences", len(words), blank)


def rows(path: Path | str) -> Iterator[list[Token]]:
    """The links of each line, as they stand."""
    path = Path(path)
    with opened(path) as stream:
        try:
            for number, line in enumerate(lines(stream, path.name, "utf-8"), start=1):
                yield [_token(text, f"{path.name}:{number}") for text in line.split()]
        except CorpusError as error:
            raise LinksError(
                error.what,
                cause="a text, or a packed file, where links should be.",
                do="give a file of links like 0-0 1-2, which needs no letters but those of ASCII.",
            ) from error


def uneven_lines(name: str, lines: int, other: str, expected: int, blank: int) -> LinksError:
    """Files whose lines do not match."""
    return LinksError(
        f"{name} has {lines} lines for {expected} {other}: line {min(lines, expected) + 1} has no partner.",
        got=f"{many(blank, 'blank line')} in {name}; every line is a sentence pair, a blank one a pair without links.",
        cause="blank lines that mean nothing, or a file cut short.",
        do="remove those lines, or give the files that belong together.",
    )


def _token(text: str, where: str) -> Token:
    matched = TOKEN.fullmatch(text)
    confidence = _confidence(matched[4]) if matched else math.nan
    if matched is None or math.isnan(confidence):
        raise LinksError(
            f"{where}: '{text:.40}' is no link.",
            got="i-j, i-j with a confidence from 0 to 1 (i-j:0.93), and in gold ipj for a possible link.",
            cause="a text, or another format, where links should be.",
            do="write the line in one of these.",
        )
    return Token(int(matched[1]), int(matched[3]), matched[2] == "p", confidence, text)


def _confidence(text: str | None) -> float:
    try:
        number = 1.0 if text is None else float(text)
    except ValueError:
        return math.nan
    return number if 0 <= number <= 1 else math.nan
