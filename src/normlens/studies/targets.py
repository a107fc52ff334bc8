"""What does each head attend to, and what contributes there? After Clark et al. (2019), by weights and by norms.

For each query the share of its attention (or of its contributions ‖αf(x)‖) on the keys that a predicate means: the
token itself, the one before or after it, special tokens, and so on; any offset, and functions of the user's own. Means
over the queries that have such a key, then over sequences. Beside it the share that uniform attention would have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from normlens.exhibits import (
    Column,
    Exhibit,
    Grid,
    Grids,
    LinePanel,
    Lines,
    Row,
    Section,
    Series,
    Table,
    count,
    head_name,
    listing,
    number,
    percent,
    plain,
    top_of,
)
from normlens.statistics import Moments, Statistic
from normlens.studies.divergence import entropy
from normlens.studies.means import extremes, mean_over
from normlens.studies.per_head import MEASURES, HeadColumn, PerHead, by_measure, few_names
from normlens.studies.predicates import (
    NO_FUNCTIONS,
    PREDICATES,
    Own,
    offset,
    offsets_of,
    own_predicates,
    pair_masks,
)
from normlens.studies.seen import Facts, Seen
from normlens.studies.study import Study, StudyError
from normlens.studies.sums import Sums, padded

BESIDE = ("entropy", "distance")  # columns of a head beside the shares of its targets
MOST = 0.5  # a head with a larger share is said to attend mostly there


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """Shares, entropy and mean distance of every head, by weights and by norms."""

    kind: str
    layers: tuple[int, ...]
    shares: Mapping[tuple[str, str], Float[np.ndarray, "layer head"]]  # by (target, measure)
    expected: Mapping[str, Float[np.ndarray, " layer"]]  # by target: the share of uniform attention over visible keys
    entropy: Mapping[str, Float[np.ndarray, "layer head"]]  # by measure; in nats
    distance: Mapping[str, Float[np.ndarray, "layer head"]]  # by measure; |i - j|, in tokens

    readings: Mapping[str, str]  # by target, for readers

    @property
    def targets(self) -> list[str]:
        return list(self.expected)

    def lift(self, target: str, measure: str) -> Float[np.ndarray, "layer head"]:
        """The share over that of uniform attention; NaN where no key is expected."""
        expected = self.expected[target][:, None]
        return self.shares[target, measure] / np.where(expected > 0, expected, np.nan)


class _Windows:
    """How many keys of each kind the queries see: once for all layers that see the same pairs."""

    def __init__(self) -> None:
        self.known: list[tuple[Tensor, np.ndarray, np.ndarray]] = []

    def of(
        self, pairs: Bool[Tensor, "batch tgt src"], masks: Float[Tensor, "batch pair target"]
    ) -> tuple[Int[np.ndarray, "batch 1 target"], Float[np.ndarray, "batch target"]]:
        """Queries that have such a key, and the share that uniform attention would give to these keys."""
        for seen, counts, expected in self.known:
            if seen.shape == pairs.shape and torch.equal(seen, pairs):
                return counts, expected
        keys = (masks.unflatten(1, tuple(pairs.shape[1:])) * pairs[..., None]).sum(dim=2)  # of each query
        counts = (keys > 0).sum(dim=1).cpu().numpy()[:, None]
        uniform = (keys / pairs.sum(dim=2, keepdim=True).clamp_min(1)).sum(dim=1).cpu().double().numpy()
        self.known.append((pairs, counts, uniform / np.maximum(counts[:, 0], 1)))
        return self.known[-1][1:]


class TargetsStudy(Study[Targets]):
    name, title = "targets", "What does each head attend to, and what contributes there?"
    paper = (
        "Clark et al. (2019), sections 3 and 4.1; the relevance of a predicate of R. Li et al. (2022); the norms "
        "beside the weights are ours"
    )
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
        "The expected share is that of uniform attention over the keys that a query sees, mean over the same queries; "
        "lift is the share over the expected share. Both are ours: R. Li et al. compare heads with each other.",
    )

    def __init__(self, *, offsets: tuple[int, ...] = (), own: Mapping[str, Own] = NO_FUNCTIONS) -> None:
        self.offsets, self.own = offsets_of(offsets), own_predicates(own)
        taken = next((name for name in self.own if name in BESIDE), None)
        if taken is not None:
            raise StudyError(
                f"A predicate cannot be called '{taken}'.",
                cause=f"every head has a column {taken} already.",
                do="choose another name.",
            )
        steps = {predicate.name: predicate for predicate in map(offset, self.offsets)}
        self.predicates = {**PREDICATES, **steps, **self.own}

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        weights = seen.attention
        layer = seen.layer if any(predicate.of_block for predicate in self.own.values()) else ""
        masks = seen.src.once(
            f"{self.name} of {seen.kind} {layer}",
            lambda _: pair_masks(seen, self.predicates.values()).flatten(1, 2).to(weights),
        )
        same = seen.block.tgt == seen.block.src
        windows = seen.src.once(f"windows of {self.name}, {seen.kind} {layer}", lambda _: _Windows())
        counts, expected = windows.of(seen.pairs, masks)
        statistics: dict[str, Statistic] = {"expected": Moments.of(expected, counts[:, 0] > 0)}
        for measure, maps in (("weights", weights), ("norms", seen.contributions)):
            flat = maps.flatten(2)
            sums = torch.matmul(flat, masks).cpu().double().numpy()  # (batch, head, target)
            present = np.broadcast_to(counts > 0, sums.shape)
            statistics[f"shares_{measure}"] = Moments.of(sums / np.maximum(counts, 1), present)
            if same:
                far = (torch.arange(maps.shape[2])[:, None] - torch.arange(maps.shape[3])).abs().to(flat).flatten()
                distance = torch.matmul(flat, far).cpu().double().numpy()
                statistics[f"distance_{measure}"] = Moments.of(distance / seen.queries[:, None])
        for measure, spread in entropies(seen).items():
            values = spread.sum(dim=-1).cpu().double().numpy()
            statistics[f"entropy_{measure}"] = Moments.of(values / seen.queries[:, None])
        return statistics

    def result(self, sums: Sums, run: Facts) -> Targets:
        layers, _ = sums.by_layer("shares_weights")
        meant = [one for one in self.predicates.values() if one.any_side or sums.kind != "cross"]
        shares, spread, distance = {}, {}, {}
        uniform = np.stack([np.where(m.count > 0, m.mean, np.nan) for m in sums.by_layer("expected")[1]])
        for measure in MEASURES:
            found = [np.where(m.count > 0, m.mean, np.nan) for m in sums.by_layer(f"shares_{measure}")[1]]
            for place, predicate in enumerate(meant):
                shares[predicate.name, measure] = padded([layer[:, place] for layer in found])
            spread[measure] = padded([m.mean for m in sums.by_layer(f"entropy_{measure}")[1]])
            far = sums.by_layer(f"distance_{measure}")[1]
            if far:
                distance[measure] = padded([m.mean for m in far])
        expected = {predicate.name: uniform[:, place] for place, predicate in enumerate(meant)}
        readings = {predicate.name: predicate.reading for predicate in meant}
        return Targets(sums.kind, layers, shares, expected, spread, distance, readings)

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
                _expected_table(result),
                self.per_head(result).table("targets", "Shares, entropy and mean distance of every head"),
                _lift_table(result),
            ],
        )


def _sentences(result: Targets) -> list[str]:
    lines = []
    for target in result.targets:
        by_weights, by_norms = (_mostly(result, target, measure) for measure in MEASURES)
        if by_weights or by_norms:
            heads = int(np.isfinite(result.shares[target, "weights"]).sum())
            lines.append(
                f"More than half of the attention goes to {result.readings[target]} in {len(by_weights)} of "
                f"{count(heads)} heads{_named(result, by_weights)}; more than half of the contributions come from "
                f"there in {len(by_norms)}{_named(result, by_norms)}."
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


def entropies(seen: Seen) -> Mapping[str, Float[Tensor, "batch head tgt"]]:
    """The entropy of every query, by measure.

    With p = α‖f‖ / S and S = Σ α‖f‖ that of the contributions needs no logarithm of its own:
    H = log S − (Σ ‖f‖·α log α + Σ α·‖f‖ log ‖f‖) / S
    """
    weights = seen.attention
    tiny = torch.finfo(weights.dtype).tiny
    logs = weights.clamp_min(tiny).log_().mul_(weights)
    by_weights = -logs.sum(dim=-1)
    if seen.is_scaled:
        return {"weights": by_weights, "norms": entropy(seen.contributions)}
    norms = seen.norms_of_keys
    columns = torch.stack([norms, norms * norms.clamp_min(tiny).log()], dim=-1)
    total, of_norms = torch.matmul(weights, columns).unbind(-1)
    of_weights = torch.matmul(logs, norms[..., None]).squeeze(-1)
    spread = total.clamp_min(tiny).log() - (of_weights + of_norms) / total.clamp_min(tiny)
    return {"weights": by_weights, "norms": spread.masked_fill_(total <= tiny, 0).clamp_min_(0)}


def _named(result: Targets, cells: list[tuple[int, int]]) -> str:
    return f" ({few_names(result.layers, cells)})" if cells else ""


def _expected_table(result: Targets) -> Table:
    rows: list[Row] = []
    for target in result.targets:
        row: Row = {"target": target, "reading": result.readings[target]}
        row["expected"] = plain(mean_over(result.expected[target]))
        for measure in MEASURES:
            lift = result.lift(target, measure)
            row[f"share_{measure}"] = plain(mean_over(result.shares[target, measure].reshape(-1)))
            row[f"lift_{measure}"] = plain(mean_over(lift.reshape(-1)))
            places = extremes(lift)
            row[f"highest_{measure}"] = head_name(result.layers[places[0][0]], places[0][1]) if places else None
            row[f"highest_lift_{measure}"] = plain(lift[places[0]]) if places else None
        rows.append(row)
    columns = [Column("reading", "keys", "text"), Column("expected", "expected", "percent")]
    for measure, symbol in MEASURES.items():
        columns += [
            Column(f"share_{measure}", f"share {symbol}", "percent"),
            Column(f"lift_{measure}", f"lift {symbol}"),
            Column(f"highest_{measure}", f"highest {symbol}", "text"),
            Column(f"highest_lift_{measure}", "its lift"),
        ]
    title = "Mean share over all heads beside that of uniform attention, and the head with the highest lift"
    return Table("targets_expected", title, rows, tuple(columns))


def _lift_table(result: Targets) -> Table:
    columns: list[HeadColumn] = []
    for target in result.targets:
        lifts = {measure: result.lift(target, measure) for measure in MEASURES}
        columns += by_measure(target, target.replace("_", " "), lifts)
    return PerHead(result.layers, tuple(columns)).table("targets_lift", "Lift of every head", shown=0)


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
        name, reading = target.replace("_", " "), result.readings[target]
        figures.append(
            Grids(
                f"targets_{target}",
                f"Share of {reading}, head by head: left of the attention, right of the contributions, on one scale "
                f"from 0 to {number(top)}.",
                f"Two maps, layer by head, for {reading}: largest share of the attention "
                f"{percent(top_of(grids[0]))}, of the contributions {percent(top_of(grids[1]))}.",
                (Grid(f"{name}: α", grids[0], "weight", top), Grid(f"{name}: ‖αf(x)‖", grids[1], "norm", top)),
                tuple(map(str, result.layers)),
                folded="Maps of every head",
            )
        )
    return figures
