"""Soft alignments: how much each source word contributes to each target word, read from the cross-attention of a model.

A row of the decoder can be read as the word it was given (AWI, "input") or as the word it is about to write (AWO,
"output"). Pieces become words by adding up the source side and averaging over the target side. The last column is
everything on the source side that is no word, </s> above all. Pairs are read in shards, sorted by length, run in
batches, and come back in their order: memory is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from normlens.algebra import to_words
from normlens.alignment.words import Pair
from normlens.lens import Block, Lens
from normlens.models import Encoded, InputError, Spelled, Speller, Subject, encode_forced, longest

Measure = Literal["weights", "norms"]
Position = Literal["input", "output"]
ROWS: dict[Position, str] = {"input": "AWI", "output": "AWO"}
FIELDS = {("weights", False): "weights", ("norms", False): "summed_norms", ("norms", True): "weighted_norms"}


@dataclass(frozen=True, slots=True, order=True)
class Reading:
    """A map to read from a cross-attention: which layer, all heads or one, what is measured, whose rows they are."""

    measure: Measure
    position: Position
    layer: int
    head: int | None = None  # None: mean of the weights over heads, or norm of the sum over heads

    def __str__(self) -> str:
        return f"{self.measure} {self.where} {ROWS[self.position]}"

    @property
    def where(self) -> str:
        """The layer, or the head."""
        return f"L{self.layer}" if self.head is None else f"L{self.layer}H{self.head}"

    def pieces(self, block: Block) -> Float[Tensor, "batch tgt src"]:
        """The map of this reading over pieces."""
        if self.head is None:
            return block.weights.mean(dim=1) if self.measure == "weights" else block.summed_norms
        maps = block.weights if self.measure == "weights" else block.weighted_norms
        if self.head not in range(maps.shape[1]):
            raise InputError(
                f"No head {self.head}: layer {self.layer} of the cross-attention has heads 0 to {maps.shape[1] - 1}.",
                do="name one of its heads, counted from 0.",
            )
        return maps[:, self.head]

    @property
    def field(self) -> str:
        """What of a block this reading needs."""
        return FIELDS.get((self.measure, self.head is not None), "weights")


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """A batch of sentence pairs, ready for the model, and how pieces become words again."""

    encoded: Encoded
    columns: Float[Tensor, "batch src src_word"]  # which source word a piece is of; the last: none
    rows: dict[Position, Float[Tensor, "batch tgt_word tgt"]]  # the share of a decoder position in a target word

    def words(
        self, pieces: Float[Tensor, "batch tgt src"], position: Position
    ) -> Float[Tensor, "batch tgt_word src_word"]:
        """From pieces to words: sums over source pieces, means over target pieces."""
        return to_words(pieces.to(self.columns.dtype), self.rows[position], self.columns)


def pairs(subject: Subject, sources: Sequence[Spelled], targets: Sequence[Spelled]) -> Pairs:
    """Sentences as pieces, to be decoded by force."""
    encoded = encode_forced(subject, [s.ids for s in sources], [t.ids for t in targets])
    given = encoded.inputs["decoder_input_ids"]
    shift = 0 if all(row[0] == t.ids[0] for row, t in zip(given.tolist(), targets, strict=True)) else 1
    last = max(s.count for s in sources)
    columns = torch.zeros(len(sources), encoded.inputs["input_ids"].shape[1], last + 1)
    for row, side in zip(columns, sources, strict=True):
        row[range(len(side.words)), [last if word is None else word for word in side.words]] = 1
    rows: dict[Position, Tensor] = {}
    places: tuple[tuple[Position, int], ...] = (("input", shift), ("output", shift - 1))
    for position, ahead in places:
        place = torch.zeros(len(targets), max(t.count for t in targets), given.shape[1])
        for row, side in zip(place, targets, strict=True):
            kept = [(w, i + ahead) for i, w in enumerate(side.words) if w is not None and 0 <= i + ahead < row.shape[1]]
            if kept:
                row[tuple(zip(*kept, strict=True))] = 1
        rows[position] = place / place.sum(dim=2, keepdim=True).clamp_min(1)
    device = subject.device
    return Pairs(encoded, columns.to(device), {key: place.to(device) for key, place in rows.items()})


def soft(
    lens: Lens, batch: Pairs, readings: Collection[Reading]
) -> dict[Reading, Float[Tensor, "batch tgt_word src_word"]]:
    """The word-level maps of a batch, all from one pass."""
    maps: dict[Reading, Tensor] = {}

    def read(block: Block) -> None:
        for reading in readings:
            if reading.layer == block.layer:
                maps[reading] = batch.words(reading.pieces(block), reading.position)

    watch(lens, batch, read, layers=sorted({r.layer for r in readings}), fields=sorted({r.field for r in readings}))
    return maps


def watch(
    lens: Lens, batch: Pairs, read: Callable[[Block], None], *, layers: Sequence[int] | None, fields: Sequence[str]
) -> None:
    """One forced pass; `read` sees every cross-attention block."""
    lens.observe(batch.encoded, read, kinds=("cross",), layers=layers, fields=fields)


Maps = dict[Reading, np.ndarray]  # (target word, source word), the last column: no word
SHARD = 1024  # pairs sorted by length together
BATCH_TOKENS = 4096  # pieces of the longer side in one pass, padding included


@dataclass(frozen=True, slots=True)
class Shard:
    """Some sentence pairs as pieces, and the batches of those that can be run."""

    spelled: list[tuple[Spelled, Spelled]]
    batches: list[list[int]]  # numbers of pairs

    def __len__(self) -> int:
        return len(self.spelled)

    def pairs(self, lens: Lens, batch: Sequence[int]) -> Pairs:
        return pairs(lens.subject, *zip(*(self.spelled[index] for index in batch), strict=True))


def each_map(
    lens: Lens,
    sentences: Iterable[Pair],
    readings: Collection[Reading],
    *,
    batch_tokens: int = BATCH_TOKENS,
    left_out: Callable[[int, str], None] = lambda index, why: None,
) -> Iterator[Maps | None]:
    """The maps of each pair; None for a pair that has none, and why, by its number: an empty side, or too long."""
    for shard in shards(lens, sentences, batch_tokens=batch_tokens, left_out=left_out):
        by_pair: dict[int, Maps] = {}
        for batch in shard.batches:
            maps = soft(lens, shard.pairs(lens, batch), readings)
            arrays = {reading: tensor.float().cpu().numpy() for reading, tensor in maps.items()}
            for row, index in enumerate(batch):
                source, target = shard.spelled[index]
                columns = [*range(source.count), -1]
                by_pair[index] = {reading: array[row, : target.count][:, columns] for reading, array in arrays.items()}
        yield from (by_pair.get(index) for index in range(len(shard)))


def shards(
    lens: Lens,
    sentences: Iterable[Pair],
    *,
    batch_tokens: int = BATCH_TOKENS,
    left_out: Callable[[int, str], None] = lambda index, why: None,
) -> Iterator[Shard]:
    """Sentence pairs as pieces, shard by shard."""
    check(lens)
    spell = Speller(lens.subject.tokenizer, as_target=False), Speller(lens.subject.tokenizer, as_target=True)
    limit = longest(lens.subject)
    sentences, done = iter(sentences), 0
    while shard := list(islice(sentences, SHARD)):
        sides = zip(*shard, strict=True)
        spelled = list(zip(*(say(list(side)) for say, side in zip(spell, sides, strict=True)), strict=True))
        runnable: list[int] = []
        for index, (source, target) in enumerate(spelled):
            why = _unreadable(source, target, limit)
            runnable.append(index) if why is None else left_out(done + index, why)
        lengths = [max(len(source.ids), len(target.ids)) for source, target in spelled]
        yield Shard(spelled, list(batches(lengths, runnable, batch_tokens)))
        done += len(shard)


def check(lens: Lens) -> None:
    """Only a model that reads one text and writes another has a cross-attention between the two."""
    if not lens.subject.is_seq2seq:
        raise InputError(
            f"'{lens.subject.name}' is not a sequence-to-sequence model, so it has no attention between two texts.",
            cause="an encoder such as BERT, or a decoder such as GPT.",
            do="give a translation model, e.g. Helsinki-NLP/opus-mt-de-en, or none for the bundled one.",
        )
    if lens.subject.tokenizer is None:
        raise InputError(
            f"'{lens.subject.name}' was loaded without a tokenizer, so its words are unknown.",
            do="load it with one: normlens.load(model, tokenizer).",
        )


def batches(lengths: Sequence[int], chosen: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """The chosen items in groups of similar length, each of about so many tokens."""
    group: list[int] = []
    for index in sorted(chosen, key=lambda index: lengths[index]):
        if group and (len(group) + 1) * lengths[index] > tokens:
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def _unreadable(source: Spelled, target: Spelled, limit: int | None) -> str | None:
    for name, side in (("source", source), ("target", target)):
        if all(word is None for word in side.words):
            return f"the {name} is empty"
        if limit is not None and len(side.ids) > limit:
            return f"the {name} has {len(side.ids)} pieces, the model takes {limit}"
    return None
