"""Do frequent words receive less attention, or have shorter vectors? Figure 6 of the 2020 paper.

For each occurrence of a token ‖f(x)‖ is its mean over all heads of all layers, and α its mean over the same heads and
over the queries that can see it. ρ is taken with and without special tokens, which are few, receive much, and which
some rules rank first. Rank 1 is the most frequent token, so a positive ρ with the rank means: more for rare tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from normlens.corpora import FrequencyRanks
from normlens.exhibits import (
    Cloud,
    Column,
    Exhibit,
    Row,
    Scatter,
    ScatterPanel,
    Section,
    Table,
    count,
    many,
    plain,
    rho,
)
from normlens.lens import SIDES
from normlens.statistics import Moments, Ranks, Sample
from normlens.studies.naming import CLEAR, sign
from normlens.studies.run import spelled
from normlens.studies.seen import Facts, Pass, Seen
from normlens.studies.study import Needs, Study
from normlens.studies.sums import Sums

DRAWN = 20_000  # occurrences kept for the picture
SIZE = 1024
STEPS = 20  # of the logarithm of the rank, for the running median
FEW = 5  # fewer points than this have no median worth drawing
TYPES = 12  # types on the page; the file has all


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """Spearman's ρ of the frequency rank with α and with ‖f‖, over so many points."""

    points: int
    weight: float
    norm: float


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """One row for each occurrence drawn, or for each type."""

    rank: Int[np.ndarray, " point"]
    weight: Float[np.ndarray, " point"]
    norm: Float[np.ndarray, " point"]


@dataclass(frozen=True, slots=True, eq=False)
class Frequency:
    """How α and ‖f‖ change with the frequency rank of a token."""

    kind: str
    source: str  # where the ranks come from
    names: tuple[str, ...]  # of the categories
    excluded: int  # tokens left out because they have no rank
    occurrences: Relation  # α: mean over heads, layers and the queries that see the token
    plain: Relation  # without special tokens
    types: Relation  # one point per type
    drawn: Points  # a seeded sample of occurrences
    drawn_category: Int[np.ndarray, " point"]
    drawn_special: Bool[np.ndarray, " point"]
    token: tuple[str, ...]  # of every type, most frequent first
    token_count: Int[np.ndarray, " type"]
    by_type: Points


class OccurrenceCounter:
    """Sums over the layers of a pass, then counts every occurrence once; a shard at a time."""

    def __init__(self, sums: Sums, ranks: FrequencyRanks, seed: int) -> None:
        self.sums, self.ranks, self.seed = sums, ranks, seed
        self.number = 0
        self.waiting: dict[str, list[Float[np.ndarray, "token column"]]] = {}
        self.layers: dict[str, tuple[int, Float[np.ndarray, "batch src"], Float[np.ndarray, "batch src"]]] = {}

    def see(self, seen: Seen) -> None:
        heads, norms, weights = self.layers.get(seen.kind, (0, 0.0, 0.0))
        here = seen.received.sum(axis=1, dtype=np.float64) / np.maximum(seen.seen_by, 1)
        norms, weights = norms + seen.norms.sum(axis=1, dtype=np.float64), weights + here
        self.layers[seen.kind] = heads + seen.norms.shape[1], np.asarray(norms), np.asarray(weights)

    def see_pass(self, passed: Pass) -> None:
        for kind, (heads, norms, weights) in self.layers.items():
            keys = passed.batch.groups[SIDES[kind][1]]
            real = keys.categories >= 0
            columns = keys.ids, weights / heads, norms / heads, keys.categories, keys.special
            self.waiting.setdefault(kind, []).append(np.stack([column[real] for column in columns], axis=1))
        self.layers, self.number = {}, passed.batch.number

    def shard(self) -> None:
        for kind, waiting in self.waiting.items():
            self._count(self.sums.of(kind), np.concatenate(waiting))
        self.waiting = {}

    def settle(self) -> None:
        pass

    def _count(self, sums: Sums, rows: Float[np.ndarray, "token column"]) -> None:
        ids, weight, norm, category, special = rows.T
        ids, size = ids.astype(np.int64), len(self.ranks.ranks)
        sums.add("types/norm", Moments.grouped(norm, ids, size))
        sums.add("types/weight", Moments.grouped(weight, ids, size))
        kept = ~self.ranks.excluded[ids]
        rank = self.ranks.ranks[ids][kept].astype(np.float64)
        is_plain = special[kept] == 0
        for name, values in (("norm", norm[kept]), ("weight", weight[kept])):
            sums.add(f"every/{name}", Ranks.of(rank, values, size=SIZE))
            sums.add(f"plain/{name}", Ranks.of(rank[is_plain], values[is_plain], size=SIZE))
        points = np.stack([rank, weight[kept], norm[kept], category[kept], special[kept]], axis=1)
        random = np.random.default_rng([self.seed, self.number])
        sums.add("points", Sample.of(points, size=DRAWN, random=random))


