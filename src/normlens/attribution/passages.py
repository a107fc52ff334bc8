"""Scores added up over sentences or passages: which part of a context an answer is due to."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from normlens.attribution.question import AttributionError
from normlens.models import spell, word_ids

if TYPE_CHECKING:
    from normlens.attribution.result import Explained

ENDS, CLOSES = set(".!?。！？"), set("\"'”’»)]")
ANSWER, OTHER = "(the answer so far)", "(other tokens)"


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of the text and the scores of its tokens, added up; of an answer, over all its tokens."""

    text: str
    first: int  # its first token
    last: int  # and its last, included
    score: float


def passages(last: Explained, totals: Sequence[float], texts: Sequence[str] | None) -> tuple[Passage, ...]:
    """Sentences, or the passages that are given; then the answer so far, and the tokens of no passage."""
    names = last.tokens[: last.given]
    if texts is None:
        numbers = sentences(names, last.special[: last.given])
        found = [
            [place for place, number in enumerate(numbers) if number == one]
            for one in sorted({number for number in numbers if number is not None})
        ]
        spans = [(_read(names[places[0] : places[-1] + 1]), places[0], places[-1]) for places in found]
    else:
        spans = _found(names, last.special[: last.given], texts)
    summed = [Passage(text, first, end, sum(totals[first : end + 1])) for text, first, end in spans]
    if last.given < len(totals):
        summed.append(Passage(ANSWER, last.given, len(totals) - 1, sum(totals[last.given :])))
    rest = sum(totals) - sum(one.score for one in summed)
    covered = sum(one.last - one.first + 1 for one in summed)
    return (*summed, *([Passage(OTHER, -1, -1, rest)] if covered < len(totals) else []))


def sentences(names: Sequence[str], special: Sequence[bool]) -> list[int | None]:
    """The sentence of each token; None for special tokens. One ends with its full stop and what closes it."""
    numbers: list[int | None] = []
    current, ended, begun = 0, False, False
    for name, is_special in zip(names, special, strict=True):
        piece = spell((name,))
        if is_special:
            numbers.append(None)
            current, ended, begun = current + begun, False, False
            continue
        if ended and not set(piece) <= ENDS | CLOSES:
            current, ended = current + 1, False
        numbers.append(current)
        begun = True
        ended = ended or (piece != "" and piece[-1] in ENDS)
    return numbers


def _found(names: Sequence[str], special: Sequence[bool], texts: Sequence[str]) -> list[tuple[str, int, int]]:
    """Where passages stand among the tokens, one after another; letters are compared, not spaces, case or accents."""
    letters, starts, ends = "", dict[int, int](), dict[int, int]()
    for place, (name, is_special) in enumerate(zip(names, special, strict=True)):
        if own := "" if is_special else _letters(spell((name,))):
            starts[len(letters)] = place
            letters += own
            ends[len(letters)] = place
    spans, at = [], 0
    for number, text in enumerate(texts):
        size = len(_letters(text))
        fits = [one for one in _matches(letters, _letters(text), at) if one in starts and one + size in ends]
        if not fits:
            raise AttributionError(
                f"Passage {number} is not found among the tokens of the text.",
                got=f"{text!r:.80}",
                cause="another order than in the text, an end within a token, or letters that the tokenizer does not "
                "keep.",
                do="give passages as they stand in the text, in their order; or none, for sentences.",
            )
        at = fits[0] + size
        spans.append((" ".join(text.split()), starts[fits[0]], ends[at]))
    return spans


def _matches(letters: str, wanted: str, at: int) -> Iterator[int]:
    """Where letters stand in others, from a place on."""
    while wanted and (at := letters.find(wanted, at)) >= 0:
        yield at
        at += 1


def _letters(text: str) -> str:
    folded = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in folded if not char.isspace() and not unicodedata.combining(char))


def _read(names: Sequence[str]) -> str:
    """Tokens as people read them."""
    pieces: dict[int | None, list[str]] = {}
    for name, word in zip(names, word_ids(names, [False] * len(names)), strict=True):
        pieces.setdefault(word, []).append(name)
    return " ".join(spell(word) for word in pieces.values())
