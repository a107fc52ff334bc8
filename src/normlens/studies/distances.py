"""Which heads attend alike? After Clark et al. (2019): distances between all heads of a model, a map, and clusters.

distance(a, b) = mean over queries of JS(p_a, p_b)        p: attention, or shares of the contributions, of a query
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from torch import Tensor

from normlens.exhibits import Section, head_name
from normlens.statistics import Moments
from normlens.studies.batches import Group
from normlens.studies.distances_section import clusters, head_map, matrices, sentences
from normlens.studies.divergence import all_divergences, distributions
from normlens.studies.means import mean_over
from normlens.studies.per_head import MEASURES, HeadColumn, PerHead, by_measure
from normlens.studies.predicates import PREDICATES, pair_masks
from normlens.studies.seen import Facts, Pass, Seen
from normlens.studies.study import Study, StudyError
from normlens.studies.sums import Sums, padded


@dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """Distances between all heads, in the order of layers and heads, and what follows from them; by measure."""

    kind: str
    layers: tuple[int, ...]
    heads: tuple[int, ...]  # of each layer
    queries: int  # that were compared
    between: Mapping[str, Float[np.ndarray, "head head"]]
    places: Mapping[str, Float[np.ndarray, "head 2"]]  # on the map; NaN for a head without attention
    clusters: Mapping[str, Int[np.ndarray, " head"]]  # 1 is the largest; 0 for a head without attention
    shares: Mapping[str, Float[np.ndarray, "head target"]]  # of attention or contributions, at the same queries

    @property
    def layer_of(self) -> Int[np.ndarray, " head"]:
        return np.repeat(self.layers, self.heads)

    @property
    def names(self) -> list[str]:
        return [head_name(layer, h) for layer, heads in zip(self.layers, self.heads, strict=True) for h in range(heads)]

    def within(self, measure: str) -> Float[np.ndarray, "head head"]:
        """Distances to the other heads of the same layer; NaN for all others."""
        same = (self.layer_of[:, None] == self.layer_of) & ~np.eye(sum(self.heads), dtype=bool)
        return np.where(same, self.between[measure], np.nan)

    def across(self, measure: str) -> Float[np.ndarray, "head head"]:
        """Distances to heads of other layers; NaN for all others."""
        return np.where(self.layer_of[:, None] != self.layer_of, self.between[measure], np.nan)

    def by_layer(self, values: np.ndarray) -> Float[np.ndarray, "layer head"]:
        """One value of every head, as layers by heads."""
        return padded(np.split(values.astype(np.float64), np.cumsum(self.heads)[:-1]))


class DistancesStudy(Study[Distances]):
    name, title = "distances", "Which heads attend alike?"
    paper = "Clark et al. (2019), section 6; means, sampling, norms, classical scaling and clusters are ours"
    question = (
        "Clark et al. compare all heads of a model by the Jensen-Shannon divergence of their attention and find that "
        "heads of one layer are often alike. The same of the contributions ‖αf(x)‖ shows which heads are alike in what "
        "reaches the output."
    )
    caution = (
        "two heads that attend alike may write different vectors. The map shows distances in two dimensions, and its "
        "axes mean nothing by themselves. Clusters are found in any distances, also where there are no groups."
    )
    causal = (
        "This attention is causal: a query sees only itself and earlier tokens, so early queries bring heads closer."
    )

    def __init__(self, *, queries: int = 4, clusters: int = 0) -> None:
        if queries < 1 or clusters < 0:
            raise StudyError(
                f"queries must be at least 1 and clusters at least 0 (got {queries} and {clusters}).",
                do="leave clusters out, or give 0, for a number that fits the distances.",
            )
        self.queries, self.clusters = queries, clusters
        self.method = (
            "The attention weights of a query are a distribution over its keys, and so are the norms ‖αf(x)‖ divided "
            "by their sum. The distance of two heads is the mean over queries of the Jensen-Shannon divergence of "
            "their distributions, in nats, from 0 to log 2 = 0.69. Clark et al. take the sum over tokens; the mean is "
            f"the sum over the number of queries (ours). At most {queries} random queries of each sequence are "
            "compared, the same for all heads (ours).",
            "The map is by classical multidimensional scaling. Clusters join heads by average linkage; "
            + (
                f"there are at most {clusters}, as asked for."
                if clusters
                else "two clusters are joined while their mean distance is at most that of all pairs of heads (ours)."
            ),
        )

    def counter(self, sums: Sums, run: Facts) -> _Comparing:
        return _Comparing(self, sums)

    def result(self, sums: Sums, run: Facts) -> Distances:
        layers, rows = sums.by_layer("weights")
        between, places, clusters, shares = {}, {}, {}, {}
        for measure in MEASURES:
            moments = sums.by_layer(measure)[1]
            means = np.concatenate([np.where(m.count > 0, m.mean, np.nan) for m in moments])
            between[measure], there = means, np.isfinite(means.diagonal())
            places[measure], clusters[measure] = np.full((len(means), 2), np.nan), np.zeros(len(means), int)
            alone = means[np.ix_(there, there)]
            if len(alone) and np.isfinite(alone).all():
                places[measure][there] = scaled(alone)
                clusters[measure][there] = clustered(alone, self.clusters)
            found = sums.by_layer(f"shares_{measure}")[1]
            shares[measure] = np.concatenate([np.where(m.count > 0, m.mean, np.nan) for m in found])
        heads = tuple(len(m.count) for m in rows)
        queries = max(int(m.count.max()) for m in rows)
        return Distances(sums.kind, layers, heads, queries, between, places, clusters, shares)

    def per_head(self, result: Distances) -> PerHead:
        columns = (
            *by_measure(
                "cluster",
                "cluster",
                {m: result.by_layer(np.where(c > 0, c, np.nan)) for m, c in result.clusters.items()},
                "count",
            ),
            *by_measure(
                "same_layer_distance",
                "distance to its layer",
                {m: result.by_layer(mean_over(result.within(m))) for m in MEASURES},
            ),
            *by_measure(
                "other_layers_distance",
                "to other layers",
                {m: result.by_layer(mean_over(result.across(m))) for m in MEASURES},
            ),
            *(
                HeadColumn(f"map_{axis}_{m}", "", result.by_layer(result.places[m][:, place]), shown=False)
                for m in MEASURES
                for place, axis in enumerate("xy")
            ),
        )
        return PerHead(result.layers, columns)

    def section(self, result: Distances, run: Facts) -> Section:
        if sum(result.heads) < 2:
            return Section(["There is only one head, so there is no distance between heads."])
        table = self.per_head(result).table("distances", "Cluster and mean distances of every head")
        return Section(sentences(result), [head_map(result), matrices(result), clusters(result), table])


class _Comparing:
    """Keeps some queries of every block of a pass, and compares all heads when the pass is over."""

    def __init__(self, study: DistancesStudy, sums: Sums) -> None:
        self.study, self.sums = study, sums
        self.kept: dict[str, list[_Rows]] = {}  # by kind

    def see(self, seen: Seen) -> None:
        batch, queries = self._drawn(seen)
        weights = seen.weights[batch, :, queries]
        rows = {"weights": distributions(weights), "norms": distributions(seen.contributions[batch, :, queries])}
        self.kept.setdefault(seen.kind, []).append(_Rows(seen.layer, rows, batch, seen.src.lengths))
        masks = seen.src.once(f"predicates of {seen.kind}", lambda _: pair_masks(seen, PREDICATES.values()))
        masks = masks[batch, queries].to(weights)
        visible = seen.pairs[batch, queries][:, None].to(weights)
        has_key = (torch.matmul(visible, masks) > 0).cpu().numpy()  # (query, 1, target)
        for measure, maps in rows.items():
            shares = torch.matmul(maps, masks).cpu().double().numpy()  # (query, head, target)
            moments = Moments.of(np.nan_to_num(shares), has_key & np.isfinite(shares))
            self.sums.of(seen.kind).add(f"{seen.layer}/shares_{measure}", moments)

    def see_pass(self, passed: Pass) -> None:
        for kind, blocks in self.kept.items():
            sums, first = self.sums.of(kind), blocks[0]
            ends = np.cumsum([block.rows["weights"].shape[1] for block in blocks])
            for measure in MEASURES:
                heads = torch.cat([block.rows[measure] for block in blocks], dim=1)
                for sequence in np.unique(first.batch):
                    rows = heads[first.batch == sequence, :, : first.lengths[sequence]].transpose(0, 1)
                    table = all_divergences(rows.contiguous()).cpu().double().numpy()
                    for block, part in zip(blocks, np.split(table, ends[:-1], axis=1), strict=True):
                        sums.add(f"{block.layer}/{measure}", Moments.of(np.nan_to_num(part), np.isfinite(part)))
        self.kept.clear()

    def _drawn(self, seen: Seen) -> tuple[Int[np.ndarray, " query"], Int[np.ndarray, " query"]]:
        """Random queries of every sequence: their sequences and positions, the same for every layer."""

        def draw(group: Group) -> tuple[np.ndarray, np.ndarray]:
            drawn = []
            for ids, length in zip(group.ids, group.lengths, strict=True):
                chance = np.random.default_rng([seen.run.seed, *ids[:length].tolist()])
                drawn.append(np.sort(chance.permutation(length)[: self.study.queries]))
            return np.repeat(np.arange(len(drawn)), [len(queries) for queries in drawn]), np.concatenate(drawn)

        return seen.tgt.once("drawn queries", draw)

    def shard(self) -> None:
        pass

    def settle(self) -> None:
        pass


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Distributions of the drawn queries of one block."""

    layer: int
    rows: Mapping[str, Float[Tensor, "query head key"]]  # by measure
    batch: Int[np.ndarray, " query"]  # the sequence of each query
    lengths: Int[np.ndarray, " batch"]  # how many keys each sequence has


