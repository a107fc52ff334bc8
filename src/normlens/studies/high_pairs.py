"""Pairs of tokens whose vectors are most alike in a head: which they are, and the token that most of them touch.

A pair is i < j, both real and, unless asked otherwise, not special. Nothing is looped over pairs: all pairs of a batch
lie along one axis, and the few that are high come as three index arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from normlens.studies.batches import Group
from normlens.studies.marks import sentences

Rule = Literal["top", "absolute", "largest", "deviations"]
Unit = Literal["type", "position"]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Every pair of positions of a batch, and what is known of each."""

    first: Int[np.ndarray, " pair"]
    second: Int[np.ndarray, " pair"]
    allowed: Bool[np.ndarray, "batch pair"]
    same_token: Bool[np.ndarray, "batch pair"]  # the same token id
    same_sentence: Bool[np.ndarray, "batch pair"]
    same_sentence_at_distance: Float[
        np.ndarray, "batch pair"
    ]  # share of same-sentence pairs among equally distant ones
    tokens: Int[np.ndarray, " batch"]  # tokens that may be in a pair
    groups: Int[np.ndarray, "batch token"]  # what counts as one token: by default all copies of a type
    ids: Int[np.ndarray, "batch token"]

    @property
    def distance(self) -> Int[np.ndarray, " pair"]:
        return self.second - self.first


@dataclass(frozen=True, slots=True, eq=False)
class High:
    """The high pairs of every head of a batch, one index array for each axis."""

    batch: Int[np.ndarray, " high"]
    head: Int[np.ndarray, " high"]
    pair: Int[np.ndarray, " high"]
    shape: tuple[int, int]  # sequences and heads

    @property
    def cell(self) -> Int[np.ndarray, " high"]:
        """The number of the (sequence, head) of each pair."""
        return self.batch * self.shape[1] + self.head

    def summed(self, values: Shaped[np.ndarray, " high"] | None = None) -> Float[np.ndarray, "batch head"]:
        """How many high pairs each head has in each sequence, or the sum of these values over them."""
        sizes = self.shape[0] * self.shape[1]
        return np.bincount(self.cell, values, minlength=sizes).reshape(self.shape).astype(np.float64)


def pairs_of(group: Group, *, special: bool, unit: Unit) -> Pairs:
    """The pairs of one side of a batch."""
    batch, width = group.ids.shape
    first, second = np.triu_indices(width, 1)
    may = (group.categories >= 0) & (special | ~group.special)
    allowed = may[:, first] & may[:, second]
    same_token = allowed & (group.ids[:, first] == group.ids[:, second])
    sentence = sentences(group)
    same_sentence = allowed & (sentence[:, first] == sentence[:, second])
    cell = np.arange(batch)[:, None] * width + (second - first)
    by_distance = [np.bincount(cell[mask], minlength=batch * width) for mask in (same_sentence, allowed)]
    expected = (by_distance[0] / np.maximum(by_distance[1], 1))[cell]
    groups = np.broadcast_to(np.arange(width), group.ids.shape)
    if unit == "type":
        groups = (group.ids[:, :, None] == group.ids[:, None]).argmax(axis=2)  # its first copy
    return Pairs(first, second, allowed, same_token, same_sentence, expected, may.sum(axis=1), groups, group.ids)


def similarities(
    matrix: Float[Tensor, "batch head tgt tgt"], pairs: Pairs, *, cosine: bool
) -> Float[Tensor, "batch head pair"]:
    """The similarity of every pair, -∞ for those that do not count."""
    flat = torch.from_numpy(pairs.first * matrix.shape[-1] + pairs.second).to(matrix.device)
    values = matrix.flatten(2).index_select(2, flat)
    if cosine:
        norms = matrix.diagonal(dim1=2, dim2=3).clamp_min(0).sqrt()
        first, second = (torch.from_numpy(index).to(matrix.device) for index in (pairs.first, pairs.second))
        product = norms.index_select(2, first) * norms.index_select(2, second)
        values = torch.where(product > 0, values / product.clamp_min(torch.finfo(values.dtype).tiny), 0)
    return values.masked_fill_(~torch.from_numpy(pairs.allowed).to(matrix.device)[:, None], -torch.inf)


