"""Does a head find relation R? After Clark et al. (2019): labelled pairs of words, and the word of the largest weight.

For each labelled word, the other word that receives the most attention (or contributes the most) in a head is its
prediction. Maps are over words: the pieces of a key add up, those of a query are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from normlens.algebra import to_words
from normlens.exhibits import (
    Bar,
    Bars,
    Cell,
    Column,
    Exhibit,
    Row,
    Section,
    Table,
    count,
    head_name,
    listing,
    many,
    percent,
)
from normlens.statistics import Moments, Statistic
from normlens.studies.labelled_words import LEFT_OUT, OFFSETS, LabelledWords, labelled_words
from normlens.studies.means import extremes
from normlens.studies.per_head import MEASURES, HeadColumn, PerHead, by_measure, texts
from normlens.studies.seen import Facts, Seen
from normlens.studies.study import Study
from normlens.studies.sums import Sums, padded

SHOWN = 10  # relations in the figure
Z = 1.959964  # of a 95 % interval


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """One relation in one direction: how often each head finds the other word, and how often a fixed offset does."""

    name: str
    direction: str
    words: int  # that were asked
    accuracy: Mapping[str, Float[np.ndarray, "layer head"]]  # by measure
    offset: int  # the best
    baseline: float  # its accuracy

    def best(self, measure: str) -> tuple[int, int]:
        """Place of the layer, and number, of the head of the largest accuracy; the first of equals."""
        found = extremes(self.accuracy[measure])
        assert found is not None
        return found[0][0], found[0][1]

    def interval(self, accuracy: float) -> tuple[float, float]:
        """Wilson's 95 % interval of a share of the words."""
        n = self.words
        middle = (accuracy + Z**2 / (2 * n)) / (1 + Z**2 / n)
        half = Z / (1 + Z**2 / n) * math.sqrt(accuracy * (1 - accuracy) / n + Z**2 / (4 * n**2))
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, slots=True, eq=False)
class Relations:
    """Every relation in both directions, the most frequent first."""

    kind: str
    layers: tuple[int, ...]
    relations: tuple[Relation, ...]
    left_out: Mapping[str, int]  # by reason


