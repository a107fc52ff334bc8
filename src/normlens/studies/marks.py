"""Which tokens are punctuation, and which sentence each belongs to: computed once a batch.

A sentence ends after ".", "!", "?" (and their full-width forms) and after a special token; the mark belongs to the
sentence it ends. The rule is ours and knows no abbreviations.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from normlens.corpora import bare, is_punctuation
from normlens.studies.batches import Group

ENDS = frozenset(".!?。！？…")


def punctuation(group: Group) -> Bool[np.ndarray, "batch token"]:
    """Tokens that are punctuation and not special."""
    return group.once("punctuation", _punctuation)


def sentence_ends(group: Group) -> Bool[np.ndarray, "batch token"]:
    """Tokens that end a sentence and are not special."""
    return group.once("sentence ends", _sentence_ends)


def sentences(group: Group) -> Int[np.ndarray, "batch token"]:
    """The number of each token's sentence within its sequence; -1 for padding."""
    return group.once("sentences", _sentences)


def segments(group: Group) -> Int[np.ndarray, "batch token"]:
    """The number of each token's segment: parts between special tokens; sentences where there is only one part."""
    return group.once("segments", _segments)


def _segments(group: Group) -> Int[np.ndarray, "batch token"]:
    ends = np.cumsum(group.special, axis=1) - group.special
    inner = np.where(group.special | (group.categories < 0), -1, ends)
    one_part = np.array([np.unique(row[row >= 0]).size < 2 for row in inner])
    return np.where(one_part[:, None], sentences(group), ends)


def _punctuation(group: Group) -> Bool[np.ndarray, "batch token"]:
    marks = np.zeros(group.ids.shape, bool)
    for row, side in enumerate(group.sides):
        marks[row, : len(side.tokens)] = [is_punctuation(bare(token)) for token in side.tokens]
    return marks & ~group.special


def _sentence_ends(group: Group) -> Bool[np.ndarray, "batch token"]:
    ends = np.zeros(group.ids.shape, bool)
    for row, side in enumerate(group.sides):
        ends[row, : len(side.tokens)] = [bare(token) in ENDS for token in side.tokens]
    return ends & ~group.special


def _sentences(group: Group) -> Int[np.ndarray, "batch token"]:
    ends = (sentence_ends(group) | group.special).astype(np.int64)
    numbers = np.cumsum(ends, axis=1) - ends
    return np.where(group.categories >= 0, numbers, -1)
