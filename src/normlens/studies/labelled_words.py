"""The labelled words of a batch: which pieces they are made of, what each is asked for, and what cannot be asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from normlens.algebra import word_pieces
from normlens.models import placed
from normlens.studies.batches import Group
from normlens.studies.study import StudyError

OFFSETS = (1, -1, 2, -2, 3, -3, 4, -4, 5, -5)  # of the baseline, in words; the nearest of equals counts
DIRECTIONS = ("dependent → head word", "head word → dependent")
LEFT_OUT = {  # why a pair is not asked for, and how that is said
    "cut": "left out, because the text was cut before one of its words ended, or the tokenizer drops it.",
    "joined": "left out, because the tokenizer or the text does not keep its two words apart.",
    "unplaced": "left out, because the pieces of the tokenizer could not be assigned to the words.",
    "unseen": "left out in the first layer, because no query of one word sees the other.",
}


@dataclass(frozen=True, slots=True, eq=False)
class LabelledWords:
    """Examples: a word, a relation and direction, and the words that would be right."""

    queries: Float[Tensor, "batch word piece"]  # for `to_words`
    keys: Float[Tensor, "batch piece word"]
    names: tuple[str, ...]  # direction/relation
    name: Int[np.ndarray, " example"]
    batch: Int[np.ndarray, " example"]
    query: Int[np.ndarray, " example"]
    targets: Bool[np.ndarray, "example word"]
    offsets: Bool[np.ndarray, "example offset"]  # whether a word at this offset is right
    left_out: tuple[int, ...]  # pairs: cut, joined, unplaced


def labelled_words(group: Group, tokenizer: Any) -> LabelledWords:
    """The words and pairs of every item of a batch; words that share a piece are one word."""
    pieces: list[list[int | None]] = []
    examples: dict[tuple[str, int, int], set[int]] = {}
    left_out = dict.fromkeys(("cut", "joined", "unplaced"), 0)
    for row, (item, side) in enumerate(zip(group.items, group.sides, strict=True)):
        labels = item.labels
        if labels is None:
            raise StudyError(
                f"{item.where}: there are no labelled words.",
                cause="a corpus of plain texts.",
                do='give --corpus FILE.conllu, or .jsonl lines {"words": [...], "pairs": [["relation", i, j], ...]}.',
            )
        found = placed(tokenizer, item.texts[0], labels.spans, side.ids)
        if found is None:
            left_out["unplaced"] += len(labels.pairs)
            pieces.append([])
            continue
        shared = {word for words in found.words for word in words[1:]}  # with the word before
        unit = np.cumsum([word not in shared for word in range(len(labels.spans))]) - 1
        pieces.append([int(unit[words[0]]) if words else None for words in found.words])
        there = {word for words in found.words for word in words} - found.cut
        for relation, head, dependent in labels.pairs:
            if not {head, dependent} <= there:
                left_out["cut"] += 1
            elif unit[head] == unit[dependent]:
                left_out["joined"] += 1
            else:
                ends = int(unit[dependent]), int(unit[head])
                for direction, (asks, right) in zip(DIRECTIONS, (ends, ends[::-1]), strict=True):
                    examples.setdefault((f"{direction}/{relation}", row, asks), set()).add(right)
    most = max((word for words in pieces for word in words if word is not None), default=0) + 1
    queries, keys = word_pieces(pieces, most, group.ids.shape[1])
    names = tuple(dict.fromkeys(name for name, _, _ in examples))
    targets = np.zeros((len(examples), most), bool)
    offsets = np.zeros((len(examples), len(OFFSETS)), bool)
    for place, ((_, _, asks), right) in enumerate(examples.items()):
        targets[place, list(right)] = True
        offsets[place] = [asks + offset in right for offset in OFFSETS]
    name, batch, query = (
        np.array([part(key) for key in examples], dtype=np.int64)
        for part in (lambda key: names.index(key[0]), lambda key: key[1], lambda key: key[2])
    )
    return LabelledWords(
        queries, keys, names, name, batch, query, targets, offsets, tuple(left_out[reason] for reason in left_out)
    )
