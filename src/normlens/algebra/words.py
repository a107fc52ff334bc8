"""From maps over pieces to maps over words: the pieces of a key add up, those of a query are averaged.

After Clark et al. (2019), and as in word alignment: the attention of a word is that of its pieces together.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def word_pieces(
    words: Sequence[Sequence[int | None]], count: int, width: int
) -> tuple[Float[Tensor, "batch word piece"], Float[Tensor, "batch piece word"]]:
    """Rows for queries and columns for keys of `to_words`, from the word of each piece of each sequence; None: none."""
    keys = torch.zeros(len(words), width, count)
    for columns, pieces in zip(keys, words, strict=True):
        for place, word in enumerate(pieces):
            if word is not None:
                columns[place, word] = 1
    queries = keys.mT
    return queries / queries.sum(dim=-1, keepdim=True).clamp_min(1), keys


def to_words(
    maps: Float[Tensor, "batch *head tgt src"],
    queries: Float[Tensor, "batch tgt_word tgt"],
    keys: Float[Tensor, "batch src src_word"],
) -> Float[Tensor, "batch *head tgt_word src_word"]:
    """Means over the pieces of a query and sums over those of a key."""
    if maps.ndim == 4:
        queries, keys = queries[:, None], keys[:, None]
    return torch.matmul(torch.matmul(queries, maps), keys)
