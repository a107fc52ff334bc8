"""Do attention weight and norm cancel? Table 2 and Figure 5 of the 2020 paper.

Spearman's ρ between α and ‖f‖: every pair (layer, head, sequence, query, key) whose key is in the category counts once.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from normlens.exhibits import (
    Cloud,
    Column,
    Exhibit,
    Row,
    Scatter,
    ScatterPanel,
    Section,
    Strip,
    StripPanel,
    Table,
    count,
    listing,
    many,
    number,
    percent,
    plain,
    rho,
    span,
)
from normlens.statistics import Ranks, Sample, pooled
from normlens.studies.naming import CLEAR, noun, sign
from normlens.studies.seen import Facts, Pass, Seen
from normlens.studies.study import Needs, Study
from normlens.studies.sums import Sums
from normlens.studies.tally import Tally

RATE = 0.01  # share of the pairs drawn for Figure 5
DRAWN = 5000  # points kept of a category
CONSTANT = 1e-5  # ‖f‖ that differ by less, relative, differ by rounding alone
BLURRED = 1e-3  # 2 · 5e-4: more variance than this lost to codes, and ρ is not good to 5e-4


@dataclass(frozen=True, slots=True)
class Constant:
    """Heads of one layer whose ρ is not defined for a category, since one side is the same in all its pairs."""

    category: int
    layer: int  # its number
    heads: int
    side: str  # "‖f(x)‖" or "α"


@dataclass(frozen=True, slots=True, eq=False)
class Correlation:
    """Spearman's ρ between α and ‖f‖, pooled and head by head, and a sample of the pairs."""

    kind: str
    names: tuple[str, ...]
    layers: tuple[int, ...]
    pairs: Int[np.ndarray, " category"]  # (layer, head, query, key) pairs
    rho: Float[np.ndarray, " category"]  # all heads and layers pooled; NaN when one side is constant or absent
    rho_heads: Float[np.ndarray, "category layer head"]
    sample_category: Int[np.ndarray, " point"]
    sample_weight: Float[np.ndarray, " point"]  # α
    sample_norm: Float[np.ndarray, " point"]  # ‖f‖
    constant: tuple[Constant, ...]  # why ρ of some heads is NaN though they have pairs
    notes: tuple[str, ...]

    def heads(self, index: int) -> Float[np.ndarray, " head"]:
        """ρ of the heads that have one."""
        return self.rho_heads[index][np.isfinite(self.rho_heads[index])]

    def same_sign(self, index: int) -> int:
        """How many heads share the sign of the pooled ρ."""
        return int((np.sign(self.heads(index)) == np.sign(self.rho[index])).sum())


class PairCounter:
    """Counts every pair into rank tables, and draws a share of them."""

    def __init__(self, sums: Sums, seed: int) -> None:
        self.sums, self.seed = sums, seed
        self.tallies: dict[tuple[str, int], Tally] = {}

    def see(self, seen: Seen) -> None:
        block = seen.kind, seen.layer
        if block not in self.tallies:
            tables = _tables_of(self.sums.of(seen.kind))
            self.tallies[block] = Tally({(h, c): table for (n, h, c), table in tables.items() if n == seen.layer})
        self.tallies[block].add(seen)
        self._draw(seen)

    def see_pass(self, passed: Pass) -> None:
        pass

    def shard(self) -> None:
        pass

    def settle(self) -> None:
        for (kind, layer), tally in self.tallies.items():
            for (head, category), table in tally.tables().items():
                self.sums.of(kind)[f"{layer}/{head}/{category}"] = table

    def _draw(self, seen: Seen) -> None:
        """A share of the pairs, the same ones whenever the seed and the batch are the same.

        What could not stay in a full sample, for its priority, is not drawn in the first place.
        """
        random = np.random.default_rng([self.seed, seen.number, seen.layer])
        heads, queries = seen.weights.shape[1:3]
        sums = self.sums.of(seen.kind)
        for category in np.unique(seen.categories[seen.real]).tolist():
            known = sums.get(f"sample/{category}")
            ceiling = 1.0 if known is None or len(known.rows) < DRAWN else float(known.priority[-1])
            sequence, position = np.nonzero(seen.categories == category)
            size = random.poisson(RATE * ceiling * len(sequence) * heads * queries)
            key, head, query = (random.integers(0, limit, size) for limit in (len(sequence), heads, queries))
            at = sequence[key], head, query, position[key]
            if seen.visible is not None:
                kept = seen.visible.cpu().numpy()[at[0], at[2], at[3]]
                at = tuple(index[kept] for index in at)
            weights = seen.weights[tuple(torch.from_numpy(index) for index in at)].cpu().numpy()
            rows = np.stack([weights, seen.norms[at[0], at[1], at[3]]], axis=1)
            sums.add(f"sample/{category}", Sample.of(rows, size=DRAWN, random=random, ceiling=ceiling))


