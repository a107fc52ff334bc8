"""How much does ‖f(x)‖ differ from token to token? Tables 1 and 4 and Figure 9 of the 2020 paper.

Pooled: every real token of the corpus counts once, per head (‖f(x)‖) or per layer (‖x‖).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

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
    head_name,
    number,
    percent,
    plain,
    top_of,
)
from normlens.lens import NoProbe, singular_values
from normlens.statistics import Moments, Statistic
from normlens.studies.means import extremes, mean_over
from normlens.studies.seen import Facts, Pass, Seen
from normlens.studies.study import Needs, Study
from normlens.studies.sums import Sums, padded

HARDLY = 0.05  # below this CV norms are called nearly constant
ALIKE = 1.25  # two CVs within this factor are called about the same
NULL = 1e-6  # singular values below this part of the largest are 0 up to rounding


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Mean, standard deviation, coefficient of variation (deviation / mean) and range of some norms, cell by cell."""

    count: Int[np.ndarray, "*cell"]
    mean: Float[np.ndarray, "*cell"]
    deviation: Float[np.ndarray, "*cell"]
    low: Float[np.ndarray, "*cell"]
    high: Float[np.ndarray, "*cell"]

    @property
    def variation(self) -> Float[np.ndarray, "*cell"]:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.mean > 0, self.deviation / self.mean, np.nan)

    @staticmethod
    def of(moments: list[Moments]) -> Spread:
        counts = np.nan_to_num(padded([m.count for m in moments])).astype(np.int64)
        return Spread(
            counts, *(padded([getattr(m, part) for m in moments]) for part in ("mean", "deviation", "low", "high"))
        )

    def flat(self) -> Spread:
        """Without the axis of heads."""
        return Spread(*(getattr(self, part)[:, 0] for part in ("count", "mean", "deviation", "low", "high")))

    def row(self, at: tuple[int, ...]) -> Row:
        numbers: Row = {key: plain(getattr(self, key)[at]) for key in ("mean", "deviation", "variation", "high", "low")}
        return {**numbers, "count": int(self.count[at])}


@dataclass(frozen=True, slots=True, eq=False)
class Dispersion:
    """Spread of ‖f(x)‖, of ‖x‖, and the singular values of f."""

    kind: str
    layers: tuple[int, ...]
    transformed: Spread  # ‖f(x)‖, (layer, head)
    inputs: Spread | None  # ‖x‖ of a layer's input, (layer,); None when the model does not show it
    singular: Float[np.ndarray, "layer head value"] | None  # of f as a linear map, descending
    notes: tuple[str, ...]