def high_pairs(values: Float[Tensor, "batch head pair"], *, rule: Rule, threshold: float) -> High:
    """The pairs at or above the threshold of their own matrix.

    top: the largest share `threshold` of the pairs, one at least, and those equal to the last of them;
    absolute: `threshold` itself; largest: `threshold` times the largest |similarity|;
    deviations: the mean and `threshold` standard deviations.
    """
    counts = torch.isfinite(values[:, 0]).sum(dim=-1)
    if not values.shape[-1]:
        limit = values.new_full((*values.shape[:2], 1), torch.inf)
    elif rule == "top":
        wanted = (counts * threshold).round().long().clamp(min=1)
        largest = values.topk(int(wanted.max()), dim=-1).values
        limit = largest.gather(-1, (wanted - 1)[:, None, None].expand(*values.shape[:2], 1))
    elif rule == "absolute":
        limit = values.new_full((*values.shape[:2], 1), threshold)
    elif rule == "largest":
        there = torch.isfinite(values)
        limit = threshold * values.masked_fill(~there, 0).abs().amax(dim=-1, keepdim=True)
    else:
        there, number = torch.isfinite(values), counts.clamp(min=1)[:, None, None]
        present = values.masked_fill(~there, 0).double()
        mean = present.sum(dim=-1, keepdim=True) / number
        spread = ((present - mean) ** 2).masked_fill(~there, 0).sum(dim=-1, keepdim=True) / number
        limit = (mean + threshold * spread.sqrt()).to(values)
    return _indices(values >= limit.clamp_min(torch.finfo(values.dtype).min))


def shuffled(pairs: Pairs, high: High, group: Group, seed: int) -> High:
    """As many pairs of every head and sequence, drawn at random: what is high when similarities are shuffled.

    Chance depends on the seed and on the text alone, whatever batch the text is in.
    """
    counts = torch.from_numpy(high.summed().astype(np.int64))
    keys = torch.full((*high.shape, len(pairs.first)), 2.0)
    for row, (ids, length, allowed) in enumerate(zip(group.ids, group.lengths, pairs.allowed, strict=True)):
        random = np.random.default_rng([seed, *ids[:length].tolist()])
        drawn = random.random((high.shape[1], int(allowed.sum())), np.float32)
        keys[row][:, torch.from_numpy(allowed)] = torch.from_numpy(drawn)
    most = int(counts.max()) if counts.numel() else 0
    places = keys.topk(most, dim=-1, largest=False).indices
    batch, head, rank = (torch.arange(most) < counts[:, :, None]).nonzero().T
    return High(batch.numpy(), head.numpy(), places[batch, head, rank].numpy(), high.shape)


def dominant(pairs: Pairs, high: High) -> tuple[Int[np.ndarray, "batch head"], Float[np.ndarray, "batch head"]]:
    """The token that most high pairs touch (the first of equals; -1 without any pair), and the share that touches it.

    A pair of two copies of a type touches the type once.
    """
    width = pairs.groups.shape[1]
    first = pairs.groups[high.batch, pairs.first[high.pair]]
    second = pairs.groups[high.batch, pairs.second[high.pair]]
    touched = np.concatenate([high.cell * width + first, (high.cell * width + second)[first != second]])
    degrees = np.bincount(touched, minlength=high.shape[0] * high.shape[1] * width).reshape(*high.shape, width)
    place, total = degrees.argmax(axis=2), high.summed()
    share = degrees.max(axis=2) / np.maximum(total, 1)
    return np.where(total > 0, place, -1), np.where(total > 0, share, np.nan)


def distinct(tokens: Int[np.ndarray, "batch head"]) -> Float[np.ndarray, " batch"]:
    """How many different tokens the heads have in each sequence; -1 is none."""
    ordered = np.sort(tokens, axis=1)
    return (np.diff(ordered, axis=1, prepend=-1) > 0).sum(axis=1, dtype=np.float64)


def _indices(mask: Bool[Tensor, "batch head pair"]) -> High:
    batch, head, pair = (index.cpu().numpy() for index in mask.nonzero().T)
    return High(batch, head, pair, (mask.shape[0], mask.shape[1]))
