"""Frequency ranks of token ids: 1 is the most frequent.

Ties share the smaller rank and the next one skips, as in 1, 2, 2, 4; ids never seen come after all others, one rank
below the last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int, Int64

from normlens.corpora.categories import bare
from normlens.corpora.files import file_lines
from normlens.corpora.item import CorpusError
from normlens.models import text_tokenizer

BYTE = re.compile("<0x[0-9A-F]{2}>")  # how sentencepiece writes a byte it has no piece for
# entries that were left free and stand for no text: [unused7], <unused7>, <|reserved_special_token_7|>, madeupword0007
FREE = re.compile(r"[\[<]\|?(unused|reserved)\w*\|?[\]>]|madeupword\d+")


@dataclass(frozen=True, slots=True, eq=False)
class FrequencyRanks:
    """The frequency rank of every token id, and the ids that a study by frequency leaves out."""

    source: str
    ranks: Int64[np.ndarray, " vocabulary"]
    excluded: Bool[np.ndarray, " vocabulary"]


def from_file(path: str | Path, vocabulary_size: int) -> FrequencyRanks:
    """Ranks counted elsewhere: lines of `rank count token_id`."""
    path = Path(path)
    found: dict[int, int] = {}
    for number, line in enumerate(file_lines(path, name=path.name), start=1):
        if line.strip():
            rank, token = _ranked(line, f"{path.name}:{number}")
            if token >= vocabulary_size:
                raise CorpusError(
                    f"{path.name}:{number}: no token id {token}: the vocabulary has ids 0 to {vocabulary_size - 1}.",
                    cause="the ranks are those of another tokenizer.",
                    do="give ranks of this tokenizer; or use --ranks vocabulary or --ranks corpus (ranks= in Python).",
                )
            if token in found:
                raise CorpusError(
                    f"{path.name}:{number}: token id {token} is ranked twice.",
                    do="remove one of the two lines.",
                )
            found[token] = rank
    if not found:
        raise CorpusError(
            f"There are no ranks in '{path}'.",
            do="give lines of `rank count token_id`.",
        )
    ranks = np.full(vocabulary_size, max(found.values()) + 1, dtype=np.int64)
    ranks[list(found)] = list(found.values())
    return FrequencyRanks(path.name, ranks, np.zeros(vocabulary_size, dtype=np.bool_))


def from_counts(counts: Int[np.ndarray, " vocabulary"], source: str = "own counts") -> FrequencyRanks:
    """Ranks by how often each id was seen."""
    if not len(counts) or counts.min() < 0 or not counts.any():
        raise CorpusError(
            "There are no counts to rank tokens by.",
            cause="nothing was counted, or a count is below 0.",
            do="give how often each token id occurs; at least one count must be above 0.",
        )
    seen = np.sort(counts[counts > 0])
    ranks = len(seen) - np.searchsorted(seen, counts, side="right") + 1
    last = ranks[counts > 0].max()
    return FrequencyRanks(
        source, np.where(counts > 0, ranks, last + 1).astype(np.int64), np.zeros(len(counts), dtype=np.bool_)
    )


def from_vocabulary(tokenizer: Any) -> FrequencyRanks:
    """The 2020 paper's rule: the order of the vocabulary is the rank.

    Comma, period, [SEP] and [CLS] come first, in this order; other special tokens, entries left free such as [unused7]
    and single characters are excluded, so that the next rank is that of the first word. A tokenizer that has both ","
    and "Ġ," ranks them alike; one without [SEP] and [CLS] has its end and its beginning of a text there.
    """
    tokenizer = text_tokenizer(tokenizer)
    if not hasattr(tokenizer, "get_vocab"):
        raise CorpusError(
            "There is no vocabulary to rank tokens by.",
            cause="the model was loaded without a tokenizer.",
            do="load it with its tokenizer; or give a file of ranks, or counts.",
        )
    vocabulary = sorted((number, str(token)) for token, number in tokenizer.get_vocab().items())
    top = _top(tokenizer, vocabulary)
    special = set(tokenizer.all_special_ids)
    special |= {n for n, added in getattr(tokenizer, "added_tokens_decoder", {}).items() if added.special}
    places = {number: place for place, numbers in enumerate(top, start=1) for number in numbers}
    kept = [n for n, token in vocabulary if n not in places and n not in special and not _is_no_word(token)]
    places |= {number: place for place, number in enumerate(kept, start=len(top) + 1)}
    size = vocabulary[-1][0] + 1
    ranks = np.full(size, len(top) + len(kept) + 1, dtype=np.int64)
    ranks[list(places)] = list(places.values())
    excluded = np.ones(size, dtype=np.bool_)
    excluded[list(places)] = False
    return FrequencyRanks("vocabulary order", ranks, excluded)


def _top(tokenizer: Any, vocabulary: list[tuple[int, str]]) -> list[set[int]]:
    top = [{number for number, token in vocabulary if bare(token) == sign} for sign in ",."]
    for names in (("sep_token_id", "eos_token_id"), ("cls_token_id", "bos_token_id")):
        top.append({next((n for name in names if (n := getattr(tokenizer, name, None)) is not None), -1)} - {-1})
    return [numbers for index, numbers in enumerate(top) if numbers and numbers not in top[:index]]


def _is_no_word(token: str) -> bool:
    """A single character, a byte, or an entry that was left free."""
    return len(bare(token)) == 1 or any(pattern.fullmatch(token) for pattern in (BYTE, FREE))


def _ranked(line: str, where: str) -> tuple[int, int]:
    try:
        rank, _, token = map(int, line.split())
    except ValueError:
        rank, token = 0, -1
    if rank < 1 or token < 0:
        raise CorpusError(
            f"{where}: not a line of `rank count token_id`.",
            got=f"{line[:60]!r}",
            do="write three whole numbers separated by tabs or spaces, with ranks from 1.",
        )
    return rank, token
