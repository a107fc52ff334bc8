"""Parallel text as rows of subword ids in flat arrays, and batches of it with little padding."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from normlens.nmt.model import POSITIONS
from normlens.nmt.subwords import END, PAD
from normlens.nmt.text import Pair

POOL = 200  # batches sorted by length together
CHUNK = 20_000  # lines that become ids at once


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Many rows of ids, one after the other, each ending in </s>."""

    ids: np.ndarray  # every row, joined
    starts: np.ndarray  # where each begins, and where the last ends

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.starts)

    def padded(self, chosen: np.ndarray) -> Tensor:
        """The chosen rows as a rectangle."""
        rows = [self.ids[self.starts[index] : self.starts[index + 1]] for index in chosen]
        out = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
        for place, row in zip(out, rows, strict=True):
            place[: len(row)] = row
        return torch.from_numpy(out)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Sources and targets, row by row."""

    sources: Rows
    targets: Rows

    def __len__(self) -> int:
        return len(self.sources.lengths)

    def batch(self, chosen: np.ndarray) -> tuple[Tensor, Tensor]:
        return self.sources.padded(chosen), self.targets.padded(chosen)

    def epoch(self, *, tokens: int, seed: tuple[int, int]) -> list[np.ndarray]:
        """Every pair once, in batches of about so many tokens of the longer side; the seed decides the order."""
        longer = np.maximum(self.sources.lengths, self.targets.lengths)
        random = np.random.default_rng(seed)
        order = random.permutation(len(self))
        pool = POOL * max(1, int(tokens / max(longer.mean(), 1)))
        batches: list[np.ndarray] = []
        for start in range(0, len(order), pool):
            part = order[start : start + pool]
            part = part[np.lexsort((self.sources.lengths[part], longer[part]))]
            batches += list(_cut(part, longer[part], tokens))
        return [batches[index] for index in random.permutation(len(batches))]

    def endless(self, *, tokens: int, seed: int, skip: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of epoch after epoch; the first `skip` are passed over, as after a resumed training."""
        epoch = 0
        while True:
            batches = self.epoch(tokens=tokens, seed=(seed, epoch))
            for chosen in batches[skip:]:
                yield self.batch(chosen)
            skip = max(0, skip - len(batches))
            epoch += 1


def joined(rows: Iterable[tuple[Sequence[int], Sequence[int]]]) -> Pairs:
    """Pairs of rows of ids as they come, </s> added to each."""
    ids, starts = (array("i"), array("i")), (array("q", [0]), array("q", [0]))
    for pair in rows:
        for row, flat, places in zip(pair, ids, starts, strict=True):
            flat.extend(row)
            flat.append(END)
            places.append(len(flat))
    sources, targets = (
        Rows(np.frombuffer(flat, dtype=np.int32), np.frombuffer(places, dtype=np.int64))
        for flat, places in zip(ids, starts, strict=True)
    )
    return Pairs(sources, targets)


def _cut(part: np.ndarray, lengths: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
    """Lengths ascend, so a batch is as long as its last row."""
    start = 0
    for stop in range(1, len(part) + 1):
        if stop == len(part) or (stop - start + 1) * lengths[stop] > tokens:
            yield part[start:stop]
            start = stop


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
