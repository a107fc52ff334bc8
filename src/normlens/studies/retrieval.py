"""Which heads retrieve? A needle is planted in every text and repeated at its end.

At token t of the repeated needle, a head retrieves when its top key lies inside the planted needle, and it copies when
that key is token t + 1 there, the one that comes next. Top keys by α and by ‖αf(x)‖.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from normlens.corpora import Corpus
from normlens.exhibits import Column, Grid, Grids, Row, Section, Table, count, hatched, many, percent, plain
from normlens.lens import Lens
from normlens.statistics import Moments, Statistic
from normlens.studies.batches import Group
from normlens.studies.per_head import MEASURES, HeadColumn, PerHead, by_measure, few_names
from normlens.studies.planted import Needle, needle_of, planted
from normlens.studies.seen import Facts, Pass, Seen
from normlens.studies.study import Study, StudyError
from normlens.studies.sums import Sums, padded

RATES = ("inside", "next", "elsewhere")


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where things are in one planted text."""

    needle: int
    copy: int
    elsewhere: int  # a window of the needle's length at random in the haystack
    depth: float  # how much of the haystack is before the needle


@dataclass(frozen=True, slots=True, eq=False)
class Retrieval:
    """How often the top key of a head lies inside the needle, on the next token, or in the window elsewhere."""

    kind: str
    layers: tuple[int, ...]
    depths: tuple[float, ...]
    texts: int
    rates: Mapping[tuple[str, str], Float[np.ndarray, "layer head"]]  # by (rate, measure)
    at_depth: Mapping[str, Float[np.ndarray, "layer head depth"]]  # by measure: inside
    chance: tuple[float, float]  # inside and next, for a key drawn at random among those that a query sees
    predicted: float | None  # how often the model itself predicts the next token; None where it is no language model


