"""From items of a corpus to batches a model can run, sequences of like length together."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Int

from normlens.corpora import Categories, Corpus, Item
from normlens.lens import generate
from normlens.models import Encoded, InputError, Side, Subject, encode, encode_both, longest, ready, text_tokenizer

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """One side of a batch: for each sequence its tokens, padded with category -1."""

    ids: Int[np.ndarray, "batch token"]
    categories: Int[np.ndarray, "batch token"]
    special: Bool[np.ndarray, "batch token"]  # [CLS], [SEP] and the like, which no text holds
    lengths: Int[np.ndarray, " batch"]
    sides: tuple[Side, ...] = ()  # the sequences themselves: tokens, words
    items: tuple[Item, ...] = ()  # what they were encoded from
    kept: dict[str, Any] = field(default_factory=dict)  # what `once` computed

    def once(self, name: str, compute: Callable[[Group], T]) -> T:
        """Something about these tokens that every layer needs and that is computed once a batch."""
        if name not in self.kept:
            self.kept[name] = compute(self)
        return self.kept[name]


@dataclass(frozen=True, slots=True)
class Batch:
    """Encoded items, and what their tokens are."""

    encoded: Encoded
    groups: dict[str, Group]  # by side: "text", or "source" and "target"
    items: tuple[Item, ...] = ()  # what was encoded

    @property
    def number(self) -> int:
        """A number that goes with the tokens of the batch, for chance that comes out the same when it is run again."""
        return zlib.crc32(b"".join(group.ids.tobytes() for group in self.groups.values()))


def shards(corpus: Corpus, size: int, *, limit: int | None, skip: int) -> Iterator[list[Item]]:
    """Items by the `size`, without the first `skip`."""
    items = islice(corpus, skip, limit)
    while shard := list(islice(items, size)):
        yield shard


def batches(
    subject: Subject, items: Sequence[Item], categories: Categories, *, length: int, tokens: int, padded: bool = True
) -> Iterator[Batch]:
    """Batches of at most `tokens` tokens, padding included; sequences are cut to `length`.

    Without `padded`, for models that padding would change, sequences of equal length go together, and pairs alone.
    """
    limit = min(length, longest(subject) or length)
    sized = sorted(
        zip(_sizes(subject, items, limit), range(len(items)), items, strict=True), key=lambda s: (-s[0], s[1])
    )
    while sized:
        most = max(1, tokens // sized[0][0])
        if not padded:
            alike = sum(size == sized[0][0] for size, _, _ in sized)
            most = 1 if subject.is_seq2seq else min(most, alike)
        group, sized = sized[:most], sized[most:]
        yield _batch(subject, [item for _, _, item in group], categories, limit)


def _sizes(subject: Subject, items: Sequence[Item], limit: int) -> list[int]:
    """How many tokens each item has, after cutting; of a source, where there is one."""
    tokenizer: Any = text_tokenizer(subject.tokenizer)
    if len({len(item.texts) for item in items}) > 1:
        odd = next(item for item in items if len(item.texts) != len(items[0].texts))
        raise InputError(
            f"Single texts and pairs are mixed: {items[0].where} has {len(items[0].texts)}, {odd.where} "
            f"has {len(odd.texts)}.",
            do="give a corpus of one or the other.",
        )
    if any(item.tokens is not None for item in items):
        return [min(len(item.tokens or ()), limit) for item in items]
    columns = list(zip(*(item.texts for item in items), strict=True))
    texts = [list(column) for column in columns[: 1 if subject.is_seq2seq else 2]]
    return [len(ids) for ids in tokenizer(*texts, truncation=True, max_length=limit)["input_ids"]]


def _batch(subject: Subject, items: list[Item], categories: Categories, limit: int) -> Batch:
    encoded = encoded_items(subject, items, limit)
    sides = {"source" if subject.is_seq2seq else "text": encoded.sides, "target": encoded.targets}
    groups = {name: _group(side, categories, items) for name, side in sides.items() if side}
    return Batch(encoded, groups, tuple(items))


def encoded_items(subject: Subject, items: Sequence[Item], limit: int) -> Encoded:
    """Inputs of one batch, cut to `limit` tokens."""
    if items[0].tokens is not None:
        if subject.is_seq2seq:
            raise InputError(
                f"The corpus holds ready tokens of one side, but '{subject.name}' has a source and a target.",
                do="give texts, or pairs of source and target.",
            )
        return ready(subject, _from_tokens(subject, items, limit))
    texts = [item.texts if len(item.texts) > 1 else "".join(item.texts) for item in items]
    if not subject.is_seq2seq:
        return encode(subject, texts, truncate=True, length=limit)
    sources = [item.texts[0] for item in items]
    targets = [item.texts[1] for item in items if len(item.texts) > 1]
    return encode_both(subject, sources, targets or generate(subject, sources), truncate=True, length=limit)


def _from_tokens(subject: Subject, items: Sequence[Item], limit: int) -> dict[str, torch.Tensor]:
    """Ready tokens, as in Clark et al.'s file: the second segment begins after the first separator."""
    tokenizer: Any = subject.tokenizer
    if tokenizer is None or not hasattr(tokenizer, "convert_tokens_to_ids"):
        raise InputError(
            "The corpus holds tokens, but this model has no tokenizer.",
            do="load one with the model.",
        )
    rows = [tokenizer.convert_tokens_to_ids(list(item.tokens or ())[:limit]) for item in items]
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), tokenizer.pad_token_id or 0)
    mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
    for index, row in enumerate(rows):
        ids[index, : len(row)], mask[index, : len(row)] = torch.tensor(row), 1
        if tokenizer.sep_token_id in row:
            types[index, row.index(tokenizer.sep_token_id) + 1 :] = 1
    inputs = {"input_ids": ids, "attention_mask": mask}
    takes_types = "token_type_ids" in getattr(tokenizer, "model_input_names", ())
    return inputs | ({"token_type_ids": types} if takes_types else {})


def _group(sides: Sequence[Side], categories: Categories, items: Sequence[Item]) -> Group:
    lengths = np.array([len(side.ids) for side in sides])
    ids = np.zeros((len(sides), int(lengths.max())), np.int64)
    kinds, special = np.full(ids.shape, -1, np.int8), np.zeros(ids.shape, bool)
    for index, side in enumerate(sides):
        real = index, slice(len(side.ids))
        ids[real], kinds[real], special[real] = side.ids, categories.of(side), side.special
    return Group(ids, kinds, special, lengths, tuple(sides), tuple(items))
