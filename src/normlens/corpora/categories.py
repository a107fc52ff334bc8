"""Categories of tokens: [CLS], [SEP], comma & period, the first position, and those a user names.

Every token belongs to exactly one: the first of the list that claims it, else "other".
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Int8

from normlens.errors import NormlensError
from normlens.models import Side, spell

OTHER = "other"
MOST = np.iinfo(np.int8).max  # category numbers are bytes
Place = Literal["first", "special", "punctuation"]


class CategoryError(NormlensError):
    """Categories that cannot sort tokens."""


@dataclass(frozen=True, slots=True)
class Category:
    """Tokens that are listed, or whose text a pattern matches fully, or that stand or serve somewhere."""

    name: str
    tokens: frozenset[str] = frozenset()  # as the tokenizer writes them, or without its marks
    pattern: str | None = None
    place: Place | None = None

    def __post_init__(self) -> None:
        if not self.name.strip() or self.name == OTHER:
            raise CategoryError(
                f"A category cannot have the name {self.name!r}.",
                cause=f"every category needs a name, and {OTHER!r} is the one for tokens of no other category.",
                do="give it another name.",
            )
        if not (self.tokens or self.pattern or self.place):
            raise CategoryError(
                f"Category {self.name!r} has no tokens, no pattern and no place.",
                do="give it one of them: tokens={',', '.'}, pattern='[0-9]+' or place='first'.",
            )
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            raise CategoryError(
                f"The pattern of category {self.name!r} is not a regular expression.",
                got=f"{self.pattern} ({error})",
                do="put a backslash before a sign that is meant literally: . * + ? ( ) [ ] { } | ^ $",
            ) from error

    def __str__(self) -> str:
        """As it is written on the command line; sets in one order, so that every process writes the same."""
        tokens = ",".join(re.sub(r"([\\,/@])", r"\\\1", token) for token in sorted(self.tokens))
        parts = (tokens, self.pattern and f"/{self.pattern}/", self.place and f"@{self.place}")
        return f"{self.name}=" + " or ".join(part for part in parts if part)

    def claims(self, token: str, position: int, special: bool) -> bool:
        """Whether this token, at this position, belongs to the category."""
        text = bare(token)
        return (
            token in self.tokens
            or text in self.tokens
            or (self.pattern is not None and re.fullmatch(self.pattern, text) is not None)
            or (self.place == "first" and position == 0)
            or (self.place == "special" and special)
            or (self.place == "punctuation" and is_punctuation(text))
        )


@dataclass(frozen=True, slots=True)
class Categories:
    """Categories in order of precedence; "other" comes last by itself."""

    listed: tuple[Category, ...]

    def __post_init__(self) -> None:
        names = [category.name for category in self.listed]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise CategoryError(
                f"Two categories have the same name: {', '.join(twice)}.",
                do="join them into one, or rename one.",
            )
        if len(names) > MOST:
            raise CategoryError(
                f"There can be at most {MOST} categories.",
                got=f"{len(names)}.",
                do="join some of them.",
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each category number, "other" included."""
        return (*(category.name for category in self.listed), OTHER)

    def of(self, side: Side) -> Int8[np.ndarray, " token"]:
        """The category number of each token of a sequence."""
        return np.array(
            [
                next((n for n, one in enumerate(self.listed) if one.claims(token, position, special)), len(self.listed))
                for position, (token, special) in enumerate(zip(side.tokens, side.special, strict=True))
            ],
            dtype=np.int8,
        )


@lru_cache(maxsize=1 << 16)
def bare(token: str) -> str:
    """The text of a token without the marks of its tokenizer; bytes that spell a character become that character.

    >>> [bare(token) for token in ("##ly", "Ġ,", "▁.", "the</w>", "âĢĶ", "▁")]
    ['ly', ',', '.', 'the', '—', '▁']
    """
    text = spell([token]) or token
    if text.isascii() or not BYTES.keys() >= set(text):
        return text
    try:
        spelled = bytes(BYTES[letter] for letter in text).decode()
    except UnicodeDecodeError:
        return text
    return text if spelled.isascii() else spelled


def _byte_letters() -> dict[str, int]:
    """The letters by which byte-level tokenizers write bytes: printable ones stand for themselves."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(0x100) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(rest)}


BYTES = _byte_letters()


def is_punctuation(text: str) -> bool:
    """Whether a text is made of punctuation marks alone."""
    return bool(text) and all(unicodedata.category(letter).startswith("P") for letter in text)
