"""Attention blocks made by hand: weights and values in, what a study sees of them out."""

import numpy as np
import torch

from normlens import algebra
from normlens.lens import SIDES, Block
from normlens.models import Side
from normlens.signature import Signature
from normlens.studies import Facts, Group, seen_block

RUN = Facts(None, "hand-made", "none", Signature(()), ("other",), None, 0, 128)


def group(lengths, *, special=(0,)):
    """Tokens "a", "b" ... with these positions special."""
    lengths = np.array(lengths)
    there = np.arange(lengths.max()) < lengths[:, None]
    marked = np.isin(np.arange(lengths.max()), special) & there
    sides = tuple(
        Side(
            "text",
            tuple(range(n)),
            tuple("." if j % 5 == 4 else chr(97 + j % 26) for j in range(n)),
            tuple(bool(m) for m in row[:n]),
            tuple(range(n)),
        )
        for n, row in zip(lengths, marked, strict=True)
    )
    ids = np.where(there, np.arange(lengths.max()), 0)
    return Group(ids, np.where(there, 0, -1), marked, lengths, sides)


def block(weights, values, out_weight, lengths, *, kind="self", layer=0):
    """A block that kept everything a study may ask for."""
    kept = {
        "weights": weights,
        "visible": (weights != 0).any(dim=1).to(weights),
        "transformed_norms": algebra.lengths(values, out_weight),
        "coordinates": algebra.coordinates(values, out_weight),
        "value_sums": values.abs().sum(-1),
        "transformed_sums": algebra.transformed_sums(values, out_weight),
    }
    heads = tuple(range(weights.shape[1]))
    sizes = tuple((length, length) for length in lengths)
    return Block(kind, layer, "hand-made", heads, 0.0, *SIDES[kind], kept=kept, sizes=sizes)


def seen(weights, values, out_weight, lengths, *, kind="self", special=(0,), layer=0):
    """What a study sees of the block; where a sequence has ended everything is 0."""
    side = group(lengths, special=special)
    there = torch.from_numpy(side.categories >= 0)
    weights = weights * there[:, None, None] * there[:, None, :, None]
    values = values * there[:, None, :, None]
    return seen_block(RUN, block(weights, values, out_weight, lengths, kind=kind, layer=layer), side, side, 0)


def random_block(seed, lengths, *, heads=2, head_dim=3, model=5, causal=False, sharp=2.0):
    """Random weights with rows that add up to 1 over the keys of their sequence, values and an output matrix."""
    random = torch.Generator().manual_seed(seed)
    size = max(lengths)
    scores = sharp * torch.randn(len(lengths), heads, 1, size, generator=random)
    scores = scores + torch.randn(len(lengths), heads, size, size, generator=random)
    keys = torch.arange(size) < torch.tensor(lengths)[:, None]
    scores = scores.masked_fill(~keys[:, None, None], -torch.inf)
    if causal:
        scores = scores.masked_fill(torch.ones(size, size).triu(1).bool(), -torch.inf)
    values = torch.randn(len(lengths), heads, size, head_dim, generator=random)
    return scores.softmax(-1), values, torch.randn(heads, head_dim, model, generator=random)
