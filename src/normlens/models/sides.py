"""The tokens of one sequence, as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from normlens.models.tokenizer import text_tokenizer
from normlens.models.words import spell, word_ids
from normlens.picture import Picture


@dataclass(frozen=True, slots=True)
class Side:
    """One sequence: its tokens, which of them are special, and the words they spell."""

    name: str  # "text", "source" or "target"
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    special: tuple[bool, ...]
    word_ids: tuple[int | None, ...]  # word of each token; None for special tokens
    picture: Picture | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The words, in order."""
        pieces: dict[int, list[str]] = {}
        for word, token in zip(self.word_ids, self.tokens, strict=True):
            if word is not None:
                pieces.setdefault(word, []).append(token)
        return tuple(spell(parts) for parts in pieces.values())

    def named(self, name: str) -> Side:
        return replace(self, name=name)


def text_side(name: str, tokenizer: Any | None, ids: Sequence[int]) -> Side:
    """A sequence of token ids, read with the tokenizer; without one, the ids stand for themselves."""
    tokenizer = text_tokenizer(tokenizer)
    if tokenizer is None or not hasattr(tokenizer, "convert_ids_to_tokens"):
        tokens = tuple(str(i) for i in ids)
        return Side(name, tuple(ids), tokens, (False,) * len(tokens), tuple(range(len(tokens))))
    pieces = _pieces(tokenizer, ids, target=name == "target")
    tokens = tuple(str(i) if piece is None else str(piece) for i, piece in zip(ids, pieces, strict=True))
    specials = set(tokenizer.all_special_ids) - {getattr(tokenizer, "unk_token_id", None)}
    special = tuple(i in specials for i in ids)
    return Side(name, tuple(ids), tokens, special, word_ids(tokens, special))


def _pieces(tokenizer: Any, ids: Sequence[int], *, target: bool) -> list[str | None]:
    """What the tokenizer calls these ids. One with two vocabularies knows by itself only the names of the target's."""
    pieces = tokenizer.convert_ids_to_tokens(list(ids))
    encoder = getattr(tokenizer, "encoder", None)
    if target or not isinstance(encoder, dict):
        return pieces
    if all(encoder.get(piece, i) == i for i, piece in zip(ids, pieces, strict=True)):
        return pieces
    names = {number: piece for piece, number in encoder.items()}
    return [names.get(i, piece) for i, piece in zip(ids, pieces, strict=True)]


def positions(name: str, count: int) -> Side:
    """A sequence without text: patches or frames, known by number."""
    numbers = tuple(range(count))
    return Side(name, numbers, tuple(str(i) for i in numbers), (False,) * count, numbers)