class CorrelationStudy(Study[Correlation]):
    name, title = "correlation", "Do attention weight and norm cancel?"
    paper = "Kobayashi et al. (2020), Table 2 and Figure 5"
    needs = Needs(transformed=True)
    question = (
        "The attention of a head always sums to 1, also where it has nothing to fetch. It can fall on tokens with "
        "short vectors: then ρ between α and ‖f(x)‖ is negative, and the contribution is small. Compare Table 2 and "
        "Figure 5 of the paper."
    )
    caution = (
        "pooling mixes heads of different scale. A head with small weights and long vectors beside one with large "
        "weights and short vectors makes ρ negative even if within each head nothing cancels; so ρ of each head is "
        "shown too."
    )
    method = (
        "One pair for every layer, head, sequence, query and key: α of the query for the key, and ‖f(x)‖ of the key, "
        "the same for every query. All pairs whose key is in the category go into one Spearman’s ρ, with mean ranks "
        "for ties; the ρ of a head takes the pairs of that head alone. It is not defined when α or ‖f(x)‖ is the same "
        "in all of them: in the first layer, for instance, when a token always has the same position.",
        f"|ρ| below {CLEAR:g}, or below 2/√n for n pairs, is called no clear relation. With so many pairs nearly every "
        "ρ is “significant”; what counts is its size. A pooled ρ is said to be between heads rather than within them "
        f"when the median ρ of the single heads is below {CLEAR:g}, or when no more than half of them share its sign.",
    )

    def counter(self, sums: Sums, run: Facts) -> PairCounter:
        return PairCounter(sums, run.seed)

    def result(self, sums: Sums, run: Facts) -> Correlation:
        tables, names = _tables_of(sums), run.categories
        layers = tuple(sorted({layer for layer, _, _ in tables}))
        rho_heads = np.full((len(names), len(layers), 1 + max(head for _, head, _ in tables)), np.nan)
        constant: Counter[tuple[int, int, str]] = Counter()
        blurred = 0
        for (layer, head, category), table in sorted(tables.items()):
            alone, side = pooled([table]), _constant(table)
            if side is None:
                rho_heads[category, layers.index(layer), head] = alone.rho
            elif table.pairs:
                constant[category, layer, side] += 1
            blurred += alone.blur > BLURRED
        every = [pooled([table for (_, _, c), table in tables.items() if c == index]) for index in range(len(names))]
        samples = [sums.get(f"sample/{category}") for category in range(len(names))]
        rows = [np.zeros((0, 2)) if sample is None else sample.rows for sample in samples]
        coarse = [name for name, one in zip(names, every, strict=True) if one.blur > BLURRED]
        vague = [f"{blurred} heads"] * bool(blurred) + ([f"all heads of {', '.join(coarse)}"] if coarse else [])
        return Correlation(
            kind=sums.kind,
            names=names,
            layers=layers,
            pairs=np.array([one.pairs for one in every]),
            rho=np.array([one.rho for one in every]),
            rho_heads=rho_heads,
            sample_category=np.repeat(np.arange(len(names)), [len(part) for part in rows]),
            sample_weight=np.concatenate(rows)[:, 0],
            sample_norm=np.concatenate(rows)[:, 1],
            constant=tuple(Constant(c, layer, heads, side) for (c, layer, side), heads in sorted(constant.items())),
            notes=tuple(f"ρ of {who} is approximate: the numbers are too unevenly spread for 5e-4." for who in vague),
        )

    def section(self, result: Correlation, run: Facts) -> Section:
        return Section(_sentences(result), [*_strip(result), *_scatter(result), *_tables(result)], result.notes)


def _tables_of(sums: Sums) -> dict[tuple[int, int, int], Ranks]:
    """Rank tables by (layer, head, category)."""
    names = [name for name in sums if not name.startswith("sample/")]
    return {(int(a), int(b), int(c)): sums[name] for name in names for a, b, c in [name.split("/")]}


