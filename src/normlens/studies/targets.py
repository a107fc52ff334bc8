"""What does each head attend to, and what contributes there? After Clark et al. (2019), by weights and by norms.

For each query the share of its attention (or of its contributions ‖αf(x)‖) on keys of a kind: the token itself, the one
before or after it, the first one, special tokens, punctuation, other copies of the token, tokens after an earlier copy
(induction), tokens of the same sentence. Means over the queries that have such a key, then over sequences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from normlens.exhibits import (
    Exhibit,
    Grid,
    Grids,
    LinePanel,
    Lines,
    Section,
    Series,
    count,
    listing,
    number,
    percent,
    top_of,
)
from normlens.statistics import Moments, Statistic
from normlens.studies.marks import punctuation, sentences
from normlens.studies.means import mean_over
from normlens.studies.per_head import MEASURES, HeadColumn, PerHead, by_measure, few_names
from normlens.studies.seen import Facts, Seen
from normlens.studies.study import Study
from normlens.studies.sums import Sums, padded

TARGETS = {  # what a share is the share of, for readers
    "current": "the token itself",
    "previous": "the previous token",
    "next": "the next token",
    "first": "the first token",
    "special": "special tokens",
    "punctuation": "punctuation",
    "duplicate": "other copies of the token",
    "induction": "tokens after an earlier copy of the token",
    "same_sentence": "tokens of the same sentence",
}
ANY_SIDE = ("first", "special", "punctuation")  # these need no common positions of queries and keys
MOST = 0.5  # a head with a larger share is said to attend mostly there


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """Shares, entropy and mean distance of every head, by weights and by norms."""

    kind: str
    layers: tuple[int, ...]
    shares: Mapping[tuple[str, str], Float[np.ndarray, "layer head"]]  # by (target, measure)
    entropy: Mapping[str, Float[np.ndarray, "layer head"]]  # by measure; in nats
    distance: Mapping[str, Float[np.ndarray, "layer head"]]  # by measure; |i - j|, in tokens

    @property
    def targets(self) -> list[str]:
        return [name for name in TARGETS if (name, "weights") in self.shares]


class TargetsStudy(Study[Targets]):
    name, title = "targets", "What does each head attend to, and what contributes there?"
    paper = "Clark et al. (2019), sections 3 and 4.1; the norms beside the weights are ours"
    question = (
        "Clark et al. describe heads by where their attention falls: on the token itself, its neighbours, special "
        "tokens, punctuation. The same shares of the contributions ‖αf(x)‖ show what of it reaches the output."
    )
    caution = (
        "a share says where attention falls, not what it is for. Sentences end at full stops, question and exclamation "
        "marks and special tokens, which is our rule. Entropy and distance of contributions are those of ‖αf(x)‖ "
        "divided by its sum over the keys, so cancelling vectors are not seen."
    )
    method = (
        "For each query the attention weights, and the norms ‖αf(x)‖ divided by their sum over the keys, are summed "
        "over the keys of a kind. The mean over the queries of a sequence takes only those that have such a key: the "
        "first token has no previous one. Every sequence counts once. Copies and induction leave special tokens out: a "
        "copy is the same token id at another position; an induction key is a token whose predecessor is an earlier "
        "copy of the query.",
        "Entropy is −Σ p log p in nats, mean over queries; distance is the mean of |i − j| under the same shares.",
    )

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        weights = seen.weights
        masks = seen.src.once(f"targets of {seen.kind}", lambda group: target_masks(seen))
        same = seen.block.tgt == seen.block.src
        visible = seen.pairs.cpu()
        counts = (masks & visible[..., None]).any(dim=2).sum(dim=1).numpy()[:, None]  # queries that have such a key
        statistics: dict[str, Statistic] = {}
        for measure, maps in (("weights", weights), ("norms", seen.contributions)):
            flat = maps.flatten(2)
            sums = torch.matmul(flat, masks.flatten(1, 2).to(flat)).cpu().double().numpy()  # (batch, head, target)
            present = np.broadcast_to(counts > 0, sums.shape)
            statistics[f"shares_{measure}"] = Moments.of(sums / np.maximum(counts, 1), present)
            entropy = torch.special.entr(maps.clamp_min(0)).sum(dim=(-1, -2)).cpu().double().numpy()
            statistics[f"entropy_{measure}"] = Moments.of(entropy / seen.queries[:, None])
            if same:
                far = (torch.arange(maps.shape[2])[:, None] - torch.arange(maps.shape[3])).abs().to(flat).flatten()
                distance = torch.matmul(flat, far).cpu().double().numpy()
                statistics[f"distance_{measure}"] = Moments.of(distance / seen.queries[:, None])
        return statistics

    def result(self, sums: Sums, run: Facts) -> Targets:
        layers, _ = sums.by_layer("shares_weights")
        names = list(TARGETS) if sums.kind != "cross" else list(ANY_SIDE)
        shares, entropy, distance = {}, {}, {}
        for measure in MEASURES:
            found = [np.where(m.count > 0, m.mean, np.nan) for m in sums.by_layer(f"shares_{measure}")[1]]
            for place, name in enumerate(names):
                shares[name, measure] = padded([layer[:, place] for layer in found])
            entropy[measure] = padded([m.mean for m in sums.by_layer(f"entropy_{measure}")[1]])
            far = sums.by_layer(f"distance_{measure}")[1]
            if far:
                distance[measure] = padded([m.mean for m in far])
        return Targets(sums.kind, layers, shares, entropy, distance)

    def per_head(self, result: Targets) -> PerHead:
        columns: list[HeadColumn] = []
        for name in result.targets:
            values = {measure: result.shares[name, measure] for measure in MEASURES}
            columns += by_measure(name, name.replace("_", " "), values, "percent")
        columns += by_measure("entropy", "entropy", result.entropy)
        return PerHead(result.layers, (*columns, *by_measure("distance", "distance", result.distance)))

    def section(self, result: Targets, run: Facts) -> Section:
        return Section(
            _sentences(result),
            [
                _lines(result),
                *_maps(result),
                self.per_head(result).table("targets", "Shares, entropy and mean distance of every head"),
            ],
        )


def target_masks(seen: Seen) -> Bool[Tensor, "batch tgt src target"]:
    """For each target which keys of a query it takes, in the order of `TARGETS`; of keys alone where sides differ."""
    src, special = seen.src, torch.from_numpy(seen.src.special)
    queries, keys = seen.weights.shape[2:]
    first = torch.arange(keys) == 0
    of_keys = [first.expand(len(special), keys), special, torch.from_numpy(punctuation(src))]
    columns = [mask[:, None].expand(-1, queries, -1) for mask in of_keys]
    if seen.block.tgt != seen.block.src:
        return torch.stack(columns, dim=-1)
    real, ids = torch.from_numpy(seen.real), torch.from_numpy(src.ids)
    plain_tokens, sentence = real & ~special, torch.from_numpy(sentences(src))
    offset = torch.arange(keys)[None] - torch.arange(queries)[:, None]
    copies = (ids[:, :, None] == ids[:, None]) & plain_tokens[:, :, None] & plain_tokens[:, None]
    earlier_copy = copies & (offset < 0)
    after = torch.zeros_like(copies)
    after[:, :, 1:] = earlier_copy[:, :, :-1]  # key j, whose predecessor is an earlier copy of the query
    return torch.stack(
        [
            *((offset == step).expand(copies.shape) for step in (0, -1, 1)),
            *columns,
            copies & (offset != 0),
            after & (offset != 0),
            sentence[:, :, None] == sentence[:, None],
        ],
        dim=-1,
    )


def _sentences(result: Targets) -> list[str]:
    lines = []
    for target in result.targets:
        by_weights, by_norms = (_mostly(result, target, measure) for measure in MEASURES)
        if by_weights or by_norms:
            heads = int(np.isfinite(result.shares[target, "weights"]).sum())
            lines.append(
                f"{len(by_weights)} of {count(heads)} heads direct more than half of their attention to "
                f"{TARGETS[target]}{_named(result, by_weights)}; {len(by_norms)} have more than half of their "
                f"contributions from there{_named(result, by_norms)}."
            )
    entropy = {measure: float(mean_over(values.reshape(-1))) for measure, values in result.entropy.items()}
    lines.append(
        f"The mean entropy is {number(entropy['weights'])} nats by attention weights and {number(entropy['norms'])} by "
        "contributions."
    )
    return sorted(lines, key=lambda line: "entropy" in line)


def _mostly(result: Targets, target: str, measure: str) -> list[tuple[int, int]]:
    """Places (layer, head) of the heads with most of a measure there, the largest share first."""
    values = result.shares[target, measure]
    cells = [(int(layer), int(head)) for layer, head in np.argwhere(np.nan_to_num(values) > MOST)]
    return sorted(cells, key=lambda cell: -float(values[cell]))


def _named(result: Targets, cells: list[tuple[int, int]]) -> str:
    return f" ({few_names(result.layers, cells)})" if cells else ""


def _lines(result: Targets) -> Lines:
    ticks = tuple(map(str, result.layers))
    panels = tuple(
        LinePanel(
            f"share of {symbol}",
            tuple(Series(name.replace("_", " "), mean_over(result.shares[name, measure])) for name in result.targets),
            top=1.0,
        )
        for measure, symbol in MEASURES.items()
    )
    means = [f"{n} {percent(float(mean_over(result.shares[n, 'weights'].reshape(-1))))}" for n in result.targets]
    return Lines(
        "targets",
        "Share of the attention (left) and of the contributions (right) on keys of each kind, means over the heads of "
        "a layer. The kinds overlap, so they do not add up to 1.",
        f"Two panels of lines over layers. Mean shares of the attention: {listing(means)}.",
        panels,
        ticks=ticks,
        names=tuple(name.replace("_", " ") for name in result.targets),
    )


def _maps(result: Targets) -> list[Exhibit]:
    figures: list[Exhibit] = []
    for target in result.targets:
        grids = [result.shares[target, measure] for measure in MEASURES]
        if grids[0].size < 2 or not np.isfinite(grids[0]).any():
            continue
        top = max(top_of(values) for values in grids)
        name = target.replace("_", " ")
        figures.append(
            Grids(
                f"targets_{target}",
                f"Share of {TARGETS[target]}, head by head: left of the attention, right of the contributions, on one "
                f"scale from 0 to {number(top)}.",
                f"Two maps, layer by head, for {TARGETS[target]}: largest share of the attention "
                f"{percent(top_of(grids[0]))}, of the contributions {percent(top_of(grids[1]))}.",
                (Grid(f"{name}: α", grids[0], "weight", top), Grid(f"{name}: ‖αf(x)‖", grids[1], "norm", top)),
                tuple(map(str, result.layers)),
                folded="Maps of every head",
            )
        )
    return figures
