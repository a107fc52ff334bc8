"""How much does attention lengthen a vector? The expansion rate of Kobayashi et al. (2021), section 4.4.

    ‖f̃‖_F / √(d + 1)        f̃: f of all heads together with b_O, as a matrix for x̃ = [x, 1]

It is a property of the weights; of the corpus only the kinds of attention are taken, and how many tokens there were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np
from jaxtyping import Float

from normlens.algebra import Variant
from normlens.exhibits import Column, LinePanel, Lines, Row, Section, Series, Table, number, plain, span
from normlens.lens import NoProbe, expansion_rates
from normlens.statistics import Moments, Statistic
from normlens.studies.means import mean_over
from normlens.studies.seen import Facts, Seen
from normlens.studies.study import Study, StudyError
from normlens.studies.sums import Sums


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """The expansion rate of each layer; NaN where f is no linear map that can be found."""

    kind: str
    variant: Variant
    layers: tuple[int, ...]
    rates: Float[np.ndarray, " layer"]
    reasons: Mapping[int, str]  # why a layer has none


class ExpansionStudy(Study[Expansion]):
    name, title = "expansion", "How much does attention lengthen a vector?"
    paper = "Kobayashi et al. (2021), section 4.4"
    question = (
        "The residual keeps a token at its length. Does f, which all of a token’s attention goes through, make vectors "
        "shorter or longer? Below 1 attention shrinks what it mixes, so that the residual outweighs it."
    )
    caution = (
        "the rate is that of a random direction. Real inputs are no random directions, and in a pre-norm model they "
        "go through a norm first. It is no property of the corpus."
    )
    method = (
        "With a 1 put behind every vector, f of all heads together with b_O is a matrix f̃ of d + 1 rows and columns. "
        "The rate is its Frobenius norm over √(d + 1), the root of the mean of its squared singular values.",
        "variant=authors: the code of the paper puts b_O into the last column of W̃_O instead of its last row, and the "
        "rates that it printed are those.",
    )

    def __init__(self, *, variant: Variant = "affine") -> None:
        if variant not in get_args(Variant):
            raise StudyError(f"There is no variant '{variant}'.", do=f"choose {' or '.join(get_args(Variant))}.")
        self.variant: Variant = variant

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        return {"tokens": Moments.of(seen.queries[:, None].astype(np.float64))}

    def result(self, sums: Sums, run: Facts) -> Expansion:
        layers, _ = sums.by_layer("tokens")
        lens = run.lens
        if lens is None:
            return Expansion(sums.kind, self.variant, layers, np.full(len(layers), np.nan), {})
        try:
            found = run.once(f"expansion {self.variant}", lambda: expansion_rates(lens, variant=self.variant))
        except NoProbe as none:
            reasons = dict.fromkeys(layers, none.what)
            return Expansion(sums.kind, self.variant, layers, np.full(len(layers), np.nan), reasons)
        rates = np.array([found.values.get((sums.kind, layer), np.nan) for layer in layers])
        reasons = {layer: found.reasons[sums.kind, layer] for layer in layers if (sums.kind, layer) in found.reasons}
        return Expansion(sums.kind, self.variant, layers, rates, reasons)

    def section(self, result: Expansion, run: Facts) -> Section:
        notes = [f"Layer {layer} has no rate: {reason}." for layer, reason in result.reasons.items()]
        if not np.isfinite(result.rates).any():
            return Section(["No layer has an expansion rate."], [], notes)
        return Section(_sentences(result), [_lines(result), _table(result)], notes)


def _sentences(result: Expansion) -> list[str]:
    there = np.isfinite(result.rates)
    high, low = int(np.nanargmax(result.rates)), int(np.nanargmin(result.rates))
    shrinking = int((result.rates[there] < 1).sum())
    return [
        f"The expansion rate of attention is {number(mean_over(result.rates))} on average over {int(there.sum())} "
        f"layers, and below 1 in {shrinking} of them: from {number(result.rates[low])} in "
        f"{span([result.layers[low]])} to {number(result.rates[high])} in {span([result.layers[high]])}."
    ]


def _lines(result: Expansion) -> Lines:
    return Lines(
        "expansion",
        "Expansion rate of f, all heads together, in each layer. Below 1 a vector of random direction gets shorter.",
        f"A line over layers from {number(np.nanmin(result.rates))} to {number(np.nanmax(result.rates))}.",
        (LinePanel("expansion rate", (Series("expansion rate", result.rates),)),),
        ticks=tuple(map(str, result.layers)),
        names=("expansion rate",),
    )


def _table(result: Expansion) -> Table:
    rows: list[Row] = [
        {"layer": layer, "rate": plain(rate)} for layer, rate in zip(result.layers, result.rates, strict=True)
    ]
    columns = (Column("layer", "layer", "count"), Column("rate", "expansion rate"))
    variant = "" if result.variant == "affine" else ", as in the code of the authors"
    return Table("expansion", f"Expansion rate of each layer{variant}", rows, columns)