def scaled(between: Float[np.ndarray, "head head"]) -> Float[np.ndarray, "head 2"]:
    """Places in the plane by classical multidimensional scaling; of each axis the largest number is positive."""
    middle = np.eye(len(between)) - 1 / len(between)
    sizes, axes = np.linalg.eigh(-0.5 * middle @ between**2 @ middle)
    places = np.zeros((len(between), 2))
    for axis in range(min(2, len(between))):
        places[:, axis] = axes[:, -1 - axis] * np.sqrt(max(sizes[-1 - axis], 0.0))
    signs = np.sign(np.take_along_axis(places, np.abs(places).argmax(axis=0)[None], axis=0))
    return places * np.where(signs == 0, 1, signs)


def clustered(between: Float[np.ndarray, "head head"], wanted: int = 0) -> Int[np.ndarray, " head"]:
    """Average linkage up to the mean distance of all heads, or to at most so many clusters; 1 is the largest."""
    if len(between) < 2:
        return np.ones(len(between), int)
    pairs = squareform(between, checks=False)
    tree = linkage(pairs, "average")
    labels = fcluster(tree, wanted, "maxclust") if wanted else fcluster(tree, pairs.mean(), "distance")
    sizes = np.bincount(labels)
    order = sorted(np.unique(labels), key=lambda label: (-sizes[label], int(np.argmax(labels == label))))
    return np.array([1 + order.index(label) for label in labels])