def _constant(table: Ranks) -> str | None:
    """Which side of the pairs does not vary, so that no rank can tell them apart."""
    norms = table.x_values
    if not len(norms) or norms[-1] - norms[0] <= CONSTANT * norms[-1]:
        return "‖f(x)‖"
    return "α" if len(table.y_values) < 2 else None


def _sentences(result: Correlation) -> list[str]:
    """Negative, positive, no clear relation, not defined; then the same head by head."""
    signs = {index: sign(float(result.rho[index]), int(result.pairs[index])) for index in range(len(result.names))}
    order = sorted(signs, key=lambda index: (-abs(result.rho[index]) if signs[index] is not None else 0.0, index))
    against, unclear, along, undefined = ([i for i in order if signs[i] == what] for what in (-1, 0, 1, None))
    lines = []
    if against:
        lines.append(
            f"α and ‖f(x)‖ are negatively related for {_rhos(result, against)}: the more attention such a token "
            f"receives, the shorter its vector tends to be.{_between(result, against)}"
        )
    if along:
        lines.append(
            f"α and ‖f(x)‖ are positively related for {_rhos(result, along)}: the more attention such a token "
            f"receives, the longer its vector tends to be.{_between(result, along)}"
        )
    if unclear:
        lines.append(f"There is no clear relation between α and ‖f(x)‖ for {_rhos(result, unclear)}.")
    return [*lines, *_head_by_head(result, against + along), *_undefined(result, undefined), *_constants(result)]


def _rhos(result: Correlation, which: list[int]) -> str:
    first, *others = which
    said = [f"{noun(result.names[first])} (ρ = {rho(result.rho[first])})"]
    return listing(said + [f"{noun(result.names[index])} ({rho(result.rho[index])})" for index in others])


def _between(result: Correlation, which: list[int]) -> str:
    """The caveat that belongs to a pooled ρ which single heads do not have: it must never be read without."""
    mixed = []
    for index in which:
        heads = result.heads(index)
        if heads.size > 1 and (2 * result.same_sign(index) <= heads.size or abs(np.median(heads)) < CLEAR):
            middle = rho(float(np.median(heads)))
            mixed.append(f"{noun(result.names[index])} ({'median of single heads ' if not mixed else ''}{middle})")
    return f" But for {listing(mixed)} this is a difference between heads rather than within them." if mixed else ""


def _head_by_head(result: Correlation, which: list[int]) -> list[str]:
    parts = [
        f"{count(result.same_sign(index))} of {count(heads.size)} heads for {noun(result.names[index])} "
        f"(median {rho(float(np.median(heads)))})"
        for index in which
        if (heads := result.heads(index)).size > 1
    ]
    return [f"Head by head, ρ has the same sign in {listing(parts)}."] if parts else []


def _undefined(result: Correlation, which: list[int]) -> list[str]:
    empty = [noun(result.names[index]) for index in which if not result.pairs[index]]
    same = [noun(result.names[index]) for index in which if result.pairs[index]]
    lines = [f"ρ is not defined for {listing(empty)}: no token fell into it."] if empty else []
    return lines + (
        [f"ρ is not defined for {listing(same)}: α or ‖f(x)‖ is the same in all its pairs."] if same else []
    )


def _constants(result: Correlation) -> list[str]:
    """Which single heads have no ρ, and why, a sentence for each category and side."""
    lines = []
    for category, side in dict.fromkeys((one.category, one.side) for one in result.constant):
        here = [one for one in result.constant if (one.category, one.side) == (category, side)]
        heads, layers = many(sum(one.heads for one in here), "head"), [one.layer for one in here]
        where = span(layers) if layers[-1] - layers[0] == len(layers) - 1 else f"layers {listing([*map(str, layers)])}"
        name = noun(result.names[category])
        lines.append(f"For {name} ρ is not defined in {heads} of {where}: {side} is the same in all pairs there.")
    return lines


COLUMNS = (
    Column("category", "category", "text"),
    Column("pairs", "pairs", "count"),
    Column("rho", "ρ, pooled", "rho"),
    Column("rho_heads", "heads", "count"),
    Column("rho_negative", "with ρ < 0", "count"),
    Column("rho_median", "median ρ", "rho"),
)


