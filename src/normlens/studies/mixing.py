"""How much of a token comes from other tokens? The mixing ratio of Kobayashi et al. (2021), in all its forms.

    ‖Σ_{j≠i} F[i,j]‖ / (‖Σ_{j≠i} F[i,j]‖ + ‖F[i,i]‖)

F: what attention adds (Attn-N), with the residual (AttnRes-N), after the norm behind it (AttnResLn-N), at the end of
the layer (Layer-N, ours). By weights it is the share of α on other keys, mean over heads (Attn-W), and half of it with
an equal part for the residual (AttnRes-W).
"""

from __future__ import annotations

import numpy as np

from normlens.corpora import Corpus
from normlens.exhibits import (
    Cloud,
    Column,
    Exhibit,
    Grid,
    Grids,
    LinePanel,
    Lines,
    Row,
    Scatter,
    ScatterPanel,
    Section,
    Series,
    Table,
    count,
    hatched,
    listing,
    percent,
    plain,
    rho,
    span,
)
from normlens.lens import Lens
from normlens.studies.means import mean_over
from normlens.studies.mixing_ratios import FORMS, Mixing, MixingCounter, MixingForm, masked_corpus
from normlens.studies.naming import noun, sign
from normlens.studies.seen import Facts
from normlens.studies.states import why_absent
from normlens.studies.study import Needs, Study, StudyError
from normlens.studies.sums import Sums
from normlens.views import label

OVERALL = "overall"


class MixingStudy(Study[Mixing]):
    name, title = "mixing", "How much of a token comes from other tokens?"
    paper = "Kobayashi et al. (2021), Tables 1 and 2, Figures 3 and 4; Layer-N is ours"
    headlines = 2
    needs = Needs(
        quantities=tuple(form.quantity for form in FORMS.values() if form.quantity),
        ranks=True,
    )
    question = (
        "Attention mixes tokens, the residual keeps each token as it is. How much of a token comes from others after "
        "attention, residual and norm? Compare Tables 1 and 2 and Figure 3 of the paper."
    )
    caution = (
        "the ratio compares two lengths: that of the sum of what the other tokens contribute, and that of the token’s "
        "own vector. Vectors of other tokens that cancel do not count. Own means the vector at this position, which "
        "above the first layer already holds other tokens."
    )
    method = (
        "Attn-N: F is what attention adds; AttnRes-N: with the residual x added to a token’s own part; AttnResLn-N: "
        "after the norm behind that sum, with the statistics of the pass; Layer-N: at the end of the layer, the "
        "feed-forward block shared out in proportion (a gate is taken as it was). The ratio is the norm of the sum of "
        "the other tokens’ vectors over that norm plus the norm of the token’s own; b_O, β and other biases belong to "
        "no token. Attn-W is the attention weight on other keys, mean over heads; AttnRes-W is half of it.",
        "Mean, highest and lowest are pooled over all tokens and layers. Layers and categories: the mean of a "
        "sequence’s tokens, then the mean over sequences. ρ is Spearman’s between the frequency rank of a token and "
        "its ratio, the mean over layers; negative: frequent tokens are mixed more.",
        "With masked=0.12 that share of the tokens of each text that are not special is replaced by the mask token "
        "first, as in the paper; which tokens is drawn by a seed of ours. Such a study runs alone.",
    )
    causal = (
        "This attention is causal: the first token sees only itself, so its ratio is 0; early tokens see few others."
    )

    def __init__(self, *, masked: float = 0.0) -> None:
        if not 0 <= masked < 1:
            raise StudyError("masked must be at least 0 and below 1.", got=f"{masked}")
        self.masked = masked

    def prepared(self, corpus: Corpus, lens: Lens, length: int) -> Corpus:
        return corpus if not self.masked else masked_corpus(corpus, lens, length, self.masked)

    def counter(self, sums: Sums, run: Facts) -> MixingCounter:
        return MixingCounter(sums, run)

    def result(self, sums: Sums, run: Facts) -> Mixing:
        layers, _ = sums.by_layer("attn_w")
        forms: dict[str, MixingForm] = {}
        missing: dict[str, str] = {}
        for name, form in FORMS.items():
            there, moments = sums.by_layer(name)
            if not there:
                missing[name] = why_absent(run, sums.kind, form.quantity)
                continue
            whole = moments[0]
            for more in moments[1:]:
                whole += more
            means = np.full((len(layers), len(run.categories) + 1), np.nan)
            for layer, by_category in zip(*sums.by_layer(f"{name}_categories"), strict=True):
                means[layers.index(layer)] = np.where(by_category.count > 0, by_category.mean, np.nan)
            ranks = [sums.get(f"rank/{which}/{name}") for which in ("every", "plain")]
            forms[name] = MixingForm(
                form,
                int(moments[0].count[0]),
                float(whole.mean[0]),
                float(whole.high[0]),
                float(whole.low[0]),
                means[:, -1],
                means[:, :-1],
                *(float("nan") if table is None else table.rho for table in ranks),
            )
        ranks = sums.get("rank/every/attn_w")
        points = sums.get("points")
        drawn = np.zeros((0, 2 + len(FORMS))) if points is None else points.rows
        return Mixing(sums.kind, layers, run.categories, forms, missing, 0 if ranks is None else ranks.pairs, drawn)

    def section(self, result: Mixing, run: Facts) -> Section:
        notes = [f"{FORMS[name].label} does not exist here: {why}." for name, why in result.missing.items()]
        partly = [
            f"{one.form.label} exists in {span([result.layers[place] for place in np.flatnonzero(there)])} only."
            for one in result.forms.values()
            if not (there := np.isfinite(one.by_layer)).all()
        ]
        exhibits = [_lines(result), *_grid(result), *_scatter(result), *_tables(result)]
        return Section([*_kept(result), *_layers(result), *_frequency(result)], exhibits, [*notes, *partly])


