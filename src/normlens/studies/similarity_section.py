"""What the similarity study found, in sentences, figures and tables. When a claim holds is our rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from normlens.exhibits import (
    Column,
    Exhibit,
    Grid,
    Grids,
    LinePanel,
    Lines,
    Row,
    Series,
    Strip,
    StripPanel,
    Table,
    count,
    hatched,
    head_name,
    listing,
    number,
    percent,
    plain,
    span,
    top_of,
)
from normlens.studies.means import extremes, mean_over
from normlens.studies.per_head import MEASURES, HeadColumn, PerHead, by_measure, texts
from normlens.views import visible

if TYPE_CHECKING:
    from normlens.studies.similarity import Similarity

CLEAR = 0.1  # a change or a ratio counts from ten percent on
REPEATING = 5.0  # a head pairs copies when it does so this many times as often as chance
SEPARATORS = ("sentence ends", "special separators")


def sentences(result: Similarity) -> list[str]:
    """One for each claim of the paper: whether this model shows it, and the numbers."""
    if not np.nansum(result.high):
        return ["No text has two tokens that may be compared, so there are no similarities.", _separators(result)]
    return [
        _distance(result),
        _same_sentence(result),
        _repetition(result),
        *_dominant(result),
        _separators(result),
    ]


def _ends(layers: tuple[int, ...]) -> tuple[slice, slice]:
    """The first and the last third of the layers, one at least."""
    size = max(1, len(layers) // 3)
    return slice(0, size), slice(len(layers) - size, len(layers))


def _compared(result: Similarity, values: Float[np.ndarray, " layer"]) -> tuple[float, float, str, str]:
    first, last = _ends(result.layers)
    names = [span(list(result.layers[part])) for part in (first, last)]
    return float(mean_over(values[first])), float(mean_over(values[last])), names[0], names[1]


def _distance(result: Similarity) -> str:
    by_layer = result.by_layer(result.high_distance)
    early, late, first, last = _compared(result, by_layer)
    null = f"all pairs {number(result.distance)}, two tokens placed anywhere {number(result.uniform_distance)}"
    if len(result.layers) == 1:
        return f"High pairs are {number(late)} tokens apart in the one layer there is ({null})."
    least = int(np.nanargmin(by_layer))
    where = (
        f"{number(early)} tokens apart in {first} and {number(late)} in {last}, least in layer {result.layers[least]} "
        f"with {number(by_layer[least])} ({null})"
    )
    if late < early * (1 - CLEAR):
        return f"High pairs get nearer, as Halevi et al. report: they are {where}."
    if late > early * (1 + CLEAR):
        return f"High pairs get farther apart, unlike those of Halevi et al.: they are {where}."
    return f"High pairs stay about as far apart, unlike those of Halevi et al.: they are {where}."


def _same_sentence(result: Similarity) -> str:
    if not result.same_sentence > 0 or not result.same_sentence < 1:
        return "Every text is one sentence or has no pair within one, so there is no preference for the same sentence."
    pooled = result.by_layer(result.high_same_sentence)
    early, late, first, last = _compared(result, pooled / result.same_sentence)
    beyond = _compared(result, pooled / result.by_layer(result.high_expected_sentence))[1]
    alike = (
        f"against pairs equally far apart it is {number(beyond)}"
        if np.isfinite(beyond)
        else "there are no pairs equally far apart to compare with"
    )
    lift = f"{number(late)} times as often as all pairs in {last}"
    if len(result.layers) > 1:
        lift += f", {number(early)} times in {first}"
    if not late > 1 + CLEAR:
        return f"There is no clear preference for the same sentence: high pairs share theirs {lift}; {alike}."
    if len(result.layers) > 1 and late > early * (1 + CLEAR):
        return f"A preference for the same sentence grows, as Halevi et al. report: pairs share theirs {lift}; {alike}."
    return (
        f"High pairs prefer the same sentence, and the last layers no more than the first: they share theirs {lift}; "
        f"{alike}."
    )


def _repetition(result: Similarity) -> str:
    lift = result.repetition_lift
    places = extremes(lift)
    if places is None:
        return "No token occurs twice in a text, so no head can pair copies."
    best = places[0]
    heads = int(np.isfinite(lift).sum())
    repeating = int((np.nan_to_num(lift) >= REPEATING).sum())
    strongest = (
        f"{head_name(result.layers[best[0]], best[1])}: {percent(result.high_same_token[best])} of its high pairs are "
        f"copies against {percent(result.same_token)} of all pairs ({number(lift[best])} times), and they are "
        f"{percent(result.recall[best])} of all copies"
    )
    if not repeating:
        return f"No head pairs copies of a token {REPEATING:g} times as often as chance; the strongest is {strongest}."
    return (
        f"{repeating} of {count(heads)} heads pair copies of a token at least {REPEATING:g} times as often as chance, "
        f"as Halevi et al. report of some. The strongest is {strongest}."
    )


def _dominant(result: Similarity) -> list[str]:
    share, chance = (float(np.nanmean(values)) for values in (result.dominant_share, result.shuffled_share))
    heads = int(np.isfinite(result.high).sum(axis=1).max())
    around = (
        f"{percent(share)} of the high pairs of a head touch its dominant token, {percent(chance)} when similarities "
        "are shuffled"
    )
    built = share > chance * (1 + CLEAR)
    lines = [f"Heads {'build' if built else 'do not build'} their pairs around one token: {around}."]
    if heads < 2:
        return lines
    unlike, shuffled = (float(np.nanmean(values)) for values in (result.distinct, result.shuffled_distinct))
    numbers = f"{number(unlike)} different ones among {heads} heads, {number(shuffled)} when shuffled"
    if unlike > shuffled * (1 + CLEAR):
        verdict = "The dominant tokens of a layer differ more than by chance, as Halevi et al. report"
    elif unlike < shuffled * (1 - CLEAR):
        verdict = "Heads of a layer share their dominant tokens more than by chance, so they are not unique to a head"
    else:
        verdict = "The dominant tokens of a layer differ about as much as by chance"
    return [*lines, f"{verdict}: {numbers}."]


def _separators(result: Similarity) -> str:
    tokens = float(result.separator_tokens.sum())
    if not tokens > 0:
        return "The texts have no separators, so there is no attention to them."
    received = {measure: mean_over(values.sum(axis=-1)) for measure, values in result.separators.items()}
    early, late, first, last = _compared(result, received["weights"])
    made = _compared(result, received["norms"])[1]
    numbers = (
        f"separators, {percent(tokens)} of the tokens, receive {percent(late)} of the attention in {last} and make "
        f"{percent(made)} of the contributions there"
    )
    if len(result.layers) > 1:
        numbers += f"; in {first} they receive {percent(early)}"
    if not late > tokens * (1 + CLEAR):
        return f"Attention does not gather on separators in the last layers: {numbers}."
    if len(result.layers) > 1 and not late > early * (1 + CLEAR):
        return f"Attention gathers on separators, and no more in the last layers than in the first: {numbers}."
    return f"Attention gathers on separators in the last layers, as Halevi et al. report: {numbers}."


def exhibits(result: Similarity) -> list[Exhibit]:
    """A figure for each claim, then the tables."""
    figures: list[Exhibit] = [_separator_lines(result)]
    if np.nansum(result.high):
        figures = [
            _distance_lines(result),
            _sentence_lines(result),
            *_repetition_maps(result),
            _dominant_strip(result),
            *_distinct_lines(result),
            *figures,
        ]
    return [*figures, *_tables(result)]


def _level(result: Similarity, value: float) -> Float[np.ndarray, " layer"]:
    return np.full(len(result.layers), value)


def _lines(result: Similarity, name: str, caption: str, alt: str, *panels: LinePanel) -> Lines:
    names = dict.fromkeys(series.name for panel in panels for series in panel.series)
    return Lines(name, caption, alt, panels, ticks=tuple(map(str, result.layers)), names=tuple(names))


def _spelled(result: Similarity, values: Float[np.ndarray, " layer"]) -> str:
    return listing([f"{number(v)} in layer {n}" for n, v in zip(result.layers, values, strict=True)])


def _distance_lines(result: Similarity) -> Lines:
    distance, near = result.by_layer(result.high_distance), result.by_layer(result.high_near)
    return _lines(
        result,
        "similarity_distance",
        "Left, how far apart the high pairs of a layer are, in tokens, beside all pairs and two tokens placed "
        f"anywhere. Right, the share of pairs at most {result.near} tokens apart.",
        f"Two panels of lines over layers. Mean distance of high pairs: {_spelled(result, distance)}; of all pairs "
        f"{number(result.distance)}.",
        LinePanel(
            "mean distance",
            (
                Series("high pairs", distance),
                Series("all pairs", _level(result, result.distance)),
                Series("placed anywhere", _level(result, result.uniform_distance)),
            ),
        ),
        LinePanel(
            f"share within {result.near} tokens",
            (Series("high pairs", near), Series("all pairs", _level(result, result.near_share))),
            top=1.0,
        ),
    )


def _sentence_lines(result: Similarity) -> Lines:
    share = result.by_layer(result.high_same_sentence)
    expected = result.by_layer(result.high_expected_sentence)
    return _lines(
        result,
        "similarity_sentence",
        "Share of the high pairs of a layer that are of one sentence, beside all pairs, and beside pairs that are as "
        "far apart in the same text: what lies above that is not nearness alone.",
        f"Lines over layers. Share of same-sentence pairs: {_spelled(result, share)}; of all pairs "
        f"{number(result.same_sentence)}.",
        LinePanel(
            "share of same-sentence pairs",
            (
                Series("high pairs", share),
                Series("all pairs", _level(result, result.same_sentence)),
                Series("pairs equally far apart", expected),
            ),
            top=1.0,
        ),
    )


def _repetition_maps(result: Similarity) -> list[Exhibit]:
    lift = result.repetition_lift
    if lift.size < 2 or not np.isfinite(lift).any():
        return []
    return [
        Grids(
            "similarity_repetition",
            "Left, how many times as often as among all pairs a high pair of the head is two copies of a token. Right, "
            f"the share of all copies that are high pairs.{hatched(lift, 'no such head, or no high pair')}",
            f"Two maps, layer by head: largest lift {number(top_of(lift))}, largest recall "
            f"{percent(top_of(result.recall))}.",
            (
                Grid("repetition lift", lift, "norm", top_of(lift)),
                Grid("repetition recall", result.recall, "weight", top_of(result.recall)),
            ),
            tuple(map(str, result.layers)),
        )
    ]


def _dominant_strip(result: Similarity) -> Strip:
    chance = float(np.nanmean(result.shuffled_share))
    return Strip(
        "similarity_dominant",
        "Share of the high pairs that touch the dominant token of a head, mean over texts: a dot for each head. "
        "Dashed: the same when similarities are shuffled.",
        f"Dots over layers, mean {percent(float(np.nanmean(result.dominant_share)))}, shuffled {percent(chance)}.",
        (StripPanel("dominant token", result.dominant_share, chance, "dashed: shuffled"),),
        tuple(map(str, result.layers)),
        y="share of high pairs",
        limits=(0.0, 1.0),
    )


def _distinct_lines(result: Similarity) -> list[Exhibit]:
    heads = int(np.isfinite(result.high).sum(axis=1).max())
    if heads < 2:
        return []
    return [
        _lines(
            result,
            "similarity_distinct",
            f"How many different dominant tokens the heads of a layer have in a text, mean over texts. {heads} would "
            "be one for each head.",
            f"Two lines over layers. Different dominant tokens: {_spelled(result, result.distinct)}.",
            LinePanel(
                "different dominant tokens",
                (Series("heads", result.distinct), Series("shuffled", result.shuffled_distinct)),
                top=float(heads),
            ),
        )
    ]


def _separator_lines(result: Similarity) -> Lines:
    panels = [
        LinePanel(
            f"share of {symbol}",
            (
                *(Series(name, mean_over(result.separators[m][..., at])) for at, name in enumerate(SEPARATORS)),
                Series("share of tokens", _level(result, float(result.separator_tokens.sum()))),
            ),
        )
        for m, symbol in MEASURES.items()
    ]
    both = mean_over(result.separators["weights"].sum(axis=-1))
    return _lines(
        result,
        "similarity_separators",
        "Share of the attention that separators receive (left) and of the contributions they make (right), means over "
        "the heads of a layer. Flat: the share of tokens that are separators of either sort.",
        f"Two panels of lines over layers. Share of the attention on separators: {_spelled(result, both)}.",
        *panels,
    )


def _tables(result: Similarity) -> list[Exhibit]:
    separators = {m: values.sum(axis=-1) for m, values in result.separators.items()}
    per_token = {m: values / max(float(result.separator_tokens.sum()), 1e-12) for m, values in separators.items()}
    pooled = result.by_layer
    layers: list[Row] = [
        {
            "layer": layer,
            "similarity_distance": plain(pooled(result.high_distance)[at]),
            "similarity_near": plain(pooled(result.high_near)[at]),
            "repetition_lift": plain(pooled(result.high_same_token)[at] / (result.same_token or np.nan)),
            "same_sentence_lift": plain(pooled(result.high_same_sentence)[at] / (result.same_sentence or np.nan)),
            "same_sentence_lift_at_distance": plain(
                pooled(result.high_same_sentence)[at] / (pooled(result.high_expected_sentence)[at] or np.nan)
            ),
            "dominant_share": plain(mean_over(result.dominant_share)[at]),
            "dominant_distinct": plain(result.distinct[at]),
            "dominant_distinct_shuffled": plain(result.shuffled_distinct[at]),
            **{f"separators_{m}": plain(mean_over(values)[at]) for m, values in separators.items()},
            **{f"separators_per_token_{m}": plain(mean_over(values)[at]) for m, values in per_token.items()},
        }
        for at, layer in enumerate(result.layers)
    ]
    common = (
        Column("repetition_lift", "repetition lift"),
        Column("same_sentence_lift", "same sentence"),
        Column("same_sentence_lift_at_distance", "at its distance"),
        Column("similarity_distance", "distance"),
        Column("dominant_share", "dominant share", "percent"),
    )
    separated = tuple(Column(f"separators_{m}", f"separators {s}", "percent") for m, s in MEASURES.items())
    return [
        Table(
            "similarity_layers",
            "High pairs of every layer: lifts over all pairs, mean distance, different dominant tokens",
            layers,
            (Column("layer", "layer", "count"), *common, Column("dominant_distinct", "different"), *separated),
        ),
        per_head(result).table("similarity", "High pairs of every head"),
    ]


def per_head(result: Similarity) -> PerHead:
    """What the study says of every head."""
    separators = {m: values.sum(axis=-1) for m, values in result.separators.items()}
    tokens = texts([[name and visible(name) for name in layer] for layer in result.dominant_token])
    columns = (
        HeadColumn("repetition_lift", "repetition lift", result.repetition_lift),
        HeadColumn("repetition_recall", "recall", result.recall, "percent", shown=False),
        HeadColumn("same_sentence_lift", "same sentence", result.same_sentence_lift),
        HeadColumn("same_sentence_lift_at_distance", "at its distance", result.same_sentence_lift_at_distance),
        HeadColumn("similarity_distance", "distance", result.high_distance),
        HeadColumn("similarity_distance_median", "median distance", result.high_median, shown=False),
        HeadColumn("similarity_near", "near", result.high_near, "percent", shown=False),
        HeadColumn("dominant_share", "dominant share", result.dominant_share, "percent"),
        HeadColumn("dominant_by_chance", "dominant by chance", result.shuffled_share, "percent", shown=False),
        HeadColumn("dominant_token", "dominant token", tokens, "text"),
        HeadColumn("dominant_texts", "in texts", result.dominant_texts, "percent"),
        *by_measure("separators", "separators", separators, "percent"),
    )
    return PerHead(result.layers, columns)