def _tables(result: Correlation) -> list[Exhibit]:
    """One row per category; per category and head; per point of the scatter plot."""
    summary: list[Row] = []
    for index, name in enumerate(result.names):
        heads = result.heads(index)
        summary.append(
            {
                "category": name,
                "pairs": int(result.pairs[index]),
                "rho": plain(result.rho[index]),
                "rho_heads": int(heads.size),
                "rho_negative": int((heads < 0).sum()) if heads.size else None,
                "rho_median": plain(np.median(heads)) if heads.size else None,
            }
        )
    by_head: list[Row] = [
        {"category": name, "layer": layer, "head": head, "rho": plain(result.rho_heads[index, row, head])}
        for index, name in enumerate(result.names)
        for row, layer in enumerate(result.layers)
        for head in range(result.rho_heads.shape[2])
        if np.isfinite(result.rho_heads[index, row, head])
    ]
    points: list[Row] = [
        {"category": result.names[category], "weight": plain(weight), "transformed": plain(norm)}
        for category, weight, norm in zip(result.sample_category, result.sample_weight, result.sample_norm, strict=True)
    ]
    title = "Spearman’s ρ between α and ‖f(x)‖, with all heads pooled, and head by head"
    return [
        Table("correlation", title, summary, COLUMNS),
        Table("correlation_heads", "every head", by_head, shown=0),
        Table("correlation_points", "points drawn", points, shown=0),
    ]


def _strip(result: Correlation) -> list[Exhibit]:
    there = [index for index in range(len(result.names)) if result.heads(index).size]
    if not there or result.rho_heads[0].size < 2:  # one head needs no strip
        return []
    heads = result.rho_heads[there]
    said = [f"{noun(result.names[i])} median {rho(float(np.nanmedian(result.rho_heads[i])))}" for i in there]
    panels = [
        StripPanel(
            result.names[index],
            result.rho_heads[index],
            line=float(result.rho[index]) if np.isfinite(result.rho[index]) else None,
            label=f"pooled {rho(result.rho[index])}",
        )
        for index in there
    ]
    return [
        Strip(
            "correlation_heads",
            "Spearman’s ρ between α and ‖f(x)‖ within each head. A dot is a head, a bar the median of its layer, the "
            "dashed line ρ with all heads pooled. Below 0 the two cancel in part.",
            f"One panel per category, dots over layers, ρ from {rho(float(np.nanmin(heads)))} to "
            f"{rho(float(np.nanmax(heads)))}: {listing(said)}.",
            tuple(panels),
            ticks=tuple(map(str, result.layers)),
            y="ρ of α and ‖f(x)‖",
            limits=(-1.03, 1.03),
            names=result.names,
        )
    ]


def _scatter(result: Correlation) -> list[Exhibit]:
    there = [index for index in range(len(result.names)) if (result.sample_category == index).any()]
    if not there:
        return []
    floor, points, pairs = _floor(result), len(result.sample_weight), int(result.pairs.sum())
    below = float((result.sample_weight < floor).mean())
    edge = f" Weights below the axis ({percent(below)}) are drawn at its left end." if below > 0 else ""
    which = "all there are" if points >= pairs else f"drawn at random from {count(pairs)} in all heads and layers"
    weight, norm = np.maximum(result.sample_weight, floor), result.sample_norm
    panels = [
        ScatterPanel(
            result.names[index],
            (
                Cloud("others", weight[~own], norm[~own], pale=True),
                Cloud(result.names[index], weight[own], norm[own]),
            ),
            y="‖f(x)‖",
        )
        for index in there
        if (own := result.sample_category == index) is not None
    ]
    return [
        Scatter(
            "scatter",
            f"α (logarithmic) against ‖f(x)‖, {count(points)} pairs, {which}. One panel per category, the other "
            f"categories pale behind it.{edge}",
            f"One panel per category, {count(points)} points, α from {number(result.sample_weight.min(), 1)} to "
            f"{number(result.sample_weight.max(), 2)}, ‖f(x)‖ from {number(norm.min(), 2)} to {number(norm.max(), 2)}.",
            tuple(panels),
            x="α (log)",
            x_scale="log",
            x_limits=(0.8 * floor, 1.25),
            names=result.names,
            shared=True,
        )
    ]


def _floor(result: Correlation) -> float:
    """A power of ten that leaves out at most one weight in two hundred, and every weight of 0."""
    above = result.sample_weight[result.sample_weight > 0]
    low = float(np.quantile(above, 0.005)) if above.size else 1e-3
    return 10.0 ** min(max(math.floor(math.log10(low)), -8), -2)