def _kept(result: Mixing) -> list[str]:
    forms, most = result.forms, result.kept
    by_weights = forms["attn_w"]
    lines = [
        f"{most.form.label}, the mixing ratio {most.form.says}, is {percent(most.mean)} on average: "
        + (
            "a token keeps more of itself than it takes from all others"
            if most.mean < 0.5
            else "a token takes more from others than it keeps of itself"
        )
        + f". {by_weights.form.label}, {by_weights.form.says}, is {percent(by_weights.mean)}."
    ]
    rest = [
        f"{percent(one.mean)} {one.form.says} ({one.form.label})"
        for name, one in forms.items()
        if name not in (most.form.name, "attn_w", "attnres_w")
    ]
    return [*lines, f"It is {listing(rest)}."] if rest else lines


def _layers(result: Mixing) -> list[str]:
    most = result.kept
    there = np.isfinite(most.by_layer)
    if there.sum() < 2:
        return []
    high, low = int(np.nanargmax(most.by_layer)), int(np.nanargmin(most.by_layer))
    means = mean_over(most.by_category.T)
    order = [int(c) for c in np.argsort(-np.where(np.isfinite(means), means, -np.inf)) if np.isfinite(means[c])]
    lines = [
        f"Layer {result.layers[high]} mixes most ({percent(most.by_layer[high])} by {most.form.label}) and layer "
        f"{result.layers[low]} least ({percent(most.by_layer[low])})."
    ]
    if len(order) > 1:
        first, last = order[0], order[-1]
        lines.append(
            f"Of the categories, {noun(result.categories[first])} is mixed most ({percent(means[first])}, mean over "
            f"layers) and {noun(result.categories[last])} least ({percent(means[last])})."
        )
    return lines


def _frequency(result: Mixing) -> list[str]:
    most = result.kept
    said = sign(most.rank, result.points)
    if said is None:
        return []
    how = {-1: "are mixed more", 1: "are mixed less", 0: "are mixed neither clearly more nor clearly less"}[said]
    return [
        f"Frequent tokens {how} than rare ones by {most.form.label} (ρ = {rho(most.rank)} between rank and ratio, "
        f"{rho(most.plain_rank)} without special tokens); by {result.forms['attn_w'].form.label} ρ is "
        f"{rho(result.forms['attn_w'].rank)}."
    ]


def _lines(result: Mixing) -> Lines:
    said = [f"{one.form.label} {percent(one.mean)}" for one in result.forms.values()]
    return Lines(
        "mixing",
        "Mixing ratio of each layer, in every form: the mean of the tokens of a sequence, then the mean over "
        "sequences. 0: a token keeps only itself; 1: nothing of it is its own.",
        f"Lines over layers. Means over tokens and layers: {listing(said)}.",
        (
            LinePanel(
                "mixing ratio", tuple(Series(one.form.label, one.by_layer) for one in result.forms.values()), top=1.0
            ),
        ),
        ticks=tuple(map(str, result.layers)),
        names=tuple(form.label for form in FORMS.values()),
    )


