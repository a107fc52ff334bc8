"""How much does a component change what goes through it? The redundancy of S. He et al. (2024): cosines of states.

    1 - cos(x, x + o)          attention with its residual
    1 - cos(x', x' + FF(x'))   the feed-forward block with its residual
    1 - cos(x, y)              the whole layer, norms included

Near 0 a component hardly turns a token's vector, and could be left out at little cost. Means over all tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from normlens.exhibits import Column, LinePanel, Lines, Row, Section, Series, Table, count, listing, number, plain, span
from normlens.statistics import Moments, Statistic
from normlens.studies.means import mean_over
from normlens.studies.seen import Facts, Seen
from normlens.studies.states import COMPONENTS, lacking
from normlens.studies.study import Needs, Study
from normlens.studies.sums import Sums


@dataclass(frozen=True, slots=True, eq=False)
class Redundancy:
    """How far each component turns and lengthens a token's vector; NaN where a layer lacks it."""

    kind: str
    layers: tuple[int, ...]
    tokens: int
    turned: Mapping[str, Float[np.ndarray, " layer"]]  # mean 1 - cos, by component
    added: Mapping[str, Float[np.ndarray, " layer"]]  # mean ‖after - before‖ / ‖before‖
    missing: Mapping[str, str]  # components that no layer has, and why


class RedundancyStudy(Study[Redundancy]):
    name, title = "redundancy", "Which components change a token little?"
    paper = "S. He et al. (2024), What Matters in Transformers"
    needs = Needs(quantities=tuple(dict.fromkeys(name for one in COMPONENTS.values() for name in one.quantities)))
    question = (
        "A component whose output points where its input points changes little. How far do attention, feed-forward "
        "block and layer turn the vector of a token?"
    )
    caution = (
        "a small angle does not prove that a component can be left out: a small change may decide the prediction, and "
        "later layers see sums of small changes. Whatever is common to all tokens, such as a few large coordinates, "
        "makes angles small. Only the layer holds the norms behind the sums, so in a post-norm model it may be turned "
        "more, or less, than its parts."
    )
    method = (
        "Each component is taken with its residual: x against x + o for attention, the state before the feed-forward "
        "block against the sum with it, the input of the layer against its output. 1 − cos of the two vectors of each "
        "token, and the length of their difference over that of the first; means over all tokens.",
    )

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        real = seen.real_queries
        found: dict[str, Statistic] = {}
        for name, component in COMPONENTS.items():
            if (states := component.of(seen)) is not None:
                values = np.stack([changed(*states), added(*states)], axis=-1)[real]
                found[name] = Moments.of(values, np.isfinite(values))
        return found

    def result(self, sums: Sums, run: Facts) -> Redundancy:
        by_name = {name: dict(zip(*sums.by_layer(name), strict=True)) for name in COMPONENTS}
        layers = tuple(sorted({layer for moments in by_name.values() for layer in moments}))
        parts: tuple[dict[str, np.ndarray], dict[str, np.ndarray]] = {}, {}
        for name, moments in by_name.items():
            if moments:
                means = np.stack([_means(moments.get(layer)) for layer in layers])
                parts[0][name], parts[1][name] = means[:, 0], means[:, 1]
        tokens = max(int(m.count.max()) for moments in by_name.values() for m in moments.values())
        absent = {name: lacking(run, sums.kind, COMPONENTS[name]) for name in COMPONENTS if not by_name[name]}
        return Redundancy(sums.kind, layers, tokens, *parts, absent)

    def section(self, result: Redundancy, run: Facts) -> Section:
        notes = [f"{COMPONENTS[name].label} is left out: {why}." for name, why in result.missing.items()]
        return Section(_sentences(result), [_lines(result), _table(result)], notes)


def changed(before: Tensor, after: Tensor) -> Float[np.ndarray, "batch tgt"]:
    """1 - cos of the two vectors of each token; NaN where one of them is 0."""
    one, two = before.double(), after.double()
    cosine = (one * two).sum(dim=-1) / (one.norm(dim=-1) * two.norm(dim=-1))
    return (1 - cosine).cpu().numpy()


def added(before: Tensor, after: Tensor) -> Float[np.ndarray, "batch tgt"]:
    """‖after - before‖ / ‖before‖; NaN or infinite where there was nothing before."""
    one, two = before.double(), after.double()
    return ((two - one).norm(dim=-1) / one.norm(dim=-1)).cpu().numpy()


def _means(moments: Moments | None) -> Float[np.ndarray, 2]:
    if moments is None:
        return np.full(2, np.nan)
    return np.where(moments.count > 0, moments.mean, np.nan)


def _sentences(result: Redundancy) -> list[str]:
    means = [f"{number(mean_over(turned))} for {COMPONENTS[name].phrase}" for name, turned in result.turned.items()]
    lines = [f"1 − cos of input and output is, as a mean over layers and tokens, {listing(means)}."]
    for name, turned in result.turned.items():
        if np.isfinite(turned).sum() > 1:
            low, high = int(np.nanargmin(turned)), int(np.nanargmax(turned))
            lines.append(
                f"{COMPONENTS[name].label} changes a token least in {span([result.layers[low]])} "
                f"({number(turned[low])}) and most in {span([result.layers[high]])} ({number(turned[high])})."
            )
    return lines


def _lines(result: Redundancy) -> Lines:
    panels = tuple(
        LinePanel(title, tuple(Series(COMPONENTS[name].label, line) for name, line in values.items()))
        for title, values in (("1 − cos of input and output", result.turned), ("‖change‖ / ‖input‖", result.added))
    )
    return Lines(
        "redundancy",
        "How far each component, with its residual, turns the vector of a token (left; 0: not at all), and how long "
        "the change is beside the vector (right); means over tokens.",
        f"Two panels of lines over layers, for {count(result.tokens)} tokens.",
        panels,
        ticks=tuple(map(str, result.layers)),
        names=tuple(component.label for component in COMPONENTS.values()),
    )


def _table(result: Redundancy) -> Table:
    rows: list[Row] = [
        {
            "layer": layer,
            **{f"{name}_turned": plain(turned[place]) for name, turned in result.turned.items()},
            **{f"{name}_added": plain(length[place]) for name, length in result.added.items()},
        }
        for place, layer in enumerate(result.layers)
    ]
    columns = [Column("layer", "layer", "count")]
    for part, what in (("turned", "1 − cos"), ("added", "‖change‖ / ‖input‖")):
        columns += [Column(f"{name}_{part}", f"{what}, {COMPONENTS[name].short}") for name in result.turned]
    return Table("redundancy", f"How much each component changes {count(result.tokens)} tokens", rows, tuple(columns))