class RelationsStudy(Study[Relations]):
    name, title = "relations", "Which heads find which relations between words?"
    paper = "Clark et al. (2019), section 4.2; norms, intervals and the second direction as it is here are ours"
    question = (
        "Clark et al. ask, for each relation of a treebank, whether a head attends most to the word at the other end. "
        "The same by contributions ‖αf(x)‖ shows whether that word is also the one that reaches the output most."
    )
    caution = (
        "the best of many heads is chosen on the same words that it is scored on, and so is the best offset: with few "
        "words the best head is high by chance, and the interval does not know of the choice. A head that finds a "
        "relation need not be used for it."
    )
    causal = "This attention is causal: words whose other end comes later cannot find it, and are not asked."

    def __init__(self, *, least: int = 20) -> None:
        self.least = least
        self.method = (
            "Pieces become words: their weights, or the shares ‖αf(x)‖ of the contributions of a query, are added over "
            "the pieces of a key and averaged over the pieces of a query. Words that the tokenizer does not keep "
            "apart, and those of one written token (French du), are one word (ours). The prediction of a word is the "
            "other word of the largest value: neither itself nor special tokens, as in Clark et al.",
            "Directions: the dependent predicts its head word, and the head word predicts its dependents, where any of "
            "those of the relation counts as found and each head word counts once (ours; Clark et al. turn the map "
            "around instead, and look for the head word from which a dependent receives most).",
            f"The baseline is the best fixed offset from −{max(OFFSETS)} to {max(OFFSETS)} words, found on the same "
            "words, as in Clark et al.; an offset beyond the text finds nothing (ours). Intervals are Wilson’s, "
            f"95 %. Sentences and the figure take relations of at least {many(least, 'word')} (ours).",
        )

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        if seen.block.tgt != seen.block.src or seen.block.src == "target":
            return {}
        lens = seen.run.lens
        assert lens is not None
        words = seen.src.once("labelled words", lambda group: labelled_words(group, lens.subject.tokenizer))
        queries, keys = words.queries.to(seen.weights), words.keys.to(seen.weights)
        visible = (to_words(seen.pairs.to(seen.weights), queries, keys) > 0).cpu().numpy()
        asked = np.asarray((visible[words.batch, words.query] & words.targets).any(axis=1))
        left_out = np.array([[*words.left_out, (~asked).sum()]], dtype=np.float64)
        statistics: dict[str, Statistic] = {"left_out": Moments.of(left_out)}
        for name, members in _grouped(words, asked):
            statistics[f"offset/{name}"] = Moments.of(words.offsets[members].astype(np.float64))
        for measure, maps in (("weights", seen.weights), ("norms", seen.contributions)):
            over_words = to_words(maps, queries, keys)
            over_words.diagonal(dim1=-2, dim2=-1).zero_()
            largest = over_words.max(dim=-1)
            chosen = largest.indices.cpu().numpy()[words.batch, :, words.query]  # (example, head)
            found = np.take_along_axis(words.targets, chosen, axis=1)
            found &= largest.values.cpu().numpy()[words.batch, :, words.query] > 0
            for name, members in _grouped(words, asked):
                statistics[f"{measure}/{name}"] = Moments.of(found[members].astype(np.float64))
        return statistics

    def result(self, sums: Sums, run: Facts) -> Relations:
        layers, left_out = sums.by_layer("left_out")
        names = dict.fromkeys(key.split("/", 2)[2] for key in sums if key.split("/", 2)[1] == "offset")
        relations = []
        for name in names:
            direction, _, relation = name.partition("/")
            offsets = sums.by_layer(f"offset/{name}")[1][0]
            accuracy = {}
            for measure in MEASURES:
                by_layer = dict(zip(*sums.by_layer(f"{measure}/{name}"), strict=True))
                rows = [by_layer[layer].mean if layer in by_layer else np.full(1, np.nan) for layer in layers]
                accuracy[measure] = padded(rows)
            best = int(offsets.mean.argmax())
            relations.append(
                Relation(relation, direction, int(offsets.count[0]), accuracy, OFFSETS[best], float(offsets.mean[best]))
            )
        relations.sort(key=lambda one: (-one.words, one.name, one.direction))
        first = left_out[0]
        counts = np.rint(first.mean * first.count).astype(int).tolist()
        return Relations(sums.kind, layers, tuple(relations), dict(zip(LEFT_OUT, counts, strict=True)))

    def per_head(self, result: Relations) -> PerHead | None:
        judged = [one for one in result.relations if one.words >= self.least]
        if not judged:
            return None
        names, accuracies = {}, {}
        for measure in MEASURES:
            values = np.stack([one.accuracy[measure] for one in judged])
            gains = np.nan_to_num(values - np.array([one.baseline for one in judged])[:, None, None], nan=-1.0)
            best, gain = gains.argmax(axis=0), gains.max(axis=0)
            labels = [f"{one.name}, {one.direction}" for one in judged]
            names[measure] = texts(
                [
                    [labels[b] if g > 0 else "" for b, g in zip(*row, strict=True)]
                    for row in zip(best, gain, strict=True)
                ]
            )
            accuracies[measure] = np.where(gain > 0, np.take_along_axis(values, best[None], axis=0)[0], np.nan)
        columns = [
            HeadColumn(f"relation_{measure}", f"relation by {symbol}", names[measure], "text")
            for measure, symbol in MEASURES.items()
        ]
        return PerHead(result.layers, (*columns, *by_measure("relation_accuracy", "accuracy", accuracies, "percent")))

    def section(self, result: Relations, run: Facts) -> Section:
        notes = [
            f"{many(n, 'pair')} {text}"
            for text, n in zip(LEFT_OUT.values(), result.left_out.values(), strict=True)
            if n
        ]
        if not result.relations:
            return Section(["No labelled pair could be asked for."], (), notes)
        exhibits: list[Exhibit] = [_table(result)]
        judged = [one for one in result.relations if one.words >= self.least]
        if not judged:
            return Section([f"No relation has {many(self.least, 'labelled word')}."], exhibits, notes)
        exhibits.insert(0, _bars(judged))
        heads = self.per_head(result)
        if heads is not None:
            exhibits.append(
                heads.table("relations_heads", "The relation in which each head is furthest above the offset")
            )
        return Section(_sentences(result, judged), exhibits, notes)


