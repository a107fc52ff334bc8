"""From words to subwords: how a tokenizer spells a sentence whose words are given, and which word each piece is of.

Fast tokenizers read the sentence as a whole, words joined by spaces, and say where each piece stands in it. The others
(sentencepiece without a fast twin, such as Marian's) spell word by word, which for them is the same: no piece of theirs
reaches over a space.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from normlens.models.tokenizer import text_tokenizer


@dataclass(frozen=True, slots=True)
class Spelled:
    """One sentence as pieces."""

    ids: tuple[int, ...]  # special tokens included
    words: tuple[int | None, ...]  # the word of each piece; None for special tokens
    count: int  # of words; a word that has no piece is still counted


class Speller:
    """Spells many sentences with one tokenizer, remembering words it has seen."""

    def __init__(self, tokenizer: Any, *, as_target: bool) -> None:
        self.tokenizer = text_tokenizer(tokenizer)
        self._argument = "text_target" if as_target else "text"
        self._seen: dict[str, tuple[int, ...]] = {}
        self._special: tuple[list[int], list[int]] | None = None

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[Spelled]:
        """Spell sentences, each a sequence of words without spaces in them."""
        if not sentences:
            return []
        if self.tokenizer.is_fast:
            lines = [" ".join(words) for words in sentences]
            batch = self._encode(lines, return_offsets_mapping=True, return_special_tokens_mask=True)
            return [
                _by_place(words, ids, places, special)
                for words, ids, places, special in zip(
                    sentences, batch["input_ids"], batch["offset_mapping"], batch["special_tokens_mask"], strict=True
                )
            ]
        return [self._word_by_word(words) for words in sentences]

    def _encode(self, lines: list[str], **options: Any) -> Any:
        return self.tokenizer(**{self._argument: lines}, verbose=False, return_attention_mask=False, **options)

    def _word_by_word(self, words: Sequence[str]) -> Spelled:
        before, after = self._around()
        spelled = [self._alone(word) for word in words]
        return Spelled(
            (*before, *(piece for word in spelled for piece in word), *after),
            (*[None] * len(before), *(i for i, word in enumerate(spelled) for _ in word), *[None] * len(after)),
            len(words),
        )

    def _around(self) -> tuple[list[int], list[int]]:
        """The special tokens before and after a sentence."""
        if self._special is None:
            batch = self._encode(["a"], return_special_tokens_mask=True)
            ids, special = batch["input_ids"][0], batch["special_tokens_mask"][0]
            begin = special.index(0)
            end = len(special) - special[::-1].index(0)
            self._special = (ids[:begin], ids[end:])
        return self._special

    def _alone(self, word: str) -> tuple[int, ...]:
        if word not in self._seen:
            self._seen[word] = tuple(self._encode([word], add_special_tokens=False)["input_ids"][0])
        return self._seen[word]


def _by_place(
    words: Sequence[str], ids: Sequence[int], places: Sequence[tuple[int, int]], special: Sequence[int]
) -> Spelled:
    """A piece belongs to the word in which it ends; a space belongs to the word after it."""
    starts = list(accumulate((len(word) + 1 for word in words[:-1]), initial=0))
    of = [
        None if flag else bisect_right(starts, max(end - 1, start) + 1) - 1
        for (start, end), flag in zip(places, special, strict=True)
    ]
    return Spelled(tuple(ids), tuple(of), len(words))


@dataclass(frozen=True, slots=True)
class Placed:
    """The words that each piece of a sequence covers."""

    words: tuple[tuple[int, ...], ...]  # ascending; none for special tokens
    cut: frozenset[int]  # words that lost a piece because the sequence was cut


def placed(tokenizer: Any, text: str, spans: Sequence[tuple[int, int]], ids: Sequence[int]) -> Placed | None:
    """Which words, given by their characters, the pieces `ids` of a text cover; None where the pieces are others.

    A piece that covers no word, such as a space alone, is of the next word. A tokenizer that does not say where its
    pieces are spells word by word, and must then come to the same pieces.
    """
    tokenizer = text_tokenizer(tokenizer)
    if tokenizer.is_fast:
        batch = tokenizer(text, verbose=False, return_offsets_mapping=True, return_special_tokens_mask=True)
        pieces, special = batch["input_ids"], batch["special_tokens_mask"]
        covered = [
            () if flag else _covered(place, spans) for place, flag in zip(batch["offset_mapping"], special, strict=True)
        ]
    else:
        spelled = Speller(tokenizer, as_target=False)([[text[start:end] for start, end in spans]])[0]
        pieces, special = list(spelled.ids), [word is None for word in spelled.words]
        covered = [() if word is None else (word,) for word in spelled.words]
    after = next((n for n, flag in enumerate(reversed(special)) if not flag), 0)
    end = len(pieces) - after
    kept = max(len(ids) - after, 0)
    if [*pieces[:kept], *pieces[end:]] != list(ids):
        return None
    cut = frozenset(word for words in covered[kept:end] for word in words)
    return Placed((*covered[:kept], *covered[end:]), cut)


def _covered(place: tuple[int, int], spans: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    begin, finish = place
    words = tuple(word for word, (start, end) in enumerate(spans) if max(begin, start) < min(finish, end))
    return words or tuple(word for word, (start, _) in enumerate(spans) if start >= begin)[:1]