class FrequencyStudy(Study[Frequency]):
    name, title = "frequency", "Are rare tokens treated differently?"
    paper = "Kobayashi et al. (2020), Figure 6"
    needs = Needs(ranks=True, transformed=True)
    causal = (
        "This attention is causal: a query sees only itself and earlier tokens. Only the queries that can see a token "
        "count for the attention it receives."
    )
    question = (
        "Frequent tokens carry little information. A model can discount them by less attention (α) or by shorter "
        "vectors (‖f(x)‖). Rank 1 is the most frequent token, so a positive ρ means: more for rare tokens. Compare "
        "Figure 6 of the paper."
    )
    caution = (
        "the mean α of a token is about one over the number of keys, so it depends on the length of the sequence: "
        "tokens of short sequences receive more. Special tokens are few types of many occurrences that receive much; "
        "the paper counts them, and the ρ without them is beside it. Frequent types weigh heavily among occurrences; "
        "the ρ with one point per type avoids that."
    )
    method = (
        "For every occurrence of a token that has a rank: ‖f(x)‖ is the mean over all heads and layers; α is, in each "
        "head, the mean over the queries that can see the token, then the mean over heads and layers. ρ is Spearman’s, "
        "between rank and value, over all occurrences, with mean ranks for ties. For the ρ over types the occurrences "
        "of a type are averaged first.",
        f"|ρ| below {CLEAR:g}, or below 2/√n for n points, is called no clear relation.",
    )

    def counter(self, sums: Sums, run: Facts) -> OccurrenceCounter:
        assert run.ranks is not None
        return OccurrenceCounter(sums, run.ranks, run.seed)

    def result(self, sums: Sums, run: Facts) -> Frequency:
        ranks = run.ranks
        assert ranks is not None
        every, is_plain = ({part: sums[f"{who}/{part}"] for part in ("norm", "weight")} for who in ("every", "plain"))
        norms, weights = sums["types/norm"], sums["types/weight"]
        ids = np.flatnonzero((norms.count > 0) & ~ranks.excluded)
        ids = ids[np.lexsort((ids, ranks.ranks[ids]))]
        by_type = Points(ranks.ranks[ids], weights.mean[ids], norms.mean[ids])
        rows = sums["points"].rows
        tokenizer = None if run.lens is None else run.lens.subject.tokenizer
        return Frequency(
            kind=sums.kind,
            source=ranks.source,
            names=run.categories,
            excluded=int(norms.count.sum()) - every["norm"].pairs,
            occurrences=Relation(every["norm"].pairs, every["weight"].rho, every["norm"].rho),
            plain=Relation(is_plain["norm"].pairs, is_plain["weight"].rho, is_plain["norm"].rho),
            types=Relation(len(ids), _exact(by_type.rank, by_type.weight), _exact(by_type.rank, by_type.norm)),
            drawn=Points(rows[:, 0].astype(np.int64), rows[:, 1], rows[:, 2]),
            drawn_category=rows[:, 3].astype(np.int64),
            drawn_special=rows[:, 4] > 0,
            token=spelled(tokenizer, ids.tolist()),
            token_count=norms.count[ids],
            by_type=by_type,
        )

    def section(self, result: Frequency, run: Facts) -> Section:
        sentences = [*_related(result), *_by_type(result)]
        if result.excluded:
            whole = result.occurrences.points + result.excluded
            sentences.append(f"{count(result.excluded)} of {many(whole, 'token')} have no rank and were left out.")
        return Section(sentences, [*_figure(result), *_tables(result)], [f"Ranks: {result.source}."])