class DispersionStudy(Study[Dispersion]):
    name, title = "dispersion", "Do the transformed vectors differ in norm?"
    paper = "Kobayashi et al. (2020), Tables 1 and 4, Figure 9"
    causal = ""  # ‖f(x)‖ belongs to a key alone
    needs = Needs(hidden_states=True, transformed=True)
    question = (
        "If ‖f(x)‖ were the same for all tokens, the attention weights alone would determine the contributions. So the "
        "first question is how much it varies within a head. The paper asks this in its Tables 1 and 4 and its Figure "
        "9."
    )
    method = (
        "f(x) = (x·W_V + b_V)·W_O with the rows of W_O that belong to the head; the bias of the output projection "
        "belongs to no token and is left out. ‖f(x)‖ of every real token of every sequence goes into one list per "
        "head. Of each list: mean μ, standard deviation σ, CV = σ/μ, largest and smallest. The average row is the mean "
        "over heads of the means, of the deviations and of the CVs; it is not the CV of the means.",
        "‖x‖ is the norm of a layer’s input, one list per layer, with the same statistics.",
        "f is affine. With a 1 put behind every vector it is a linear map, whose singular values say how much it "
        "stretches each direction. The ratio is that of the largest to the smallest that is not 0 (not below one "
        "millionth of the largest). The head shown for a layer is the one of median CV, the lower of two.",
        f"A CV below {HARDLY:g} is called nearly constant; two CVs within a factor of {ALIKE:g} are called about the "
        "same.",
    )

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        return {"transformed": Moments.of(seen.norms.transpose(0, 2, 1)[seen.real])}

    def see_pass(self, passed: Pass) -> Mapping[tuple[str, int], Mapping[str, Statistic]]:
        counted: dict[tuple[str, int], Mapping[str, Statistic]] = {}
        for kind, layer, states, group in passed.hidden_states(last=False):
            norms = states.float().norm(dim=-1).cpu().numpy()[group.categories >= 0]
            counted[kind, layer] = {"inputs": Moments.of(norms[:, None])}
        return counted

    def result(self, sums: Sums, run: Facts) -> Dispersion:
        layers, moments = sums.by_layer("transformed")
        input_layers, inputs = sums.by_layer("inputs")
        notes = []
        if sums.kind == "cross":
            notes.append("‖x‖: the inputs of cross-attention are the outputs of the encoder, the same for every layer.")
        elif input_layers != layers:
            inputs = []
            notes.append("‖x‖: the model does not show one hidden state per attention layer.")
        singular, reasons = _singular_values(run, sums.kind, layers)
        return Dispersion(
            kind=sums.kind,
            layers=layers,
            transformed=Spread.of(moments),
            inputs=Spread.of(inputs).flat() if inputs and sums.kind != "cross" else None,
            singular=singular,
            notes=(*notes, *reasons),
        )

    def section(self, result: Dispersion, run: Facts) -> Section:
        sentences = [*_transformed(result), *_inputs(result), *_singular(result)]
        return Section(sentences, [*_figures(result), *_tables(result)], result.notes)


def _singular_values(
    run: Facts, kind: str, layers: tuple[int, ...]
) -> tuple[Float[np.ndarray, "layer head value"] | None, list[str]]:
    """Those of every layer and head, or the reasons why some are missing."""
    lens = run.lens
    if lens is None:
        return None, []
    try:
        maps = run.once("singular values", lambda: singular_values(lens))
    except NoProbe as error:
        return None, [str(error)]
    values = [np.asarray(maps.values[kind, layer]) for layer in layers if (kind, layer) in maps.values]
    missing = {maps.reasons[kind, layer] for layer in layers if (kind, layer) in maps.reasons}
    complete = len(values) == len(layers) and len({v.shape[1] for v in values}) == 1
    reasons = [f"Singular values are missing for some layers: {reason}." for reason in sorted(missing)]
    return padded(values) if complete else None, reasons


def stretch(values: Float[np.ndarray, " value"]) -> tuple[float, float, float]:
    """Largest singular value, smallest that is not 0, and their ratio; NaN where there is none."""
    there = values[np.isfinite(values)]
    there = there[there > NULL * there.max(initial=0.0)]
    if not there.size:
        return (np.nan, np.nan, np.nan)
    return float(there.max()), float(there.min()), float(there.max() / there.min())