def _grid(result: Mixing) -> list[Exhibit]:
    names = (*result.categories, OVERALL)
    maps = [100 * np.column_stack([one.by_category, one.by_layer]).T for one in result.forms.values()]
    there = [place for place in range(len(names)) if np.isfinite(maps[0][place]).any()]
    grids = tuple(
        Grid(one.form.label, values[there], "norm" if one.form.quantity else "weight", 100.0, numbers=".0f")
        for one, values in zip(result.forms.values(), maps, strict=True)
    )
    return [
        Grids(
            "mixing_categories",
            "Mixing ratio in percent, category by layer: the mean of the tokens of the category in a sequence, then "
            "the mean over the sequences that have one." + hatched(grids[0].values, "no such token"),
            f"{len(grids)} maps, category by layer.",
            grids,
            tuple(label(names[place], 16) for place in there),
            tuple(map(str, result.layers)),
            row_axis="",
            column_axis="layer",
            across=2,
        )
    ]


def _scatter(result: Mixing) -> list[Exhibit]:
    if not len(result.drawn):
        return []
    places = [place for place, name in enumerate(FORMS) if name in result.forms and name != "attnres_w"]
    category = result.drawn[:, 1].astype(int)
    order = sorted(set(category.tolist()), key=lambda c: -int((category == c).sum()))
    panels = tuple(
        ScatterPanel(
            f"{form.label}, ρ = {rho(result.forms[form.name].rank)}",
            tuple(
                Cloud(result.categories[c], result.drawn[category == c, 0], result.drawn[category == c, 2 + place])
                for c in order
            ),
            y="mixing ratio",
        )
        for place, form in enumerate(FORMS.values())
        if place in places
    )
    return [
        Scatter(
            "mixing_frequency",
            f"A point is one occurrence of a token, {count(len(result.drawn))} drawn at random: its frequency rank "
            "(rarer to the right) and its mixing ratio, mean over layers.",
            f"{len(panels)} panels of points over frequency rank.",
            panels,
            x="frequency rank (log): rarer to the right",
            x_scale="log",
            names=result.categories,
            folded="Mixing ratio and frequency",
        )
    ]


def _tables(result: Mixing) -> list[Exhibit]:
    forms = result.forms.values()
    pooled: list[Row] = [
        {
            "form": one.form.label,
            "what": one.form.says,
            "mean": plain(one.mean),
            "highest": plain(one.highest),
            "lowest": plain(one.lowest),
            "rank_rho": plain(one.rank),
            "rank_rho_plain": plain(one.plain_rank),
        }
        for one in forms
    ]
    by_layer: list[Row] = [
        {"layer": layer, **{one.form.name: plain(one.by_layer[place]) for one in forms}}
        for place, layer in enumerate(result.layers)
    ]
    cells: list[Row] = [
        {"form": one.form.label, "category": name, "layer": layer, "ratio": plain(values[place])}
        for one in forms
        for name, values in zip((*result.categories, OVERALL), (*one.by_category.T, one.by_layer), strict=True)
        for place, layer in enumerate(result.layers)
        if np.isfinite(values[place])
    ]
    points: list[Row] = [
        {"category": result.categories[int(row[1])], "rank": int(row[0])}
        | {name: plain(row[2 + place]) for place, name in enumerate(FORMS) if name in result.forms}
        for row in result.drawn
    ]
    tokens = next(iter(forms)).tokens
    return [
        Table("mixing", f"Mixing ratio of {count(tokens)} tokens in every layer, pooled", pooled, POOLED),
        Table(
            "mixing_layers",
            "Mixing ratio of each layer",
            by_layer,
            (Column("layer", "layer", "count"), *(Column(o.form.name, o.form.label, "percent") for o in forms)),
        ),
        Table("mixing_categories", "every layer and category", cells, shown=0),
        Table("mixing_points", "points drawn", points, shown=0),
    ]


POOLED = (
    Column("form", "form", "text"),
    Column("what", "mixing ratio", "text"),
    Column("mean", "mean", "percent"),
    Column("highest", "highest", "percent"),
    Column("lowest", "lowest", "percent"),
    Column("rank_rho", "ρ with rank", "rho"),
    Column("rank_rho_plain", "without special", "rho"),
)
