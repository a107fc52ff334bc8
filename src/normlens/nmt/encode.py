"""Parallel text to subword ids, a chunk of lines at a time.

Room: a tokenizer and pairs of lines in, flat arrays out. The text itself is never held whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from normlens.nmt.build import POSITIONS
from normlens.nmt.pairs import Pairs, joined
from normlens.nmt.text import Pair

CHUNK = 20_000  # lines


def encoded(tokens: Any, pairs: Iterable[Pair], *, longest: int | None = None) -> Pairs:
    """The pairs of at most `longest` words a side as ids; what is longer than the model is left out."""
    sides = (_Side(tokens.spm_source, tokens.encoder), _Side(tokens.spm_target, tokens.target_encoder))
    chosen = (pair for pair in pairs if longest is None or all(len(text.split()) <= longest for text in pair))
    return joined(row for row in _rows(sides, chosen) if max(map(len, row)) < POSITIONS)


class _Side:
    """One language: sentencepiece's numbers for pieces, and the vocabulary's."""

    def __init__(self, model: Any, vocabulary: dict[str, int]) -> None:
        unknown = vocabulary["<unk>"]
        self.model = model
        self.numbers = [vocabulary.get(model.id_to_piece(n), unknown) for n in range(model.get_piece_size())]

    def rows(self, lines: list[str]) -> list[list[int]]:
        return [[self.numbers[n] for n in row] for row in self.model.encode(lines, out_type=int)]


def _rows(sides: tuple[_Side, _Side], pairs: Iterator[Pair]) -> Iterator[tuple[list[int], list[int]]]:
    while chunk := list(islice(pairs, CHUNK)):
        sources, targets = (side.rows([pair[at] for pair in chunk]) for at, side in enumerate(sides))
        yield from zip(sources, targets, strict=True)
