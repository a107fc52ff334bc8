"""What does each component change in the map of a layer? Macro and micro changes of Kobayashi et al. (2024).

    attention → residual → norm → feed-forward block → last norm

Macro: 1 - Spearman's ρ of the map before and after a component, all pairs of a query and a key as one long list. Micro:
the share of a key in the contributions to a query, after minus before; the pairs of tokens with the largest gain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from normlens.exhibits import Column, LinePanel, Lines, Row, Section, Series, Table, listing, many, number, plain
from normlens.lens import Block, Lens
from normlens.statistics import Moments, Sample
from normlens.studies.batches import Group, encoded_items
from normlens.studies.means import mean_over, spearman
from normlens.studies.run import spelled
from normlens.studies.seen import Facts, Pass, Seen
from normlens.studies.states import why_absent
from normlens.studies.study import Study, StudyError
from normlens.studies.sums import Sums

CHAIN = ("summed_norms", "residual_norms", "normed_norms", "joined_norms", "output_norms")
STEPS = {  # what stands between a map and the one before it
    "residual_norms": "residual",
    "normed_norms": "norm",
    "joined_norms": "feed-forward block",
    "output_norms": "last norm",
}
BOTH = "feed-forward block and last norm"
MOST = 200  # pairs kept for each layer and component
SHOWN = 4  # pairs of types on the page, for each component


@dataclass(frozen=True, slots=True)
class Gain:
    """A pair of token types whose key gains a share of the contributions to its query."""

    layer: int
    query: str
    key: str
    gain: float  # the largest of its occurrences
    occurrences: int  # among the pairs that gain most


@dataclass(frozen=True, slots=True, eq=False)
class Amplification:
    """How much each component changes the map of its layer; NaN where a layer lacks it."""

    kind: str
    layers: tuple[int, ...]
    sequences: int
    changes: Mapping[str, Float[np.ndarray, " layer"]]  # mean 1 - ρ over sequences, by component
    gains: Mapping[str, tuple[Gain, ...]]  # by component, the largest first
    missing: Mapping[str, str]  # maps that no layer has, and why


class AmplificationStudy(Study[Amplification]):
    name, title = "amplification", "What does each component change in the map of a layer?"
    paper = "Kobayashi et al. (2024), Analyzing Feed-Forward Blocks in Transformers"
    question = (
        "Residual, norm and feed-forward block come after attention. Does the order of the contributions survive them, "
        "and which pairs of tokens does a component strengthen?"
    )
    caution = (
        "only the first sequences are measured, because the map behind the feed-forward block is expensive: the "
        "sentences say how many. The residual changes a map by its diagonal alone. Feed-forward blocks are shared out "
        "in proportion, with biases owned by no token, which the paper’s abstract leaves open. A gain is a share of "
        "lengths; it says nothing of what the vectors mean."
    )
    method = (
        "Maps: what attention adds, ‖Σ_h αf(x)‖; with the residual; after the norm; with the feed-forward block and "
        "its residual; after the last norm. A component that a model lacks is left out of the chain. Because a norm "
        "may undo what the feed-forward block did, both are also taken as one step. Macro: 1 − Spearman’s "
        "ρ of the two maps over all pairs that may see each other, one number for each sequence, then the mean.",
        "Micro: each row of a map is divided by its sum; the gain of a pair is its share after minus its share before. "
        "Pairs of a token with itself are left out. Listed are the types of the pairs with the largest single gains "
        f"({MOST} pairs are kept for each layer and component).",
        "The study makes passes of its own over the first sequences that reach it (items=16; the longest of a shard of "
        "64 come first).",
    )

    def __init__(self, *, items: int = 16) -> None:
        if items < 1:
            raise StudyError("items must be at least 1.", got=f"{items}")
        self.items = items

    def counter(self, sums: Sums, run: Facts) -> AmplificationCounter:
        return AmplificationCounter(sums, self.items)

    def result(self, sums: Sums, run: Facts) -> Amplification:
        layers, tokens = sums.by_layer("seen")
        changes, gains = {}, {}
        tokenizer = None if run.lens is None else run.lens.subject.tokenizer
        for step in (*dict.fromkeys(STEPS.values()), BOTH):
            there, moments = sums.by_layer(f"{step}/change")
            if not there:
                continue
            changes[step] = np.full(len(layers), np.nan)
            for layer, one in zip(there, moments, strict=True):
                changes[step][layers.index(layer)] = one.mean[0] if one.count[0] else np.nan
            found: list[Gain] = []
            for layer, top in zip(*sums.by_layer(f"{step}/gains"), strict=True):
                found += _typed(layer, top.rows, tokenizer)
            gains[step] = tuple(sorted(found, key=lambda one: (-one.gain, one.layer, one.query, one.key)))
        ends = ("joined_norms", "output_norms")  # one of them where they are the same
        absent = {
            name: why_absent(run, sums.kind, name)
            for name in CHAIN[1:]
            if not any(sums.by_layer(one)[0] for one in (ends if name in ends else (name,)))
        }
        absent.pop("joined_norms", None)
        return Amplification(sums.kind, layers, int(tokens[0].count[0]), changes, gains, absent)

    def section(self, result: Amplification, run: Facts) -> Section:
        notes = [f"'{name}' does not exist here: {why}." for name, why in result.missing.items()]
        if not result.changes:
            return Section(["No component follows attention in a way that can be split."], [], notes)
        return Section(_sentences(result), [_lines(result), *_tables(result)], notes)


class AmplificationCounter:
    """Passes of its own over the first sequences."""

    def __init__(self, sums: Sums, items: int) -> None:
        self.sums, self.items = sums, items
        self.kinds: set[str] = set()

    def see(self, seen: Seen) -> None:
        if seen.block.tgt == seen.block.src:
            self.kinds.add(seen.kind)

    def see_pass(self, passed: Pass) -> None:
        lens = passed.run.lens
        done = max((int(self.sums.of(kind).by_layer("seen")[1][0].count[0]) for kind in self.sums.kinds), default=0)
        rest = self.items - done
        if rest <= 0 or lens is None:
            return
        encoded = encoded_items(lens.subject, passed.batch.items[:rest], passed.run.length)

        def on_block(block: Block) -> None:
            group = passed.batch.groups.get(block.tgt)
            if group is not None:
                _count(self.sums.of(block.kind), block, group)

        lens.observe(encoded, on_block, kinds=tuple(self.kinds), fields=("visible", *fields(lens)))

    def shard(self) -> None:
        pass

    def settle(self) -> None:
        pass


def fields(lens: Lens) -> tuple[str, ...]:
    """The maps to compute: none twice where a layer ends with its feed-forward block."""
    numbers = [wire.path.numbers for wire in lens.wires if wire.exact]
    same = all(one.get("joined") == one.get("output") for one in numbers if "joined" in one)
    return tuple(
        name for name in CHAIN if not (same and name == "output_norms" and any("joined" in n for n in numbers))
    )


def _count(sums: Sums, block: Block, group: Group) -> None:
    maps = [(name, block[name]) for name in CHAIN if name in block.kept]
    pairs = (block["visible"] > 0).cpu().numpy()
    sums.add(f"{block.layer}/seen", Moments.of(np.ones((len(pairs), 1))))
    for name, _ in maps[1:]:
        sums.add(f"{block.layer}/{name}", Moments.of(np.ones((len(pairs), 1))))
    for step, before, after in _steps(maps):
        one, two = (part.cpu().double().numpy() for part in (before, after))
        for index, there in enumerate(pairs):
            rows, keys = block.sizes[index]
            seen = there[:rows, :keys]
            first, second = one[index, :rows, :keys], two[index, :rows, :keys]
            change = np.array([[1 - spearman(first[seen], second[seen])]])
            sums.add(f"{block.layer}/{step}/change", Moments.of(change, np.isfinite(change)))
            sums.add(f"{block.layer}/{step}/gains", largest(first, second, seen, group.ids[index]))


def _steps(maps: list[tuple[str, Tensor]]) -> list[tuple[str, Tensor, Tensor]]:
    """The components between the maps of a block, and the maps before and after each."""
    names, steps = [name for name, _ in maps], []
    for (_, before), (name, after) in pairwise(maps):
        if name == "output_norms" and "joined_norms" not in names:
            name = "joined_norms"  # the feed-forward block stands beside the attention
        if not torch.equal(before, after):
            steps.append((STEPS[name], before, after))
    if names[-2:] == ["joined_norms", "output_norms"] and len(names) > 2 and steps[-1][0] == STEPS["output_norms"]:
        steps.append((BOTH, maps[-3][1], maps[-1][1]))
    return steps


def largest(
    before: Float[np.ndarray, "tgt src"],
    after: Float[np.ndarray, "tgt src"],
    seen: Bool[np.ndarray, "tgt src"],
    ids: np.ndarray,
) -> Sample:
    """The pairs of different positions whose share grows most: query, key, gain."""
    shares = [np.where(seen, part, 0.0) for part in (before, after)]
    shares = [part / np.maximum(part.sum(axis=1, keepdims=True), np.finfo(float).tiny) for part in shares]
    gain = shares[1] - shares[0]
    query, key = np.nonzero(seen & ~np.eye(*seen.shape, dtype=bool))
    rows = np.column_stack([ids[query], ids[key], gain[query, key]]).astype(np.float64)
    return Sample.largest(rows, rows[:, 2], size=MOST)


def _typed(layer: int, rows: Float[np.ndarray, "pair 3"], tokenizer: object) -> list[Gain]:
    """One gain for each pair of types."""
    found: dict[tuple[int, int], list[float]] = {}
    for query, key, gain in rows:
        if gain > 0:
            found.setdefault((int(query), int(key)), []).append(float(gain))
    return [
        Gain(layer, spelled(tokenizer, [query])[0], spelled(tokenizer, [key])[0], max(gains), len(gains))
        for (query, key), gains in found.items()
    ]


def _sentences(result: Amplification) -> list[str]:
    means = {step: float(mean_over(values)) for step, values in result.changes.items()}
    most = max(means, key=lambda step: means[step] if np.isfinite(means[step]) and step != BOTH else -1.0)
    lines = [
        f"The {most} changes the map most: 1 − ρ of the maps before and after is "
        + listing([f"{number(mean)} for the {step}" for step, mean in means.items()])
        + f", means over layers and the first {many(result.sequences, 'sequence')}."
    ]
    for step, gains in result.gains.items():
        if gains and step not in ("residual", BOTH):
            one = gains[0]
            lines.append(
                f"The {step} strengthens most what “{one.key}” contributes to “{one.query}”, in layer {one.layer}: "
                f"its share of the contributions grows by {number(100 * one.gain)} points."
            )
    return lines


def _lines(result: Amplification) -> Lines:
    return Lines(
        "amplification",
        "How much each component changes the order of the contributions in a layer: 1 − ρ of the maps before and after "
        "it, mean over sequences. 0: the order stays.",
        "Lines over layers.",
        (LinePanel("1 − ρ of the maps", tuple(Series(step, line) for step, line in result.changes.items())),),
        ticks=tuple(map(str, result.layers)),
        names=(*STEPS.values(), BOTH),
    )


def _tables(result: Amplification) -> list[Table]:
    rows: list[Row] = [
        {"layer": layer, **{_key(step): plain(line[place]) for step, line in result.changes.items()}}
        for place, layer in enumerate(result.layers)
    ]
    columns = (Column("layer", "layer", "count"), *(Column(_key(step), step) for step in result.changes))
    gains: list[Row] = [
        {
            "component": step,
            "layer": one.layer,
            "query": one.query,
            "key": one.key,
            "gain": plain(one.gain),
            "occurrences": one.occurrences,
        }
        for step, found in result.gains.items()
        for one in found
    ]
    shown: list[Row] = [row for step in result.gains for row in [g for g in gains if g["component"] == step][:SHOWN]]
    title = f"1 − ρ of the maps before and after each component, {many(result.sequences, 'sequence')}"
    heads = (
        Column("layer", "layer", "count"),
        Column("query", "query", "token"),
        Column("key", "key", "token"),
        Column("gain", "gain of the share"),
    )
    return [
        Table("amplification", title, rows, columns),
        Table("amplification_pairs", "Pairs of types with the largest gain", shown, heads, group="component"),
        Table("amplification_all_pairs", "every pair kept", gains, shown=0),
    ]


def _key(step: str) -> str:
    return step.replace(" ", "_").replace("-", "")