class RetrievalStudy(Study[Retrieval]):
    name, title = "retrieval", "Which heads retrieve a planted needle?"
    paper = "retrieval heads (Wu et al., 2024), with a needle that is repeated; norms, places and chance are ours"
    question = (
        "A sentence is planted in every text and repeated at its end. A head that retrieves has its top key inside the "
        "planted sentence while the model reads the repetition."
    )
    caution = (
        "the repetition is read, not written by the model, so a head can retrieve what the model would not say. In an "
        "encoder a query sees the whole repetition too, so there a top key inside the needle means less."
    )
    causal = ""

    def __init__(
        self,
        *,
        needle: str = "The old key is hidden under the blue stone next to the well.",
        question: str = "Now we say it again.",
        depths: tuple[float, ...] = (0.1, 0.5, 0.9),
        bound: float = 0.1,  # of a retrieval head
    ) -> None:
        self.needle, self.question, self.depths, self.bound = needle, question, tuple(depths), bound
        self.method = (
            f"The needle is “{needle}”. It is planted after the end of a sentence, at depths that alternate from text "
            f"to text, and repeated at the end after “{question}”. At every token of the repetition but the last, the "
            "top key of a head is the one with the largest α, or with the largest ‖αf(x)‖. Rates are means over these "
            "queries, then over texts: the top key is inside the needle; it is the token there that comes next; it is "
            "in a window of the same length at a random place of the haystack.",
            f"A head whose top key is the next token for at least {percent(bound)} of the queries is called a "
            "retrieval head, after Wu et al. All else is ours.",
        )

    def prepared(self, corpus: Corpus, lens: Lens, length: int) -> Corpus:
        texts = {"needle": self.needle, "question": self.question}
        return planted(corpus, lens.subject, **texts, depths=self.depths, length=length)

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        if seen.kind != "self":
            return {}
        needle = self._needle(seen.run)
        places = seen.src.once(f"needles of {self.name}", lambda group: _all_places(group, needle, seen.run.seed))
        seen.src.once("needles are causal", lambda _: seen.causal)
        rows = [row for row, place in enumerate(places) if place is not None]
        there = [place for place in places if place is not None]
        size, heads = len(needle.ids), seen.weights.shape[1]
        depth = np.array([int(np.abs(np.array(self.depths) - place.depth).argmin()) for place in there], int)
        at_depth = (depth[:, None] == np.arange(len(self.depths)))[:, None]
        present = np.broadcast_to(at_depth, (len(rows), heads, len(self.depths)))
        maps_of = {"weights": seen.weights.abs(), "norms": seen.weighted_norms}
        statistics: dict[str, Statistic] = {}
        for measure in MEASURES:
            rates = np.zeros((len(rows), heads, len(RATES)))
            for place, (row, at) in enumerate(zip(rows, there, strict=True)):
                top = maps_of[measure][row, :, at.copy : at.copy + size - 1].argmax(dim=-1).cpu().numpy()
                hits = (
                    (top >= at.needle) & (top < at.needle + size),
                    top == at.needle + 1 + np.arange(size - 1),
                    (top >= at.elsewhere) & (top < at.elsewhere + size),
                )
                rates[place] = np.stack([hit.mean(axis=1) for hit in hits], axis=-1)
            statistics[f"rates_{measure}"] = Moments.of(rates)
            inside = np.broadcast_to(rates[..., :1], present.shape)
            statistics[f"at_depth_{measure}"] = Moments.of(inside, present)
        visible, steps = seen.pairs.cpu().numpy(), np.arange(size - 1)
        shares = []
        for row, at in zip(rows, there, strict=True):
            keys = visible[row, at.copy : at.copy + size - 1]
            meant = keys[:, at.needle : at.needle + size].sum(axis=1), keys[steps, at.needle + 1 + steps]
            shares.append([np.mean(each / np.maximum(keys.sum(axis=1), 1)) for each in meant])
        statistics["chance"] = Moments.of(np.array(shares, float).reshape(-1, 2))
        return statistics

    def see_pass(self, passed: Pass) -> Mapping[tuple[str, int], Mapping[str, Statistic]]:
        group = passed.batch.groups.get("text")
        logits = getattr(passed.output, "logits", None)
        if group is None or not group.kept.get("needles are causal") or not isinstance(logits, Tensor):
            return {}
        if logits.shape[:2] != group.ids.shape:
            return {}
        size, right = len(self._needle(passed.run).ids), []
        for row, at in enumerate(group.kept[f"needles of {self.name}"]):
            if at is not None:
                guessed = logits[row, at.copy : at.copy + size - 1].argmax(dim=-1).cpu().numpy()
                right.append(np.mean(guessed == group.ids[row, at.copy + 1 : at.copy + size]))
        return {("self", 0): {"predicted": Moments.of(np.array(right, float)[:, None])}}

    def _needle(self, run: Facts) -> Needle:
        lens = run.lens
        assert lens is not None
        return run.once(f"needle of {self.name}", lambda: needle_of(lens.subject, self.needle, self.question))

    def result(self, sums: Sums, run: Facts) -> Retrieval:
        layers, moments = sums.by_layer("rates_weights")
        if not int(moments[0].count.max()):
            raise StudyError("No text holds the needle.", cause="the corpus was not prepared by this study.")
        rates, at_depth = {}, {}
        for measure in MEASURES:
            for place, name in enumerate(RATES):
                rates[name, measure] = padded([m.mean[:, place] for m in sums.by_layer(f"rates_{measure}")[1]])
            found = sums.by_layer(f"at_depth_{measure}")[1]
            at_depth[measure] = padded([np.where(m.count > 0, m.mean, np.nan) for m in found])
        predicted = sums.get("0/predicted")
        inside, on_next = np.mean([moments.mean for moments in sums.by_layer("chance")[1]], axis=0)
        return Retrieval(
            kind=sums.kind,
            layers=layers,
            depths=self.depths,
            texts=int(moments[0].count.max()),
            rates=rates,
            at_depth=at_depth,
            chance=(float(inside), float(on_next)),
            predicted=None if predicted is None else predicted.mean.item(),
        )

    def per_head(self, result: Retrieval) -> PerHead:
        columns: list[HeadColumn] = []
        for name, column, heading in zip(
            RATES,
            ("retrieval", "retrieval_next", "retrieval_elsewhere"),
            ("in the needle", "next token", "elsewhere"),
            strict=True,
        ):
            columns += by_measure(column, heading, {m: result.rates[name, m] for m in MEASURES}, "percent")
        return PerHead(result.layers, tuple(columns))

    def section(self, result: Retrieval, run: Facts) -> Section:
        table = self.per_head(result).table(
            "retrieval", "How often the top key of each head lies where", by="retrieval_norms", shown=12
        )
        notes = []
        if result.kind not in run.causal:
            notes.append("This attention is not causal: a query sees the whole repetition too.")
        return Section(_sentences(result, self), [_maps(result), _depths(result), table], notes)


