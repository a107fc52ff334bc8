"""Soft alignments of any number of sentence pairs, in their order and in bounded memory.

Room: batching. A shard of pairs is read, sorted by length, run in batches, and given back in the order it came.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from normlens.alignment.soft import Pairs, Reading, pairs, soft
from normlens.lens import Lens
from normlens.models import InputError, Spelled, Speller, longest

Words = Sequence[str]
Pair = tuple[Words, Words]  # the words of a source and of a target sentence
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
        found: dict[int, Maps] = {}
        for batch in shard.batches:
            maps = soft(lens, shard.pairs(lens, batch), readings)
            arrays = {reading: tensor.float().cpu().numpy() for reading, tensor in maps.items()}
            for row, index in enumerate(batch):
                source, target = shard.spelled[index]
                columns = [*range(source.count), -1]
                found[index] = {reading: array[row, : target.count][:, columns] for reading, array in arrays.items()}
        yield from (found.get(index) for index in range(len(shard)))


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
            f"'{lens.subject.name}' is not a sequence-to-sequence model, so no word of one text looks at the other's.",
            cause="an encoder such as BERT, or a decoder such as GPT.",
            do="give a translation model, e.g. Helsinki-NLP/opus-mt-de-en, or none for the embedded one.",
        )
    if lens.subject.tokenizer is None:
        raise InputError(
            f"'{lens.subject.name}' was loaded without a tokenizer, so its words are unknown.",
            do="normlens.load(model, tokenizer).",
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
