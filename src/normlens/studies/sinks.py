"""Attention sinks: which tokens receive much attention from every query, and what do they contribute?

A key k is a sink of a head in a sequence when the queries that see it (all of them, or those from k on where attention
is causal) direct more than 0.3 of their attention to it on average:

    received[k] = mean_i α[i,k]                     by weights
    received[k] = mean_i ‖α[i,k] f(x_k)‖ / Σ_j ‖α[i,j] f(x_j)‖    by norms

A no-op sink has a short f(x): the head attends there and writes next to nothing. A broadcast sink writes the same few
directions everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from normlens.exhibits import (
    Cloud,
    Exhibit,
    Grid,
    Grids,
    Scatter,
    ScatterPanel,
    Section,
    Table,
    count,
    hatched,
    head_name,
    listing,
    many,
    number,
    percent,
)
from normlens.statistics import Moments, Products, Statistic
from normlens.studies import massive
from normlens.studies.means import mean_over
from normlens.studies.per_head import MEASURES, HeadColumn, PerHead, by_measure, few_names, texts
from normlens.studies.places import phrase, place_names, places
from normlens.studies.seen import Facts, Pass, Seen
from normlens.studies.study import Needs, Study, StudyError
from normlens.studies.sums import Sums, padded

TOLD = {  # kinds of sinks, as a sentence begins
    "no-op": "The sink is a no-op, with a short f(x),",
    "broadcast": "The sink broadcasts nearly the same vector in every text",
    "neither": "The sink is neither no-op nor broadcast by our bounds",
}
KINDS = tuple(TOLD)
OF_SINKS = ("received_weights", "received_norms", "norm_ratio")


@dataclass(frozen=True, slots=True, eq=False)
class Sinks:
    """The sinks of every head; means over its sinks are NaN where it has none."""

    kind: str
    layers: tuple[int, ...]
    places: tuple[str, ...]
    sequences: int  # long enough to be judged
    rate: Mapping[str, Float[np.ndarray, "layer head"]]  # by measure: share of the sequences with a sink
    rate_at: Mapping[str, Float[np.ndarray, "layer head place"]]  # by measure: with a sink at that place
    received: Mapping[str, Float[np.ndarray, "layer head"]]  # by measure: what these received, and contributed
    ratio: Float[np.ndarray, "layer head"]  # their ‖f(x)‖ over the median of their sequence
    rank: Float[np.ndarray, "layer head"]  # effective rank of what they write over the corpus
    positions: tuple[tuple[str, ...], ...]  # by layer and head: the place with most sinks, "" where there is none
    kinds: tuple[tuple[str, ...], ...]  # by layer and head: one of KINDS, or ""
    massive: massive.Massive | None

    def of_kind(self, kind: str) -> list[tuple[int, int]]:
        """Places (layer, head) of the heads of this kind, most sinks first."""
        cells = [(layer, head) for layer, row in enumerate(self.kinds) for head, k in enumerate(row) if k == kind]
        return sorted(cells, key=lambda cell: -float(self.rate["weights"][cell]))


class SinksStudy(Study[Sinks]):
    name, title = "sinks", "Which tokens are attention sinks, and do they contribute?"
    paper = "the sink rate after Gu et al. (2025); norms, ranks, verdicts and their bounds are ours"
    needs = Needs(quantities=("coordinates",), hidden_states=True)
    headlines = 2
    question = (
        "Many heads direct much of their attention to one token whatever the query, often the first one. If f(x) of "
        "that token is short, the head does nothing there (“no-op”). If it is not, the head adds nearly the same "
        "vector everywhere (“broadcast”)."
    )
    caution = (
        "a token is judged alone, so a head that spreads its attention over two separators may have no sink. A first "
        "token that is always the same has the same f(x) in every text where attention is causal, so its rank is 1 "
        "whatever the head does. The bounds of the verdicts are ours."
    )

    def __init__(
        self,
        *,
        threshold: float = 0.3,  # mean share of the attention above which a key is a sink
        often: float = 0.5,  # share of the sequences with a sink from which a head is judged
        short: float = 0.5,  # ‖f(x)‖ below this part of the median is short
        few: float = 2.0,  # effective rank up to which a sink writes few directions
        queries: int = 8,  # a key that fewer queries see is not judged
        positions: int = 4,  # first positions of a text that are told apart
        huge: float = 100.0,  # an |x| of at least so many medians is massive
    ) -> None:
        if not 0 < threshold < 1:
            raise StudyError(
                f"threshold must be above 0 and below 1 (got {threshold:g}).", do="give a share, such as 0.3."
            )
        self.threshold, self.often, self.short, self.few = threshold, often, short, few
        self.queries, self.positions, self.huge = queries, positions, huge
        self.places = place_names(positions)
        self.method = self._method()

    def _method(self) -> tuple[str, ...]:
        bound, often = percent(self.threshold), percent(self.often)
        return (
            f"A key is a sink when the queries that see it direct more than {bound} of their attention to it on "
            f"average. Keys that fewer than {self.queries} queries see are not judged, since a token that only itself "
            "and its neighbour attend to is no sink (ours). The sink rate of a head is the share of the sequences with "
            "at least one sink. By norms it is the same of the shares of the contributions ‖αf(x)‖ of each query.",
            "Of the sinks by weights, means over sinks: the share of the attention they receive, their share of the "
            "contributions, and their ‖f(x)‖ over the median ‖f(x)‖ of the keys of the same sequence. The effective "
            "rank of what they write is the participation ratio (Σλ)²/Σλ² of Σ mean(α²)·f(x)f(x)ᵀ over all sinks of "
            "the head in the corpus, not centred (ours): 1 when the sink always writes the same direction.",
            f"Verdicts are ours, for heads with a sink in at least {often} of the sequences. No-op: ‖f(x)‖ below "
            f"{number(self.short)} of the median, and at most {bound} of the contributions. Broadcast: ‖f(x)‖ not "
            f"below that, more than {bound} of the contributions, and a rank of at most {number(self.few)}. Otherwise "
            "neither.",
            "Massive activations: per sequence the largest |x| of a hidden state over tokens and coordinates, against "
            f"its median |x|. At least {number(self.huge)} times the median is called massive (ours).",
        )

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        judged = seen.seen_by >= self.queries
        at, long_enough = places(seen.src, self.positions), judged.any(axis=1)
        shares = dict(zip(MEASURES, received(seen), strict=True))
        sinks = {measure: (share > self.threshold) & judged[:, None] for measure, share in shares.items()}
        statistics: dict[str, Statistic] = {}
        for measure, there in sinks.items():
            by_place = [(there & (at == place)[:, None]).any(axis=2) for place in range(len(self.places))]
            rates = np.stack([there.any(axis=2), *by_place], axis=-1).astype(np.float64)
            statistics[f"rate_{measure}"] = Moments.of(rates[long_enough])
        batch, head, key = np.nonzero(sinks["weights"])
        heads = seen.weights.shape[1]
        of_sinks = np.stack([*shares.values(), seen.norms / medians(seen)], axis=-1)[batch, head, key]
        for name, values in zip(OF_SINKS, of_sinks.T, strict=True):
            finite = np.isfinite(values)
            statistics[name] = Moments.grouped(values[finite], head[finite], heads)
        if seen.block.no_transformed is not None:
            return statistics
        columns = seen.reaching[batch, head, :, key].square().sum(dim=-1).cpu().double().numpy()
        vectors = seen["coordinates"][batch, head, key].cpu().numpy()
        statistics["written"] = Products.grouped(vectors, columns / seen.seen_by[batch, key], head, heads)
        return statistics

    def see_pass(self, passed: Pass) -> Mapping[tuple[str, int], Mapping[str, Statistic]]:
        return {
            (kind, layer): massive.activations(state, group, self.positions)
            for kind, layer, state, group in passed.hidden_states()
        }

    def result(self, sums: Sums, run: Facts) -> Sinks:
        layers, by_weights = sums.by_layer("rate_weights")
        rates = {measure: _stacked(sums.by_layer(f"rate_{measure}")[1], 1 + len(self.places)) for measure in MEASURES}
        received_weights, received_norms, ratio = (_stacked(sums.by_layer(name)[1]) for name in OF_SINKS)
        written = dict(zip(*sums.by_layer("written"), strict=True))
        unknown = np.full(ratio.shape[1], np.nan)
        rank = padded([written[one].rank if one in written else unknown for one in layers]) if layers else ratio
        rate, rate_at = rates["weights"][..., 0], rates["weights"][..., 1:]
        return Sinks(
            kind=sums.kind,
            layers=layers,
            places=self.places,
            sequences=int(by_weights[0].count.max()) if layers else 0,
            rate={measure: found[..., 0] for measure, found in rates.items()},
            rate_at={measure: found[..., 1:] for measure, found in rates.items()},
            received={"weights": received_weights, "norms": received_norms},
            ratio=ratio,
            rank=rank,
            positions=tuple(tuple(self._position(head) for head in layer) for layer in rate_at),
            kinds=tuple(
                tuple(self._kind(*map(float, head)) for head in zip(*layer, strict=True))
                for layer in zip(rate, received_norms, ratio, rank, strict=True)
            ),
            massive=massive.massive(sums, self.positions),
        )

    def per_head(self, result: Sinks) -> PerHead:
        columns = (
            HeadColumn("sink_rate", "sink rate α", result.rate["weights"], "percent"),
            HeadColumn("sink_rate_norms", "sink rate ‖αf(x)‖", result.rate["norms"], "percent"),
            HeadColumn("sink_position", "position", texts(result.positions), "text"),
            HeadColumn("received_weights", "attention", result.received["weights"], "percent"),
            HeadColumn("received_norms", "contributions", result.received["norms"], "percent"),
            HeadColumn("norm_ratio", "‖f(x)‖ / median", result.ratio),
            HeadColumn("rank", "rank", result.rank),
            HeadColumn("sink_kind", "kind", texts(result.kinds), "text"),
        )
        return PerHead(result.layers, columns)

    def section(self, result: Sinks, run: Facts) -> Section:
        sentences, exhibits, notes = [], [], []
        if result.sequences:
            sentences += _sentences(result, self)
            table = self.per_head(result).table(
                "sinks", "Sinks of every head, the highest sink rate first", by="sink_rate"
            )
            exhibits += [*_figures(result, self), table, _place_table(result)]
        else:
            notes.append(f"No sequence has a key that {self.queries} queries see, so no head is judged.")
        if result.massive is not None:
            sentences.append(massive.sentence(result.massive, self.huge))
            exhibits += [massive.figure(result.massive), massive.table(result.massive)]
        elif result.kind != "cross":
            notes.append("Massive activations are left out: the model returns no hidden states of these tokens.")
        return Section(sentences, exhibits, notes)

    def _position(self, rates: Float[np.ndarray, " place"]) -> str:
        return self.places[int(np.nanargmax(rates))] if np.nan_to_num(rates).any() else ""

    def _kind(self, rate: float, share: float, ratio: float, rank: float) -> str:
        if not rate >= self.often:
            return ""
        if not np.isfinite(ratio):
            return ""
        if ratio < self.short and share <= self.threshold:
            return "no-op"
        return "broadcast" if ratio >= self.short and share > self.threshold and rank <= self.few else "neither"


def received(seen: Seen) -> tuple[Float[np.ndarray, "batch head src"], Float[np.ndarray, "batch head src"]]:
    """Mean over the queries that see a key of its share of their attention, and of their contributions."""
    queries = np.maximum(seen.seen_by, 1)[:, None]
    return seen.sizes / queries, seen.contributions.sum(dim=2).cpu().numpy() / queries


def medians(seen: Seen) -> Float[np.ndarray, "batch head 1"]:
    """The median ‖f(x)‖ of the keys of each sequence; NaN where it is 0."""
    ordered = np.sort(np.where(seen.real[:, None], seen.norms, np.inf), axis=2)
    lengths = seen.src.lengths[:, None, None]
    low, high = (
        np.take_along_axis(ordered, np.broadcast_to(at, (*ordered.shape[:2], 1)), axis=2)
        for at in ((lengths - 1) // 2, lengths // 2)
    )
    median = (low.astype(np.float64) + high) / 2
    return np.where(median > 0, median, np.nan)


def _stacked(layers: list[Moments], width: int | None = None) -> Float[np.ndarray, "layer head *cell"]:
    """Means, NaN where nothing was seen."""
    if not layers:
        return np.zeros((0, 0) if width is None else (0, 0, width))
    return padded([np.where(layer.count > 0, layer.mean, np.nan) for layer in layers])


def _sentences(result: Sinks, study: SinksStudy) -> list[str]:
    rate = result.rate["weights"]
    heads, judged = int(np.isfinite(rate).sum()), [cell for kind in KINDS for cell in result.of_kind(kind)]
    bound, part = percent(study.threshold), percent(study.often)
    if not judged:
        layer, head = np.unravel_index(np.nanargmax(rate), rate.shape)
        return [
            f"No head has a sink (a token that receives more than {bound} of the attention of the queries that see it) "
            f"in at least {part} of the sequences; the largest sink rate is {percent(rate[layer, head])} "
            f"({head_name(result.layers[layer], int(head))})."
        ]
    by_place = {place: sum(result.positions[layer][head] == place for layer, head in judged) for place in result.places}
    ordered = sorted((place for place in by_place if by_place[place]), key=lambda place: -by_place[place])
    where = [f"{phrase(place)} in {many(by_place[place], 'head')}" for place in ordered]
    has = "has" if len(judged) == 1 else "have"
    by_norms = int((np.nan_to_num(result.rate["norms"]) >= study.often).sum())
    sentences = [
        f"{len(judged)} of {many(heads, 'head')} {has} a sink in at least {part} of the sequences: a token that "
        f"receives more than {bound} of the attention of the queries that see it. It is mostly at {listing(where)}. By "
        f"contributions {by_norms} of {count(heads)} would have one.",
    ]
    for kind, told in TOLD.items():
        cells = result.of_kind(kind)
        if not cells:
            continue
        weights, norms, ratio, rank = (
            float(mean_over(np.array([values[cell] for cell in cells])))
            for values in (result.received["weights"], result.received["norms"], result.ratio, result.rank)
        )
        sentences.append(
            f"{told} in {many(len(cells), 'head')} ({few_names(result.layers, cells)}): the sink receives "
            f"{percent(weights)} of the attention and makes {percent(norms)} of the contributions on average, its "
            f"‖f(x)‖ is {number(ratio)} of the median, and the effective rank of what it writes is {number(rank)}."
        )
    return sentences


def _figures(result: Sinks, study: SinksStudy) -> list[Exhibit]:
    rates = result.rate
    maps = Grids(
        "sinks",
        "Sink rate, head by head: share of the sequences in which a token receives more than "
        f"{percent(study.threshold)} of the attention (left) or makes more than that of the contributions (right), on "
        "average over the queries that see it." + hatched(rates["weights"]),
        "Two maps, layer by head. Mean sink rate "
        + listing([f"{percent(float(mean_over(rate.reshape(-1))))} by {MEASURES[m]}" for m, rate in rates.items()])
        + ".",
        (
            Grid("sink rate by α", rates["weights"], "weight", 1.0),
            Grid("sink rate by ‖αf(x)‖", rates["norms"], "norm", 1.0),
        ),
        tuple(map(str, result.layers)),
    )
    clouds, said = [], []
    for kind in KINDS:
        cells = [cell for cell in result.of_kind(kind) if np.isfinite(result.ratio[cell]) and result.ratio[cell] > 0]
        x, y = (np.array([values[cell] for cell in cells]) for values in (result.ratio, result.received["norms"]))
        if cells:
            clouds.append(Cloud(kind, x, y))
            said.append(f"{many(len(cells), 'head')} {kind}")
    if not clouds:
        return [maps]
    return [
        maps,
        Scatter(
            "sinks_kinds",
            f"Heads with a sink in at least {percent(study.often)} of the sequences, one point each: ‖f(x)‖ of the "
            "sink over the median of its sequence, and its share of the contributions, means over sinks.",
            f"Points: {listing(said)}.",
            (ScatterPanel(listing(said), tuple(clouds), y="share of the contributions"),),
            x="‖f(x)‖ of the sink / median",
            x_scale="log",
            names=KINDS,
        ),
    ]


def _place_table(result: Sinks) -> Table:
    columns = [
        column
        for place, name in enumerate(result.places)
        for column in by_measure(name, name, {m: rate[..., place] for m, rate in result.rate_at.items()})
    ]
    heads = PerHead(result.layers, tuple(columns))
    return heads.table("sinks_positions", "Sink rate of every head by position", shown=0)
