"""How linear is each component, and does the order of layers matter? After Zhao et al. (2021), the metrics are ours.

    y ≈ x B + b        by least squares over the tokens of a corpus, tried on tokens of other sequences

y: what attention adds to a token, what the feed-forward block adds, or the output of the layer. The other half runs the
model with two neighbouring layers in each other's place, and compares the last hidden states.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float

from normlens.exhibits import (
    Column,
    Exhibit,
    LinePanel,
    Lines,
    Row,
    Section,
    Series,
    Table,
    count,
    listing,
    many,
    number,
    plain,
)
from normlens.lens import SIDES
from normlens.statistics import RIDGE, Moments, Regression
from normlens.studies.batches import encoded_items
from normlens.studies.means import mean_over
from normlens.studies.redundancy import changed
from normlens.studies.seen import HIDDEN, Facts, Pass, Seen
from normlens.studies.states import COMPONENTS, lacking
from normlens.studies.study import Needs, Study, StudyError
from normlens.studies.sums import Sums
from normlens.studies.swapped import final_states, layers_of, swapped

HELD = 5  # every fifth sequence is held out
PARTS = {"attention": ("attention", "layer"), "feedforward": ("feedforward",)}  # what is fitted from the same vectors


@dataclass(frozen=True, slots=True, eq=False)
class Linearity:
    """R² and cosine of the best linear map of each component; what swapping two layers does."""

    kind: str
    layers: tuple[int, ...]
    fitted: int  # tokens
    held: int  # tokens of other sequences
    width: int  # of the vectors
    r2: Mapping[str, Float[np.ndarray, " layer"]]
    cosine: Mapping[str, Float[np.ndarray, " layer"]]
    missing: Mapping[str, str]  # components that no layer has, and why
    swaps: Float[np.ndarray, " pair"]  # mean 1 - cos of the last hidden state, layers i and i + 1 swapped; NaN for none
    swapped: int  # sequences
    not_swapped: str  # why no layers were swapped; empty when they were


class LinearityStudy(Study[Linearity]):
    name, title = "linearity", "How linear is each component, and does the order of layers matter?"
    paper = "Zhao et al. (2021), Of Non-Linearity and Commutativity in BERT; the metrics are ours"
    needs = Needs(quantities=tuple(dict.fromkeys(name for one in COMPONENTS.values() for name in one.quantities)))
    question = (
        "Could a matrix stand in for a component? And do the layers depend on their order? Zhao et al. ask "
        "this of BERT; the measures here are ours."
    )
    caution = (
        "a linear map fits any data where there are fewer tokens than coordinates, so read the held-out numbers beside "
        "the number of tokens. Attention sees other tokens and the map does not: a low R² of attention may say that it "
        "mixes, not that it is curved. Our R² and cosine are not those of the paper, whose exact measure we could not "
        "verify."
    )
    method = (
        "Attention and feed-forward block: the map goes from the vector before the component to what the component "
        "adds; layer: from its input to its output. Least squares with a constant, from sums of products over the "
        f"tokens of four fifths of the sequences, drawn by their tokens; a ridge of {RIDGE:g} of the mean of the "
        "diagonal keeps it defined. On the tokens of the other fifth: R² = 1 − Σ‖y − ŷ‖² / Σ‖y − mean y‖², and the "
        "cosine of all y and all ŷ, each taken as one long vector.",
        "Swapped layers: the model really runs with layers i and i + 1 in each other’s place, over the first "
        "sequences that reach the study (swaps=32; the longest of a shard of 64 come first); 1 − cos between its last "
        "hidden state and the ordinary one, mean over tokens. Layers are "
        "swapped where the model keeps them in one list of modules.",
    )

    def __init__(self, *, swaps: int = 32) -> None:
        if swaps < 0:
            raise StudyError("swaps is a number of sequences.", got=f"{swaps}", do="give 0 for none.")
        self.swaps = swaps

    def counter(self, sums: Sums, run: Facts) -> LinearityCounter:
        return LinearityCounter(sums, self.swaps)

    def result(self, sums: Sums, run: Facts) -> Linearity:
        layers = tuple(sorted({layer for part in PARTS for layer in sums.by_layer(f"{part}/fitted")[0]}))
        found = {name: np.full((2, len(layers)), np.nan) for name in COMPONENTS}
        fitted = held = width = 0
        for part, names in PARTS.items():
            for layer, one in zip(*sums.by_layer(f"{part}/fitted"), strict=True):
                other = sums.get(f"{layer}/{part}/held")
                fitted, width = max(fitted, one.rows), len(one.inputs) - 1
                if other is None:
                    continue
                held = max(held, other.rows)
                for place, name in enumerate(names):
                    outputs = slice(place * width, (place + 1) * width)
                    if one.both[:, outputs].shape[1]:
                        fit = other.fit(one.map(outputs), outputs)
                        found[name][:, layers.index(layer)] = fit.r2, fit.cosine
        there = [name for name in COMPONENTS if np.isfinite(found[name]).any()]
        pairs, moments = sums.by_layer("swap")
        swaps = np.full(max(len(layers) - 1, 0), np.nan)
        for pair, one in zip(pairs, moments, strict=True):
            if pair < len(swaps):
                swaps[pair] = one.mean[0] if one.count[0] else np.nan
        lens = run.lens
        listed = "the model is not at hand" if lens is None else layers_of(lens, sums.kind)
        why = listed if isinstance(listed, str) else "it shows no hidden states, or its layers do not run elsewhere"
        texts = sums.get("swapped")
        return Linearity(
            sums.kind,
            layers,
            fitted,
            held,
            width,
            {name: found[name][0] for name in there},
            {name: found[name][1] for name in there},
            {name: lacking(run, sums.kind, COMPONENTS[name]) for name in COMPONENTS if name not in there},
            swaps,
            0 if texts is None else int(texts.count[0]),
            "" if np.isfinite(swaps).any() or not self.swaps else why,
        )

    def section(self, result: Linearity, run: Facts) -> Section:
        notes = [f"{COMPONENTS[name].label} is left out: {why}." for name, why in result.missing.items()]
        if not result.held:
            notes = ["No sequence was held out, so no map could be tried: give more texts."]
        if result.fitted < 4 * result.width:
            notes.append(
                f"Only {count(result.fitted)} tokens were fitted for {count(result.width)} coordinates: the maps fit "
                "chance too. Give more texts."
            )
        if result.not_swapped:
            notes.append(f"No layers were swapped: {result.not_swapped}.")
        return Section([*_fits(result), *_swaps(result)], [*_figures(result), *_tables(result)], notes)


class LinearityCounter:
    """Sums of products of the states of every block, and passes with swapped layers."""

    def __init__(self, sums: Sums, swaps: int) -> None:
        self.sums, self.swaps = sums, swaps
        self.failed: set[tuple[str, int]] = set()

    def see(self, seen: Seen) -> None:
        real = seen.real_queries
        held = seen.tgt.once("linearity: held out", lambda group: _held(group.ids, group.lengths))
        for part, names in PARTS.items():
            states = [COMPONENTS[name].of(seen) for name in names]
            if states[0] is None:
                continue
            before = states[0][0].double().cpu().numpy()
            after = [s[1].double().cpu().numpy() for s in states if s is not None]
            after[0] = after[0] - before
            outputs = np.concatenate(after, axis=-1)
            for which, rows in (("fitted", real & ~held[:, None]), ("held", real & held[:, None])):
                if rows.any():
                    sums = self.sums.of(seen.kind)
                    sums.add(f"{seen.layer}/{part}/{which}", Regression.of(before[rows], outputs[rows]))

    def see_pass(self, passed: Pass) -> None:
        lens = passed.run.lens
        if lens is None:
            return
        for kind in self.sums.kinds:
            done = self.sums.of(kind).get("swapped")
            layers, rest = layers_of(lens, kind), self.swaps - (0 if done is None else int(done.count[0]))
            group = passed.batch.groups.get(SIDES[kind][0]) if kind in HIDDEN else None
            if isinstance(layers, str) or rest <= 0 or group is None:
                continue
            encoded = encoded_items(lens.subject, passed.batch.items[:rest], passed.run.length)
            states = final_states(lens, encoded, kind)
            if states is None or states.shape[1] > group.ids.shape[1]:
                continue
            sums, real = self.sums.of(kind), group.categories[:rest, : states.shape[1]] >= 0
            sums.add("swapped", Moments.of(np.ones((len(real), 1))))
            for pair in range(len(layers) - 1):
                if (kind, pair) in self.failed:
                    continue
                try:
                    with swapped(layers, pair):
                        other = final_states(lens, encoded, kind)
                except (RuntimeError, AttributeError, TypeError, ValueError, IndexError):
                    self.failed.add((kind, pair))  # these two do not run in each other's place
                    continue
                assert other is not None
                sums.add(f"{pair}/swap", Moments.of(changed(states, other)[real][:, None]))

    def shard(self) -> None:
        pass

    def settle(self) -> None:
        pass


def _held(ids: np.ndarray, lengths: np.ndarray) -> Bool[np.ndarray, " batch"]:
    """Which sequences are held out, by their tokens: the same in every run and in every batch."""
    codes = [zlib.crc32(np.ascontiguousarray(row[:n]).tobytes()) for row, n in zip(ids, lengths, strict=True)]
    return np.array([code % HELD == 0 for code in codes])


def _fits(result: Linearity) -> list[str]:
    if not result.r2:
        return ["No component could be fitted and tried."]
    means = [
        f"{number(mean_over(result.r2[name]))} (cosine {number(mean_over(result.cosine[name]))}) for "
        f"{COMPONENTS[name].phrase}"
        for name in result.r2
    ]
    lines = [
        f"The best linear map explains, as a mean of R² over layers, {listing(means)}, on {count(result.held)} "
        "held-out tokens."
    ]
    adding = [name for name in ("attention", "feedforward") if name in result.r2]
    if len(adding) == 2:
        least = min(adding, key=lambda name: float(mean_over(result.r2[name])))
        lines.append(f"What {COMPONENTS[least].phrase} adds is the less linear in a token’s own vector.")
    return lines


def _swaps(result: Linearity) -> list[str]:
    if not np.isfinite(result.swaps).any():
        return []
    high, low = int(np.nanargmax(result.swaps)), int(np.nanargmin(result.swaps))
    layers = result.layers
    return [
        f"Swapping two neighbouring layers turns the last hidden state by {number(mean_over(result.swaps))} (1 − cos, "
        f"mean over pairs and the tokens of {many(result.swapped, 'sequence')}): least with layers {layers[low]} and "
        f"{layers[low + 1]} ({number(result.swaps[low])}), most with layers {layers[high]} and {layers[high + 1]} "
        f"({number(result.swaps[high])})."
    ]


def _figures(result: Linearity) -> list[Exhibit]:
    figures: list[Exhibit] = []
    names = tuple(component.label for component in COMPONENTS.values())
    ticks = tuple(map(str, result.layers))
    if result.r2:
        panels = tuple(
            LinePanel(title, tuple(Series(COMPONENTS[name].label, line) for name, line in values.items()), top=1.0)
            for title, values in (
                ("R² of a linear map", result.r2),
                ("cosine of approximation and truth", result.cosine),
            )
        )
        figures.append(
            Lines(
                "linearity",
                "How well the best linear map gives what attention adds, what the feed-forward block adds, and the "
                "output of the layer, on held-out tokens. 1: the component is linear in the token’s own vector.",
                "Two panels of lines over layers.",
                panels,
                ticks=ticks,
                names=names,
            )
        )
    if np.isfinite(result.swaps).any():
        figures.append(
            Lines(
                "linearity_swaps",
                "How far the last hidden state turns when a layer and the next one change places; mean over tokens.",
                f"A line over pairs of layers from {number(np.nanmin(result.swaps))} to "
                f"{number(np.nanmax(result.swaps))}.",
                (LinePanel("1 − cos of the last hidden state", (Series("swapped", result.swaps),)),),
                x="layers",
                ticks=tuple(f"{a}, {b}" for a, b in pairwise(ticks)),
                names=("swapped",),
            )
        )
    return figures


def _tables(result: Linearity) -> list[Exhibit]:
    rows: list[Row] = []
    for place, layer in enumerate(result.layers):
        row: Row = {"layer": layer}
        for name in result.r2:
            row |= {f"{name}_r2": plain(result.r2[name][place]), f"{name}_cosine": plain(result.cosine[name][place])}
        row["swap"] = plain(result.swaps[place]) if place < len(result.swaps) else None
        rows.append(row)
    columns = [Column("layer", "layer", "count")]
    for part, what in (("r2", "R²"), ("cosine", "cosine")):
        columns += [Column(f"{name}_{part}", f"{what}, {COMPONENTS[name].short}") for name in result.r2]
    if np.isfinite(result.swaps).any():
        columns.append(Column("swap", "swapped with the next"))
    title = f"Linear maps fitted on {count(result.fitted)} tokens and tried on {count(result.held)}"
    return [Table("linearity", title, rows, tuple(columns))]
