"""How different are the maps of two models, head by head? After Kovaleva et al. (2019): before and after fine-tuning.

cosine(h) = mean over sequences of A·B / (‖A‖ ‖B‖)        A, B: the flattened maps of head h in the two models
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from normlens.exhibits import (
    Grid,
    Grids,
    LinePanel,
    Lines,
    Section,
    Series,
    hatched,
    head_name,
    listing,
    number,
    span,
    top_of,
)
from normlens.lens import Block, Lens, load
from normlens.models import Encoded
from normlens.statistics import Moments
from normlens.studies.batches import encoded_items
from normlens.studies.divergence import distributions, divergence
from normlens.studies.means import extremes, mean_over
from normlens.studies.per_head import MEASURES, PerHead, by_measure
from normlens.studies.seen import Facts, Pass, Seen, seen_block
from normlens.studies.study import Study, StudyError
from normlens.studies.sums import Sums, padded

LAST = 2  # layers that change most in the paper
FIELDS = ("weights", "transformed_norms", "visible")


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """How alike the maps of every head are in two models; means over sequences, by measure."""

    kind: str
    layers: tuple[int, ...]
    other: str  # the other model
    sequences: int
    cosine: Mapping[str, Float[np.ndarray, "layer head"]]
    divergence: Mapping[str, Float[np.ndarray, "layer head"]]  # Jensen-Shannon, in nats


class ChangesStudy(Study[Changes]):
    name, title = "changes", "How different are the maps of two models?"
    paper = "Kovaleva et al. (2019), section 4.3; the divergence and the norms are ours"
    question = (
        "Kovaleva et al. compare the attention maps of a model before and after fine-tuning and find the largest "
        "changes in the last two layers. The same of the contributions ‖αf(x)‖ shows whether what reaches the output "
        "changed as well."
    )
    caution = (
        "only heads of the same number are compared: a head whose work moved to another head counts as changed. "
        "Contributions are shares of a query, so a head that writes longer vectors everywhere is unchanged here."
    )
    method = (
        "Both models read the same tokens. For each sequence and head the cosine of the two maps, taken as long "
        "vectors, and the mean over queries of the Jensen-Shannon divergence of their rows, in nats; then the mean "
        "over sequences. For contributions the map holds ‖αf(x)‖ divided by its sum over the keys. Layers and heads "
        "that only one of the models has are left out.",
    )

    def __init__(self, *, other: Lens | str | Path | None = None) -> None:
        self.given = other
        self.other = load(other) if isinstance(other, str | Path) else other
        subject = None if self.other is None else self.other.subject
        self.label = "" if subject is None else f"{subject.name}@{subject.revision}"

    def __str__(self) -> str:
        return f"{self.name}(other={self.label})" if self.label else self.name

    def counter(self, sums: Sums, run: Facts) -> _Compared:
        if self.other is None:
            raise StudyError(
                "The second model is missing.",
                do="give a folder or a hub id, --set other=tuned-model; in Python, ChangesStudy(other=...).",
            )
        if run.lens is not None and run.lens.subject.is_seq2seq != self.other.subject.is_seq2seq:
            raise StudyError(
                "One model reads one text and writes another, the other model has one side.",
                got=f"{run.model} and {self.label}",
                do="compare two models of the same type.",
            )
        lens = self.other
        if run.lens is not None and self.given is not lens and _precision(run.lens) != _precision(lens):
            dtype, device = _precision(run.lens)
            lens = load(self.given, dtype=dtype, device=device)  # pyright: ignore[reportArgumentType]
        return _Compared(lens, self.label, sums)

    def result(self, sums: Sums, run: Facts) -> Changes:
        layers, first = sums.by_layer("cosine_weights")
        values = {
            (name, measure): padded(
                [np.where(m.count > 0, m.mean, np.nan) for m in sums.by_layer(f"{name}_{measure}")[1]]
            )
            for name in ("cosine", "divergence")
            for measure in MEASURES
        }
        return Changes(
            sums.kind,
            layers,
            self.label,
            int(first[0].count.max()),
            {measure: values["cosine", measure] for measure in MEASURES},
            {measure: values["divergence", measure] for measure in MEASURES},
        )

    def per_head(self, result: Changes) -> PerHead:
        cosine = by_measure("change_cosine", "cosine", result.cosine)
        return PerHead(result.layers, (*cosine, *by_measure("change_divergence", "divergence", result.divergence)))

    def section(self, result: Changes, run: Facts) -> Section:
        table = self.per_head(result).table("changes", "Cosine and divergence of the maps of every head")
        return Section(_sentences(result, run.model), [_lines(result), _maps(result), table], _notes(result, run, self))


class _Compared:
    """Keeps the maps of one pass, and compares them with those of the other model block by block."""

    def __init__(self, other: Lens, label: str, sums: Sums) -> None:
        self.other, self.label, self.sums = other, label, sums
        self.kept: dict[tuple[str, int], Seen] = {}

    def see(self, seen: Seen) -> None:
        self.kept[seen.kind, seen.layer] = replace(seen, kept={})

    def see_pass(self, passed: Pass) -> None:
        run = passed.run

        def on_block(block: Block) -> None:
            mine = self.kept.pop((block.kind, block.layer), None)
            if mine is not None and block.weights.shape[2:] == mine.weights.shape[2:]:
                self._compare(mine, seen_block(run, block, mine.tgt, mine.src, mine.number))

        self.other.observe(self._encoded(passed), on_block, fields=FIELDS)
        self.kept.clear()

    def _compare(self, mine: Seen, theirs: Seen) -> None:
        heads = min(mine.weights.shape[1], theirs.weights.shape[1])
        sums = self.sums.of(mine.kind)
        for measure in MEASURES:
            one, two = (
                (seen.weights if measure == "weights" else seen.contributions)[:, :heads].to(mine.weights.device)
                for seen in (mine, theirs)
            )
            for name, values in (("cosine", cosines(one, two)), ("divergence", divergences(one, two))):
                there = np.isfinite(values)
                sums.add(f"{mine.layer}/{name}_{measure}", Moments.of(np.nan_to_num(values), there))

    def _encoded(self, passed: Pass) -> Encoded:
        """The same items as the other model reads them, which must be the same tokens."""
        batch, subject = passed.batch, self.other.subject
        if subject.is_seq2seq and any(len(item.texts) < 2 for item in batch.items):
            raise StudyError(
                "The two models would write different targets.", do="give pairs of source and target: --pair-column."
            )
        encoded = encoded_items(subject, batch.items, passed.run.length)
        for name in ("sides", "targets"):
            for mine, theirs in zip(getattr(batch.encoded, name), getattr(encoded, name), strict=True):
                if mine.ids != theirs.ids:
                    raise StudyError(
                        f"The two models do not read the same tokens, so their maps cannot be compared: {self.label}.",
                        got=" for one model and ".join(f"'{' '.join(s.tokens[:8])}'" for s in (mine, theirs))
                        + " for the other.",
                        cause="another tokenizer, or a model that takes fewer tokens.",
                        do="compare models of one tokenizer, and give a --length that both take.",
                    )
        return encoded

    def shard(self) -> None:
        pass

    def settle(self) -> None:
        pass


def cosines(
    one: Float[Tensor, "batch head tgt src"], two: Float[Tensor, "batch head tgt src"]
) -> Float[np.ndarray, "batch head"]:
    """Cosine of two maps as long vectors; NaN where one of them is 0."""
    products = [(a * b).sum(dim=(2, 3), dtype=torch.float64) for a, b in ((one, two), (one, one), (two, two))]
    return (products[0] / (products[1] * products[2]).sqrt()).cpu().numpy()


def divergences(
    one: Float[Tensor, "batch head tgt src"], two: Float[Tensor, "batch head tgt src"]
) -> Float[np.ndarray, "batch head"]:
    """Mean over queries of the divergence of their rows; NaN where no query has both."""
    rows = divergence(distributions(one), distributions(two))
    return rows.double().nanmean(dim=-1).cpu().numpy()


def _precision(lens: Lens) -> tuple[torch.dtype, torch.device]:
    return next(lens.subject.model.parameters()).dtype, lens.subject.device


def _sentences(result: Changes, model: str) -> list[str]:
    cosine = {measure: mean_over(values) for measure, values in result.cosine.items()}
    means = {m: [float(mean_over(v[m].reshape(-1))) for v in (result.cosine, result.divergence)] for m in MEASURES}
    lines = [
        f"From {model} to {result.other}, the maps of a head have a mean cosine of {number(means['weights'][0])} by "
        f"attention weights and {number(means['norms'][0])} by contributions; the mean divergence is "
        f"{number(means['weights'][1])} and {number(means['norms'][1])} nats."
    ]
    if len(result.layers) > LAST:
        said = []
        for measure, symbol in MEASURES.items():
            most = sorted(np.argsort(cosine[measure], kind="stable")[:LAST].tolist())
            places = [f"{result.layers[p]} ({number(cosine[measure][p])})" for p in most]
            agrees = most == list(range(len(result.layers) - LAST, len(result.layers)))
            said.append(f"{listing(places)} by {symbol}, which {'agrees' if agrees else 'does not agree'}")
        lines.append(
            "Kovaleva et al. find the largest changes in the last two layers. Here the two layers of the smallest mean "
            f"cosine are {'; '.join(said)}."
        )
    for measure, symbol in MEASURES.items():
        if (found := extremes(result.cosine[measure])) is not None:
            (high, low), values = found, result.cosine[measure]
            lines.append(
                f"By {symbol}, {head_name(result.layers[low[0]], low[1])} changed most (cosine {number(values[low])}) "
                f"and {head_name(result.layers[high[0]], high[1])} least ({number(values[high])})."
            )
    return lines


def _notes(result: Changes, run: Facts, study: ChangesStudy) -> list[str]:
    notes = []
    for lens in (run.lens, study.other):
        wires = () if lens is None else lens.wires
        missing = sorted({w.layer for w in wires if w.kind == result.kind} - set(result.layers))
        if lens is not None and missing:
            layers = span(missing)
            notes.append(f"{layers[0].upper()}{layers[1:]} of {lens.subject.name} could not be compared.")
    return notes


def _lines(result: Changes) -> Lines:
    panels = tuple(
        LinePanel(title, tuple(Series(f"by {MEASURES[m]}", mean_over(v)) for m, v in values.items()), top=top)
        for title, values, top in (
            ("cosine of the maps", result.cosine, 1.0),
            ("divergence of the maps, nats", result.divergence, None),
        )
    )
    return Lines(
        "changes",
        "Cosine (left) and Jensen-Shannon divergence (right) between the maps of the two models, means over the heads "
        "of a layer.",
        "Two panels of two lines over layers. Mean cosine by α: "
        + listing([number(value) for value in mean_over(result.cosine["weights"])])
        + ".",
        panels,
        ticks=tuple(map(str, result.layers)),
        names=tuple(f"by {symbol}" for symbol in MEASURES.values()),
    )


def _maps(result: Changes) -> Grids:
    top = max(top_of(values) for values in result.divergence.values())
    grids = tuple(
        Grid(f"{title} by {symbol}", values[measure], "weight" if measure == "weights" else "norm", end)
        for title, values, end in (("cosine", result.cosine, 1.0), ("divergence", result.divergence, top))
        for measure, symbol in MEASURES.items()
    )
    return Grids(
        "changes_heads",
        "Cosine (1: unchanged) and Jensen-Shannon divergence (0: unchanged) of the maps of every head."
        + hatched(result.cosine["weights"], "only one model has such a head, or it has no attention"),
        "Four maps, layer by head: cosine and divergence by weights and by norms.",
        grids,
        tuple(map(str, result.layers)),
        across=2,
    )