def _exact(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's ρ of numbers that are all at hand; NaN when either side is constant."""
    from scipy.stats import spearmanr

    varies = len(x) > 1 and np.ptp(x) > 0 and np.ptp(y) > 0
    return float(np.asarray(spearmanr(x, y))[0]) if varies else float("nan")


NORM = {1: "have longer vectors", -1: "have shorter vectors", 0: "have vectors of no clearly different norm"}
WEIGHT = {
    1: "receive more attention",
    -1: "receive less attention",
    0: "receive neither clearly more nor clearly less attention",
}


def _related(result: Frequency) -> list[str]:
    every, is_plain = result.occurrences, result.plain
    if not every.points:
        return ["No token has a frequency rank, so there is nothing to compare."]
    norm, weight = sign(every.norm, every.points), sign(every.weight, every.points)
    also = ["", ""]
    if is_plain.points < every.points:
        also = [
            f", {'not defined' if x != x else rho(x)} without special tokens" for x in (is_plain.norm, is_plain.weight)
        ]
    of_norm = f"(ρ = {rho(every.norm)} between rank and ‖f(x)‖{also[0]})"
    of_weight = f"(ρ = {rho(every.weight)} between rank and α{also[1]})"
    if norm is None and weight is None:
        return ["ρ with the frequency rank is not defined: all tokens have the same rank, or nothing varies."]
    if weight is None:
        return [f"Rarer tokens {NORM[norm or 0]} {of_norm}; for α, ρ is not defined."]
    if norm is None:
        return [f"Rarer tokens {WEIGHT[weight]} {of_weight}; for ‖f(x)‖, ρ is not defined."]
    if norm == weight == 0:
        return [f"Neither norm {of_norm} nor attention {of_weight} clearly depends on the frequency of a token."]
    link = "and" if norm == weight else "but"
    return [f"Rarer tokens {NORM[norm]} {of_norm}, {link} {WEIGHT[weight]} {of_weight}."]


def _by_type(result: Frequency) -> list[str]:
    said = []
    every, types = result.occurrences, result.types
    for symbol, value, over_all in (("‖f(x)‖", types.norm, every.norm), ("α", types.weight, every.weight)):
        now, before = sign(value, types.points), sign(over_all, every.points)
        if now is None:
            continue
        turned = f", unlike the {rho(over_all)} over all occurrences" if before == -now != 0 else ""
        said.append(f"{rho(value)} for {symbol}{turned}")
    return [f"With one point for each of {many(types.points, 'type')}, ρ is {' and '.join(said)}."] if said else []


RELATIONS = (
    Column("row", "", "text"),
    Column("points", "points", "count"),
    Column("rho_weight", "ρ(rank, α)", "rho"),
    Column("rho_norm", "ρ(rank, ‖f(x)‖)", "rho"),
)
BY_TYPE = (
    Column("token", "token", "token"),
    Column("rank", "rank", "count"),
    Column("occurrences", "occurrences", "count"),
    Column("weight", "mean α"),
    Column("transformed", "mean ‖f(x)‖"),
)


def _tables(result: Frequency) -> list[Exhibit]:
    """ρ over occurrences, with and without special tokens, and over types; every type; every point drawn."""
    named = (
        ("every occurrence", result.occurrences),
        ("without special tokens", result.plain),
        ("one point per type", result.types),
    )
    summary: list[Row] = [
        {"row": name, "points": one.points, "rho_weight": plain(one.weight), "rho_norm": plain(one.norm)}
        for name, one in named
    ]
    by_type, drawn = result.by_type, result.drawn
    types: list[Row] = [
        {
            "token": token,
            "rank": int(rank),
            "occurrences": int(occurrences),
            "weight": plain(weight),
            "transformed": plain(norm),
        }
        for token, rank, occurrences, weight, norm in zip(
            result.token, by_type.rank, result.token_count, by_type.weight, by_type.norm, strict=True
        )
    ]
    points: list[Row] = [
        {"category": result.names[category], "rank": int(rank), "weight": plain(weight), "transformed": plain(norm)}
        for category, rank, weight, norm in zip(
            result.drawn_category, drawn.rank, drawn.weight, drawn.norm, strict=True
        )
    ]
    return [
        Table("frequency", "Spearman’s ρ with the frequency rank", summary, RELATIONS),
        Table("frequency_types", "The most frequent types", types, BY_TYPE, shown=TYPES),
        Table("frequency_points", "points drawn", points, shown=0),
    ]


def _figure(result: Frequency) -> list[Exhibit]:
    """Two panels of points with a running median."""
    drawn, every = result.drawn, result.occurrences
    points = len(drawn.rank)
    if not points:
        return []
    part = "" if points >= every.points else f", {count(points)} of {count(every.points)} drawn at random"
    above = drawn.weight[drawn.weight > 0]
    floor = float(above.min()) if above.size else 1e-6
    sizes = np.bincount(result.drawn_category, minlength=len(result.names))
    order = sorted(np.flatnonzero(sizes).tolist(), key=lambda index: -int(sizes[index]))  # the few above the many
    panels = []
    for values, symbol, value, without, name in (
        (np.maximum(drawn.weight, floor), "α", every.weight, result.plain.weight, "mean α received (log)"),
        (drawn.norm, "‖f(x)‖", every.norm, result.plain.norm, "mean ‖f(x)‖"),
    ):
        also = f" ({rho(without)} without special tokens)" if result.plain.points < every.points else ""
        clouds = [
            Cloud(result.names[index], drawn.rank[own].astype(float), values[own])
            for index in order
            if (own := result.drawn_category == index) is not None
        ]
        line = running_median(drawn.rank, values, ~result.drawn_special)
        panels.append(
            ScatterPanel(
                f"{symbol}, ρ = {rho(value)}{also}", tuple(clouds), line, name, "log" if symbol == "α" else "plain"
            )
        )
    return [
        Scatter(
            "frequency",
            f"A point is one occurrence of a token{part}. From left to right tokens get rarer (logarithmic). Left, the "
            "attention α it receives (logarithmic); right, ‖f(x)‖; both are means over heads and layers. The line "
            f"joins the medians of {STEPS} equal steps of the logarithm of the rank where a step has at least {FEW} "
            f"points{', special tokens left out' if result.drawn_special.any() else ''}.",
            f"Two panels of {count(points)} points over frequency rank, 1 to {count(int(drawn.rank.max()))}: ρ of rank "
            f"and α is {rho(every.weight)}, ρ of rank and ‖f(x)‖ is {rho(every.norm)}.",
            tuple(panels),
            x="frequency rank (log): rarer to the right",
            x_scale="log",
            names=result.names,
        )
    ]


def running_median(
    ranks: Int[np.ndarray, " point"], values: Float[np.ndarray, " point"], kept: Bool[np.ndarray, " point"]
) -> tuple[Float[np.ndarray, " step"], Float[np.ndarray, " step"]]:
    """The median of the kept points in each of equal steps of the logarithm of the rank; a gap where there are few."""
    place = np.log(np.maximum(ranks, 1))
    steps = np.minimum(((place - place.min()) / max(np.ptp(place), 1e-9) * STEPS).astype(int), STEPS - 1)
    middles = np.full((2, STEPS), np.nan)
    for step in range(STEPS):
        group = (steps == step) & kept
        if group.sum() >= FEW:
            middles[:, step] = np.exp(place[group].mean()), np.median(values[group])
    return middles[0], middles[1]