def _all_places(group: Group, needle: Needle, seed: int) -> list[Places | None]:
    return [_places(ids[:length], needle, seed) for ids, length in zip(group.ids, group.lengths, strict=True)]


def _places(ids: Int[np.ndarray, " token"], needle: Needle, seed: int) -> Places | None:
    """Where the needle is in a text, the first time and the last; None where it is not twice."""
    size = len(needle.ids)
    windows = np.lib.stride_tricks.sliding_window_view(ids, size) if len(ids) >= size else np.zeros((0, size))
    matches = np.flatnonzero((windows == np.array(needle.ids)).all(axis=1))
    if len(matches) < 2:
        return None
    start, copy = int(matches[0]), int(matches[-1])
    begin, end = len(needle.before), copy - len(needle.question)
    free = [at for at in range(begin, end - size + 1) if at + size <= start or at >= start + size]
    if not free:
        return None
    random = np.random.default_rng([seed, *ids.tolist()])
    return Places(start, copy, int(random.choice(free)), (start - begin) / max(end - begin - size, 1))


def _retrieving(result: Retrieval, measure: str, bound: float) -> list[tuple[int, int]]:
    values = np.nan_to_num(result.rates["next", measure])
    cells: Bool[np.ndarray, "layer head"] = values >= bound
    return sorted(((int(a), int(b)) for a, b in np.argwhere(cells)), key=lambda cell: -float(values[cell]))


def _sentences(result: Retrieval, study: RetrievalStudy) -> list[str]:
    heads = int(np.isfinite(result.rates["inside", "weights"]).sum())
    lines = []
    for measure, symbol in MEASURES.items():
        cells = _retrieving(result, measure, study.bound)
        named = f" ({few_names(result.layers, cells)})" if cells else ""
        inside = result.rates["inside", measure]
        layer, head = np.unravel_index(np.nanargmax(inside), inside.shape)
        cell = int(layer), int(head)
        lines.append(
            f"Retrieval heads by {symbol}: {len(cells)} of {count(heads)}{named}. The most "
            f"inside the needle is {percent(inside[cell])} of the top keys "
            f"({few_names(result.layers, [cell])}); {percent(result.rates['elsewhere', measure][cell])} of them are in "
            "the window elsewhere."
        )
    lines.append(
        f"Over {many(result.texts, 'text')}, a key drawn at random would be inside the needle for "
        f"{percent(result.chance[0])} of the queries and the next token for {percent(result.chance[1])}."
    )
    if result.predicted is not None:
        lines.append(
            f"The model itself predicts the next token of the needle for {percent(result.predicted)} of these queries."
        )
    return lines


def _maps(result: Retrieval) -> Grids:
    values = {measure: result.rates["next", measure] for measure in MEASURES}
    return Grids(
        "retrieval",
        "How often the top key is the next token of the planted needle, by α (left) and by ‖αf(x)‖ (right), on scales "
        "from 0 to 1." + hatched(values["weights"]),
        f"Two maps, layer by head. The largest is {percent(np.nanmax(values['weights']))} by α and "
        f"{percent(np.nanmax(values['norms']))} by ‖αf(x)‖.",
        (
            Grid("next token: α", values["weights"], "weight", 1.0),
            Grid("next token: ‖αf(x)‖", values["norms"], "norm", 1.0),
        ),
        tuple(map(str, result.layers)),
    )


def _depths(result: Retrieval) -> Table:
    rows: list[Row] = []
    for place, depth in enumerate(result.depths):
        row: Row = {"depth": plain(depth)}
        for measure in MEASURES:
            values = result.at_depth[measure][..., place]
            there = np.isfinite(values).any()
            row[f"highest_{measure}"] = plain(np.nanmax(values)) if there else None
            row[f"mean_{measure}"] = plain(np.nanmean(values)) if there else None
        rows.append(row)
    columns = [Column("depth", "depth", "percent")]
    for measure, symbol in MEASURES.items():
        columns += [
            Column(f"highest_{measure}", f"best head {symbol}", "percent"),
            Column(f"mean_{measure}", f"mean {symbol}", "percent"),
        ]
    return Table("retrieval_depths", "Top keys inside the needle by its depth", rows, tuple(columns))
