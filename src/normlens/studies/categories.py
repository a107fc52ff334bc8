"""What attention does each category of tokens receive, and what does it contribute? Figures 3, 4, 10, 11 and 12.

Macro: within a sequence, α (or ‖αf‖) is summed over the tokens of the category and averaged over all queries; then
every sequence counts once, whatever its length; then, for Figure 3, heads are averaged. ‖f‖ is averaged over the tokens
of the category in a sequence, then over the sequences that have any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

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
    hatched,
    listing,
    many,
    number,
    percent,
    plain,
    slug,
    span,
    top_of,
)
from normlens.statistics import Moments, Statistic
from normlens.studies.means import mean_over
from normlens.studies.naming import noun, subject
from normlens.studies.seen import Facts, Seen
from normlens.studies.study import Study
from normlens.studies.sums import Sums, padded
from normlens.views import label, visible_line

CLEAR = 0.05  # five points between the share of attention and the share of contributions


@dataclass(frozen=True, slots=True, eq=False)
class Categories:
    """What each category receives (α) and contributes (‖αf‖); NaN where no token fell into it or there is no head."""

    kind: str
    names: tuple[str, ...]
    layers: tuple[int, ...]
    sequences: Int[np.ndarray, " category"]  # sequences with at least one token of the category
    total: int  # all sequences
    tokens: Int[np.ndarray, " category"]  # tokens of the category in the corpus
    weights: Float[np.ndarray, "category layer head"]  # Σ over its tokens of α; mean over queries, then sequences
    norms: Float[np.ndarray, "category layer head"]  # the same of ‖αf‖
    transformed: Float[np.ndarray, "category layer head"]  # mean ‖f‖ of its tokens, per sequence, then over sequences
    special: Mapping[str, int]  # special tokens that no category but "other" took, and how many of each

    @property
    def present(self) -> list[int]:
        """The categories some token fell into."""
        return [index for index, tokens in enumerate(self.tokens) if tokens > 0]

    @property
    def weight_shares(self) -> Float[np.ndarray, "category layer"]:
        """Share of the attention that tokens receive, mean over heads (Figure 3a). Adds up to 1."""
        weights = mean_over(self.weights)
        total = np.where(np.isfinite(weights), weights, 0.0).sum(axis=0)
        with_sink = (total > 0) & ~np.isclose(total, 1, rtol=1e-4)  # a learned one receives the rest
        return weights / np.where(with_sink, total, 1.0)

    @property
    def norm_shares(self) -> Float[np.ndarray, "category layer"]:
        """Share of the contributions: ‖αf‖ of a category over that of all, means over heads. Adds up to 1 too."""
        norms = mean_over(self.norms)
        total = np.where(np.isfinite(norms), norms, 0.0).sum(axis=0)
        return np.where(total > 0, norms / np.where(total > 0, total, 1.0), np.nan)


class CategoriesStudy(Study[Categories]):
    name, title = "categories", "Which tokens receive attention, and which contribute?"
    paper = "Kobayashi et al. (2020), Figures 3, 4, 10, 11 and 12"
    headlines = 2
    question = (
        "Tokens are put into categories. What share of the attention does each category receive, and what share of the "
        "contributions ‖αf(x)‖ does it make? Compare Figures 3, 4, 10, 11 and 12 of the paper."
    )
    caution = (
        "these are totals of a category, not means per token. Weights and ‖αf(x)‖ are summed over its tokens, so two "
        "[SEP] in a sequence count twice, and a category of many tokens has more of both for that alone. A share of "
        "the contributions compares sums of norms; vectors of different directions may still cancel in the block’s "
        "output."
    )
    method = (
        "For each sequence, layer, head and category: for each query, the sum over the keys of the category of α (or "
        "of ‖αf(x)‖); then the mean over the queries, all real tokens; then the mean over sequences, each counting the "
        "same whatever its length; then, for the lines over layers, the mean over heads. The shares of α add up to 1 "
        "in every layer. The share of the contributions is ‖αf(x)‖ of the category over that of all categories, layer "
        "by layer; the table has means over layers, so that a layer of long vectors does not outweigh the others.",
        "‖f(x)‖ in the maps is the mean over the tokens of the category in a sequence, then over the sequences that "
        "have such a token. The scale of ‖f(x)‖ is the same for all categories, the scale of α is each map’s own.",
        "The sentences name the category whose share of attention is furthest above its share of the contributions, "
        "and the layers around its peak in which the difference is at least half as large. A difference below "
        f"{100 * CLEAR:g} points is not called clear.",
    )

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        members = seen.categories[:, :, None] == np.arange(len(seen.run.categories))  # (batch, src, category)
        tokens = members.sum(axis=1)
        per_query = seen.received.astype(np.float64) / seen.queries[:, None, None]
        norms = seen.received_norms(np.float64, per_query=True)
        parts = {"weights": per_query, "norms": norms, "transformed": np.nan_to_num(seen.norms.astype(np.float64))}
        sums = {name: np.matmul(part, members.astype(np.float64)).swapaxes(1, 2) for name, part in parts.items()}
        known = seen.block.no_transformed is None
        there = np.broadcast_to((tokens > 0)[:, :, None] & known, sums["transformed"].shape)
        return {
            "weights": Moments.of(sums["weights"]),
            "norms": Moments.of(sums["norms"]),
            "transformed": Moments.of(sums["transformed"] / np.maximum(tokens, 1)[:, :, None], there),
            "tokens": Moments.of(tokens.astype(np.float64)),
        }

    def result(self, sums: Sums, run: Facts) -> Categories:
        layers, weights = sums.by_layer("weights")
        norms, transformed, tokens = (sums.by_layer(name)[1] for name in ("norms", "transformed", "tokens"))
        there = [np.where(m.count > 0, m.mean, np.nan) for m in transformed]
        return Categories(
            kind=sums.kind,
            names=run.categories,
            layers=layers,
            sequences=transformed[0].count[:, 0],
            total=int(tokens[0].count[0]),
            tokens=np.rint(tokens[0].mean * tokens[0].count).astype(np.int64),
            weights=padded([m.mean for m in weights]).swapaxes(0, 1),
            norms=padded([m.mean for m in norms]).swapaxes(0, 1),
            transformed=padded(there).swapaxes(0, 1),
            special=run.uncategorised.get(sums.kind, {}),
        )

    def section(self, result: Categories, run: Facts) -> Section:
        rare = [
            f"{name} in {sequences} of {result.total}"
            for name, sequences in zip(result.names, result.sequences, strict=True)
            if 0 < sequences < result.total
        ]
        notes = [f"Not every sequence has a token of every category: {'; '.join(rare)}."] if rare else []
        sentences = [*_compared(result), *_special(result)]
        return Section(sentences, [*_figures(result), *_tables(result)], notes)


def _compared(result: Categories) -> list[str]:
    """Which category receives more than it contributes, which contributes more, and which is absent."""
    present = result.present
    gap = result.weight_shares - result.norm_shares
    absent = [noun(name) for index, name in enumerate(result.names) if index not in present]
    missing = [f"No token of the corpus fell into {listing(absent)}."] if absent else []
    if not present or not np.isfinite(gap[present]).any():
        return missing
    if len(present) == 1:
        return [f"Every token fell into {noun(result.names[present[0]])}, so there is nothing to compare.", *missing]
    kept = np.asarray(np.isfinite(gap[present]).all(axis=0))
    empty = [layer for layer, stays in zip(result.layers, kept, strict=True) if not stays]
    missing += [f"In {span(empty)} every contribution is 0, so there are no shares of them."] if empty else []
    result, gap = _only(result, kept), gap[:, kept]
    return [_receiving(result, gap), *_contributing(result, gap), *missing]


def _only(result: Categories, kept: Bool[np.ndarray, " layer"]) -> Categories:
    layers = tuple(layer for layer, stays in zip(result.layers, kept, strict=True) if stays)
    arrays = {name: getattr(result, name)[:, kept] for name in ("weights", "norms", "transformed")}
    return replace(result, layers=layers, **arrays)


def _receiving(result: Categories, gap: Float[np.ndarray, "category layer"]) -> str:
    runs = {index: _run(gap[index]) for index in result.present}
    most = max(runs, key=lambda index: (float(gap[index, runs[index]].mean()), -index))
    who, where = subject(result.names[most]), span([result.layers[row] for row in runs[most]])
    weight, norm = _shares(result, most, runs[most])
    if gap[most].max() < CLEAR:
        return (
            "No category receives clearly more of the attention than it makes of the contributions: the largest "
            f"difference is that of {noun(result.names[most])} in {where}, {percent(weight)} of the attention against "
            f"{percent(norm)} of the contributions."
        )
    part = f"{percent(_part(result, most))} of all tokens"
    received = f"{who.name} ({part}) {who.verb('receive')} {percent(weight)} of the attention"
    contributed = f"{who.verb('make')} {percent(norm)} of the contributions"
    if len(runs[most]) == len(result.layers):
        over = f" in {where}" if len(result.layers) == 1 else ", over all layers"
        return f"{received} and {contributed}{over}."
    all_weight, all_norm = _shares(result, most, list(range(len(result.layers))))
    rest = f"over all layers: {percent(all_weight)} and {percent(all_norm)}"
    return f"{received} in {where} and {contributed} there ({rest})."


def _contributing(result: Categories, gap: Float[np.ndarray, "category layer"]) -> list[str]:
    least = min(result.present, key=lambda index: float(gap[index].mean()))
    if gap[least].mean() > -CLEAR:
        return []
    who = subject(result.names[least])
    weight, norm = _shares(result, least, list(range(len(result.layers))))
    over = "" if len(result.layers) == 1 else ", over all layers"
    return [
        f"{who.name} ({percent(_part(result, least))} of all tokens) {who.verb('receive')} {percent(weight)} of the "
        f"attention and {who.verb('make')} {percent(norm)} of the contributions{over}."
    ]


def _special(result: Categories) -> list[str]:
    if not result.special:
        return []
    tokens = listing([visible_line(token) for token in result.special])
    return [
        f"{noun(result.names[-1])} holds the special token{'s' if len(result.special) > 1 else ''} {tokens}, "
        f"{count(sum(result.special.values()))} of its {many(int(result.tokens[-1]), 'token')}, which no other "
        "category takes. To keep special tokens apart, add --category 'special=@special', in Python "
        '"special": "@special".'
    ]


def _run(gap: Float[np.ndarray, " layer"]) -> list[int]:
    """The layers around the largest difference in which it is at least half as large."""
    peak = int(gap.argmax())
    first = last = peak
    while first > 0 and gap[first - 1] >= gap[peak] / 2 > 0:
        first -= 1
    while last < len(gap) - 1 and gap[last + 1] >= gap[peak] / 2 > 0:
        last += 1
    return list(range(first, last + 1))


def _shares(result: Categories, category: int, rows: list[int]) -> tuple[float, float]:
    return float(result.weight_shares[category, rows].mean()), float(result.norm_shares[category, rows].mean())


def _part(result: Categories, category: int) -> float:
    return float(result.tokens[category] / result.tokens.sum())


COLUMNS = (
    Column("category", "category", "text"),
    Column("tokens", "tokens", "count"),
    Column("sequences", "sequences", "count"),
    Column("weight_share", "share of α", "percent"),
    Column("norm_share", "share of ‖αf(x)‖", "percent"),
    Column("transformed", "mean ‖f(x)‖"),
)


def _tables(result: Categories) -> list[Exhibit]:
    """One row per category; per category and layer (Figure 3); per category and head (Figures 4, 10, 11, 12)."""
    weights, shares, norms = result.weight_shares, result.norm_shares, mean_over(result.norms)
    summary: list[Row] = [
        {
            "category": name,
            "tokens": int(result.tokens[index]),
            "sequences": int(result.sequences[index]),
            "weight_share": plain(mean_over(weights[index])),
            "norm_share": plain(mean_over(shares[index])),
            "transformed": plain(mean_over(mean_over(result.transformed[index]))),
        }
        for index, name in enumerate(result.names)
    ]
    by_layer: list[Row] = [
        {
            "category": result.names[index],
            "layer": layer,
            "weight": plain(weights[index, row]),
            "norm": plain(norms[index, row]),
            "norm_share": plain(shares[index, row]),
        }
        for index in result.present
        for row, layer in enumerate(result.layers)
    ]
    by_head: list[Row] = [
        {
            "category": result.names[index],
            "layer": layer,
            "head": head,
            "weight": plain(result.weights[index, row, head]),
            "norm": plain(result.norms[index, row, head]),
            "transformed": plain(result.transformed[index, row, head]),
        }
        for index in result.present
        for row, layer in enumerate(result.layers)
        for head in range(result.weights.shape[2])
        if np.isfinite(result.weights[index, row, head])
    ]
    title = "Attention received and contributions made by each category, means over layers and heads"
    return [
        Table("categories", title, summary, COLUMNS),
        Table("categories_layers", "every layer", by_layer, shown=0),
        Table("categories_heads", "every head", by_head, shown=0),
    ]


def _figures(result: Categories) -> list[Exhibit]:
    """Lines over layers, then two maps for each category."""
    present = result.present
    if not present:
        return []
    maps = present if result.weights[0].size > 1 else []  # one head needs no map
    return [_lines(result, present), *(_maps(result, index) for index in maps)]


def _lines(result: Categories, present: list[int]) -> Lines:
    weights, shares = mean_over(result.weight_shares), mean_over(result.norm_shares)
    said = [f"{noun(result.names[c])} {percent(weights[c])} of α and {percent(shares[c])} of ‖αf(x)‖" for c in present]
    panels = (
        ("α, sum per category", result.weight_shares, 1.0),
        ("‖αf(x)‖, sum per category", mean_over(result.norms), None),
    )
    return Lines(
        "categories",
        "Left, the attention α that the tokens of each category receive together: the lines of a layer add up to 1. "
        "Right, what they contribute, ‖αf(x)‖, which has no fixed sum. Both are totals of a category, not means per "
        "token.",
        f"Two panels of lines over layers. Means over the layers: {listing(said)}.",
        tuple(
            LinePanel(title, tuple(Series(result.names[index], values[index]) for index in present), top=top)
            for title, values, top in panels
        ),
        ticks=tuple(map(str, result.layers)),
        names=result.names,
    )


def _maps(result: Categories, index: int) -> Grids:
    weight, norm = result.weights[index], result.transformed[index]
    name, short = noun(result.names[index]), label(result.names[index], 18)
    top = top_of(result.transformed)
    means = [float(mean_over(values.reshape(-1))) for values in (weight, norm)]
    return Grids(
        f"heads_{index}_{slug(result.names[index])}".rstrip("_"),
        f"{name}, head by head. Left, the attention α its tokens receive together (scale of this map: 0 to "
        f"{number(top_of(weight))}); right, the mean ‖f(x)‖ of its tokens (the same scale for every category: 0 to "
        f"{number(top)}). Where one is dark and the other pale they cancel.{hatched(weight)}",
        f"Two maps, layer by head, for {name}: α, mean {number(means[0])}, and ‖f(x)‖, mean {number(means[1])}, "
        f"largest {number(top_of(norm))}.",
        (
            Grid(f"{short}: α received", weight, "weight", top_of(weight)),
            Grid(f"{short}: ‖f(x)‖", norm, "norm", top),
        ),
        tuple(map(str, result.layers)),
    )