def _grouped(words: LabelledWords, asked: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """The examples of every relation and direction that can be asked, where there are any."""
    groups = [(name, np.flatnonzero((words.name == place) & asked)) for place, name in enumerate(words.names)]
    return [(name, members) for name, members in groups if len(members)]


def _best(result: Relations, one: Relation, measure: str) -> tuple[str, float]:
    place, head = one.best(measure)
    return head_name(result.layers[place], head), float(one.accuracy[measure][place, head])


def _sentences(result: Relations, judged: list[Relation]) -> list[str]:
    above = {
        measure: [one for one in judged if one.interval(_best(result, one, measure)[1])[0] > one.baseline]
        for measure in MEASURES
    }
    same = sum(one.best("weights") == one.best("norms") for one in judged)
    total = f"{count(len(judged))} relations and directions of enough words"
    lines = [
        f"Of {total}, the best head is clearly above the best fixed offset in {len(above['weights'])} by attention "
        f"weights and in {len(above['norms'])} by contributions; in {same} both choose the same head."
    ]
    top = sorted(above["weights"], key=lambda one: one.baseline - _best(result, one, "weights")[1])[:3]
    for one in top:
        said = []
        for measure, symbol in MEASURES.items():
            head, accuracy = _best(result, one, measure)
            low, high = one.interval(accuracy)
            said.append(f"{head} finds {percent(accuracy)} by {symbol} ({percent(low)} to {percent(high)})")
        lines.append(
            f"{one.name}, {one.direction}, {many(one.words, 'word')}: {listing(said)}; the best fixed offset, "
            f"{_signed(one.offset)}, finds {percent(one.baseline)}."
        )
    return lines


def _signed(offset: Cell) -> str:
    return f"{offset:+d}".replace("-", "−")


def _rows(result: Relations) -> list[Row]:
    rows: list[Row] = []
    for one in result.relations:
        row: Row = {"relation": one.name, "direction": one.direction, "words": one.words}
        for measure in MEASURES:
            head, accuracy = _best(result, one, measure)
            low, high = one.interval(accuracy)
            row |= {f"head_{measure}": head, f"accuracy_{measure}": accuracy}
            row |= {f"low_{measure}": low, f"high_{measure}": high}
        rows.append(row | {"offset": one.offset, "baseline": one.baseline})
    return rows


def _table(result: Relations) -> Table:
    columns = [Column("relation", "relation", "text"), Column("direction", "direction", "text")]
    columns.append(Column("words", "words", "count"))
    for measure, symbol in MEASURES.items():

        def interval(row: Row, measure: str = measure) -> str:
            return f"{percent(row[f'low_{measure}'])} to {percent(row[f'high_{measure}'])}"  # pyright: ignore

        columns += [
            Column(f"head_{measure}", f"best by {symbol}", "text"),
            Column(f"accuracy_{measure}", "finds", "percent"),
            Column(f"low_{measure}", "95 %", write=interval),
        ]
    columns.append(Column("offset", "offset", write=lambda row: _signed(row["offset"])))
    columns.append(Column("baseline", "finds", "percent"))
    return Table(
        "relations", "The best head and the best fixed offset for every relation", _rows(result), tuple(columns)
    )


def _bars(judged: list[Relation]) -> Bars:
    bars = []
    for one in judged[:SHOWN]:
        for measure, symbol in MEASURES.items():
            accuracy = float(one.accuracy[measure][one.best(measure)])
            bars.append(Bar(f"{one.name}, {one.direction}", accuracy, *one.interval(accuracy), group=symbol))
        bars.append(Bar(f"{one.name}, {one.direction}", one.baseline, group="best offset"))
    return Bars(
        "relations",
        f"Accuracy of the best head by α and by ‖αf(x)‖, with 95 % intervals, and of the best fixed offset, for the "
        f"{many(min(SHOWN, len(judged)), 'relation')} of the most words.",
        ", ".join(f"{bar.name}, {bar.group}: {percent(bar.value)}" for bar in bars),
        tuple(bars),
        "share of the words that are found",
    )
