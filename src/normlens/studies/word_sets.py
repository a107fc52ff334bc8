"""Which tokens of a batch spell words of given sets: whole words with all their pieces, without punctuation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from normlens.corpora import bare, is_punctuation
from normlens.models import Side, spell
from normlens.studies.batches import Group


@dataclass(frozen=True, slots=True, eq=False)
class Marked:
    """The tokens of one side of a batch."""

    sets: Bool[Tensor, "batch token set"]  # the sets that the token's word is in
    part: Float[Tensor, "batch token"]  # 1 over the number of pieces of its word
    word: Int[Tensor, "batch token"]  # the number of its word; -1 for none


def folded(word: str, *, match_case: bool) -> str:
    """A word as it is compared."""
    return word.strip() if match_case else word.strip().casefold()


def words_of(group: Group, *, match_case: bool) -> list[list[tuple[str, list[int]]]]:
    """The words of every sequence, as they are compared, with the positions of their pieces."""
    return group.once(f"words {match_case}", lambda group: [_words(side, match_case) for side in group.sides])


def marked(group: Group, sets: Sequence[Sequence[str]], *, match_case: bool) -> Marked:
    """Which tokens are of words of each set."""
    shape = group.ids.shape
    marks, parts = torch.zeros(*shape, len(sets), dtype=torch.bool), torch.ones(shape, dtype=torch.float64)
    numbers = torch.full(shape, -1)
    for row, words in enumerate(words_of(group, match_case=match_case)):
        for place, (word, positions) in enumerate(words):
            marks[row, positions] = torch.tensor([word in those for those in sets])
            parts[row, positions], numbers[row, positions] = 1 / len(positions), place
    return Marked(marks, parts, numbers)


def _words(side: Side, match_case: bool) -> list[tuple[str, list[int]]]:
    places: dict[int, list[int]] = {}
    for position, word in enumerate(side.word_ids):
        if word is not None:
            places.setdefault(word, []).append(position)
    words = []
    for positions in places.values():
        inner = _without_marks(positions, side)
        text = bare(spell([side.tokens[position] for position in inner]))
        words.append((folded(text, match_case=match_case), inner))
    return words


def _without_marks(positions: list[int], side: Side) -> list[int]:
    """The pieces of a word without those of punctuation at its ends; one piece is left at least."""
    while len(positions) > 1 and is_punctuation(bare(side.tokens[positions[-1]])):
        positions = positions[:-1]
    while len(positions) > 1 and is_punctuation(bare(side.tokens[positions[0]])):
        positions = positions[1:]
    return positions