def drawn_heads(result: Dispersion) -> list[tuple[int, int]]:
    """(layer index, head) of the curve drawn for each layer: its head of median CV among those with singular values."""
    if result.singular is None:
        return []
    chosen = []
    for row, values in enumerate(result.singular):
        variation = result.transformed.variation[row]
        usable = np.flatnonzero(np.isfinite(values).any(axis=-1))
        heads = [
            head for head in np.argsort(variation, kind="stable") if head in usable and np.isfinite(variation[head])
        ]
        heads = heads or list(usable)
        if heads:
            chosen.append((row, int(heads[(len(heads) - 1) // 2])))
    return chosen


def _transformed(result: Dispersion) -> list[str]:
    variation = result.transformed.variation
    ends = extremes(variation)
    if ends is None:
        return ["No coefficient of variation (CV) is defined: ‖f(x)‖ is 0 in every head, or was not measured."]
    if int(result.transformed.count.max()) < 2:
        return ["Only one token was measured, so nothing can vary."]
    average = float(mean_over(variation.reshape(-1)))
    if average >= HARDLY:
        meaning = "the same attention weight α contributes more for one token than for another"
    else:
        meaning = "norms are nearly constant, so here α alone is close to the contribution"
    high, low = ((percent(variation[at]), head_name(result.layers[at[0]], at[1])) for at in ends)
    if int(np.isfinite(variation).sum()) == 1:
        lead = f"In {high[1]}, the only head, the standard deviation of ‖f(x)‖ is {percent(average)} of its mean"
        return [f"{lead} (CV {number(average, 2)}): {meaning}."]
    lead = f"Within a head, the standard deviation of ‖f(x)‖ is on average {percent(average)} of its mean"
    return [f"{lead} (CV {number(average, 2)}; from {low[0]} in {low[1]} to {high[0]} in {high[1]}): {meaning}."]


def _inputs(result: Dispersion) -> list[str]:
    if result.inputs is None or int(result.inputs.count.max()) < 2:
        return []
    inputs = float(mean_over(result.inputs.variation))
    outputs = float(mean_over(result.transformed.variation.reshape(-1)))
    if not (np.isfinite(inputs) and np.isfinite(outputs)):
        return []
    if inputs * ALIKE < outputs:
        compared = "varies less than ‖f(x)‖"
    elif inputs > outputs * ALIKE:
        compared = "varies more than ‖f(x)‖"
    else:
        compared = "varies about as much as ‖f(x)‖"
    return [f"The norm ‖x‖ of the layers’ inputs {compared}: CV {number(inputs, 2)} on average over the layers."]


def _singular(result: Dispersion) -> list[str]:
    if result.singular is None:
        return []
    ratios = np.array([stretch(head)[2] for layer in result.singular for head in layer])
    ratios = ratios[np.isfinite(ratios)]
    if not ratios.size:
        return []
    if ratios.size == 1:
        return [f"f stretches its strongest direction {number(ratios[0], 2)} times as much as its weakest."]
    low, middle, high = (number(float(x), 2) for x in (ratios.min(), np.median(ratios), ratios.max()))
    return [
        f"f does not treat all directions alike: its largest singular value is {low} to {high} times its smallest "
        f"(median {middle}, {count(ratios.size)} heads)."
    ]


SPREAD = (
    Column("row", "", "text"),
    Column("where", "where", "text"),
    Column("mean", "mean μ"),
    Column("deviation", "deviation σ"),
    Column("variation", "CV = σ/μ"),
    Column("high", "largest"),
    Column("low", "smallest"),
    Column("count", "tokens", "count"),
)
SINGULAR = (
    Column("where", "where", "text"),
    Column("largest", "largest"),
    Column("smallest", "smallest, not 0"),
    Column("ratio", "ratio"),
)


def _tables(result: Dispersion) -> list[Exhibit]:
    spread, inputs = result.transformed, result.inputs
    heads = [at for at in np.ndindex(spread.mean.shape) if np.isfinite(spread.mean[at])]
    ends = _ends(spread, lambda at: head_name(result.layers[at[0]], at[1]), "head", len(heads))
    tables: list[Exhibit] = [
        Table("dispersion", "Norms ‖f(x)‖ of the transformed vectors, over all tokens", ends, SPREAD)
    ]
    if inputs is not None:
        layers = int(np.isfinite(inputs.mean).sum())
        ends = _ends(inputs, lambda at: f"L{result.layers[at[0]]}", "layer", layers)
        tables.append(Table("inputs", "Norms ‖x‖ of the layers’ inputs, over all tokens", ends, SPREAD))
    singular = _singular_rows(result)
    drawn = [row for row in singular if row["drawn"] == "yes"]
    tables.append(Table("singular", "Singular values of f, in each layer the head of median CV", drawn, SINGULAR))
    rows: list[Row] = [{"layer": result.layers[at[0]], "head": at[1], **spread.row(at)} for at in heads]
    tables.append(Table("dispersion_heads", "every head", rows, shown=0))
    if inputs is not None:
        rows = [{"layer": layer, **inputs.row((place,))} for place, layer in enumerate(result.layers)]
        tables.append(Table("inputs_layers", "every layer", rows, shown=0))
    tables.append(Table("singular_heads", "singular values, every head", singular, shown=0))
    tables.append(Table("singular_values", "singular values drawn", _value_rows(result), shown=0))
    return tables


def _ends(spread: Spread, name: Callable[[tuple[int, ...]], str], unit: str, many: int) -> list[Row]:
    """The average is the mean of the means, of the deviations and of the CVs; a largest of largest would mislead."""
    ends = extremes(spread.variation)
    if many == 1 and ends is not None:
        return [{"row": f"the only {unit}", "where": name(ends[0]), **spread.row(ends[0])}]
    rows: list[Row] = []
    if ends is not None:
        for what, at in zip(("largest CV", "smallest CV"), ends, strict=True):
            rows.append({"row": what, "where": name(at), **spread.row(at)})
    average: Row = {
        key: plain(mean_over(getattr(spread, key).astype(float).reshape(-1)))
        for key in ("mean", "deviation", "variation")
    }
    return [
        *rows,
        {"row": "average", "where": f"{many:,} {unit}s", **average, "high": None, "low": None, "count": None},
    ]


def _singular_rows(result: Dispersion) -> list[Row]:
    """Every head: the ends of its singular values and their ratio; `drawn` says which one the figure shows."""
    if result.singular is None:
        return []
    drawn, rows = set(drawn_heads(result)), []
    for place, head in np.ndindex(result.singular.shape[:2]):
        high, low, ratio = stretch(result.singular[place, head])
        if np.isfinite(ratio):
            layer = result.layers[place]
            ends: Row = {"largest": plain(high), "smallest": plain(low), "ratio": plain(ratio)}
            where: Row = {"where": head_name(layer, head), "layer": layer, "head": head}
            rows.append({**where, **ends, "drawn": "yes" if (place, head) in drawn else "no"})
    return rows


def _value_rows(result: Dispersion) -> list[Row]:
    if result.singular is None:
        return []
    return [
        {"layer": result.layers[place], "head": head, "index": index, "value": plain(value)}
        for place, head in drawn_heads(result)
        for index, value in enumerate(result.singular[place, head], start=1)
        if np.isfinite(value)
    ]


def _figures(result: Dispersion) -> list[Exhibit]:
    figures: list[Exhibit] = []
    mean, variation = result.transformed.mean, result.transformed.variation
    ends = extremes(variation)
    if ends is not None and mean.size > 1:
        high, low = (f"{number(float(variation[at]), 2)} in {head_name(result.layers[at[0]], at[1])}" for at in ends)
        figures.append(
            Grids(
                "dispersion",
                "Each cell is a head. Left, the mean of ‖f(x)‖ over all tokens; right, its coefficient of variation "
                "(CV), the standard deviation as a part of the mean." + hatched(mean),
                f"Two maps, layer by head: mean of ‖f(x)‖, up to {number(top_of(mean))}, and its coefficient of "
                f"variation, from {low} to {high}.",
                (
                    Grid("mean of ‖f(x)‖", mean, "norm", top_of(mean)),
                    Grid("CV of ‖f(x)‖", variation, "grey", top_of(variation)),
                ),
                tuple(map(str, result.layers)),
            )
        )
    chosen = drawn_heads(result)
    ratios = [stretch(result.singular[at])[2] for at in chosen] if result.singular is not None else []
    if result.singular is not None and ratios and np.isfinite(ratios).any():
        curves = [
            Series(
                head_name(result.layers[at[0]], at[1]), values[np.isfinite(values)], place=float(result.layers[at[0]])
            )
            for at in chosen
            if (values := result.singular[at]) is not None
        ]
        figures.append(
            Lines(
                "singular",
                "Singular values of f as a linear map, largest first: how much it stretches each direction. One curve "
                "per layer, of its head of median CV; a flat curve would treat all directions alike.",
                f"{count(len(chosen))} falling curves, one per layer; the largest value is "
                f"{number(float(np.nanmin(ratios)), 2)} to {number(float(np.nanmax(ratios)), 2)} times the smallest.",
                (LinePanel("", tuple(curves), y="size"),),
                x="singular value, largest first",
                ramp="layer",
            )
        )
    return figures
