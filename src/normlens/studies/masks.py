"""What does a sparse mask keep, and how much does the output change under it? After Brahma et al. (2022), untrained.

A mask is a union of predicates, and every query keeps itself. Of each head it keeps

    mean_i Σ_{j in mask} α[i,j]                                  of the attention
    mean_i Σ_{j in mask} ‖α[i,j] f(x_j)‖ / Σ_j ‖α[i,j] f(x_j)‖     of the contributions

Then all other keys are hidden in every layer, and the change of the output is measured. Beside every mask is a random
one that keeps as many keys of every query.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from normlens.exhibits import (
    Bar,
    Bars,
    Column,
    Exhibit,
    LinePanel,
    Lines,
    Row,
    Section,
    Series,
    Table,
    listing,
    many,
    number,
    percent,
    plain,
    rho,
)
from normlens.lens import Lens, observe_hiding
from normlens.statistics import Moments, Statistic
from normlens.studies.means import mean_over, spearman
from normlens.studies.output_change import CHANGES, changed
from normlens.studies.per_head import MEASURES
from normlens.studies.predicates import NO_FUNCTIONS, PREDICATES, Own, neighbours, own_predicates
from normlens.studies.seen import Facts, Pass, Seen
from normlens.studies.study import Needs, Study, StudyError
from normlens.studies.sums import Sums, padded

KEPT = {"weights": "attention", "norms": "contributions"}


@dataclass(frozen=True, slots=True, eq=False)
class Masks:
    """What every mask keeps and changes; for each of `masks` there is a random one, in the second half."""

    kind: str
    layers: tuple[int, ...]
    masks: tuple[str, ...]
    sequences: int
    density: Float[np.ndarray, " mask"]  # share of the visible pairs that is kept, mean over layers
    kept: Mapping[str, Float[np.ndarray, "layer head mask"]]  # by measure
    change: Mapping[str, Float[np.ndarray, " mask"]]  # by name of CHANGES, with the mask in every layer
    alone: Mapping[str, Float[np.ndarray, "layer mask"]]  # the same with the mask in one layer; empty where not asked

    def kept_by_layer(self, measure: str) -> Float[np.ndarray, "layer mask"]:
        """The mean over heads."""
        return mean_over(np.moveaxis(self.kept[measure], 1, -1))

    def agreement(self, measure: str) -> tuple[float, int]:
        """Spearman's ρ between what is kept and how much the output changes, and over how many points.

        Points are masks, or masks in single layers where these were measured.
        """
        change, kept = self.alone or self.change, self.kept_by_layer(measure)
        last = change["divergence" if "divergence" in change else "change"]
        points = (kept if self.alone else kept.mean(axis=0)).reshape(-1), last.reshape(-1)
        return spearman(*points), points[0].size


class MasksStudy(Study[Masks]):
    name, title = "masks", "What does a sparse mask keep, and how much does the output change?"
    paper = "Brahma, Zablotskaia and Mimno (2022), the masks without training; what is kept, and the norms, are ours"
    needs = Needs(hidden_states=True, whole_pass=True)
    question = (
        "Brahma et al. restrict the attention of BERT to neighbours, to related words or to random pairs and measure "
        "what it costs. A mask that keeps much of the attention may keep little of the contributions, and the reverse."
    )
    caution = (
        "the model was not trained with the mask. Hidden keys leave their attention to the others, so a mask without a "
        "sink changes the output even if the sink contributes nothing."
    )

    def __init__(
        self,
        *,
        masks: tuple[str, ...] = ("neighbours", "special", "same_sentence", "neighbours+special"),
        width: int = 3,  # of the neighbours, to each side
        own: Mapping[str, Own] = NO_FUNCTIONS,
        output: bool = True,  # whether the masks are applied
        each_layer: bool = False,  # whether they are applied in every single layer too
    ) -> None:
        self.masks, self.width, self.own = tuple(masks), width, own_predicates(own)
        self.output, self.each_layer = output, each_layer
        known = {**PREDICATES, "neighbours": neighbours(width), **self.own}
        unknown = next((part for mask in self.masks for part in mask.split("+") if part not in known), None)
        if unknown is not None:
            raise StudyError(f"There is no predicate '{unknown}'.", do=f"join some of {', '.join(known)} by +.")
        self.predicates = {mask: [known[part] for part in mask.split("+")] for mask in self.masks}
        if not self.masks or len(self.predicates) < len(self.masks):
            raise StudyError("masks must be different, and one at least.", got=", ".join(self.masks))
        self.method = (
            "A mask keeps, for each query, the keys of its predicates and the query itself. Neighbours are at most "
            f"{many(width, 'token')} away. Density is the share of the visible pairs that is kept. What is kept of the "
            "attention, and of the contributions ‖αf(x)‖ divided by their sum over the keys, is the mean over queries, "
            "then over sequences. The random mask beside each keeps the query itself and as many keys in all, drawn "
            "for each text and the same in every layer.",
            "Then the other keys are hidden in every layer and head: they get no weight in the softmax, which is "
            "proved in every block. Relative change: ‖y′ − y‖/‖y‖ of the last hidden state of a token. Divergence: "
            "KL(p‖p′) of the prediction, where the model makes one. Means over tokens, then over sequences. These "
            "choices are ours.",
        )

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.masks, *(f"random like {mask}" for mask in self.masks))

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        if seen.block.tgt != seen.block.src:
            return {}
        keep = self._keep(seen)
        visible = seen.pairs.cpu().sum(dim=(1, 2)).clamp_min(1)[:, None]
        statistics: dict[str, Statistic] = {"density": Moments.of((keep.sum(dim=(1, 2)) / visible).double().numpy())}
        flat = keep.flatten(1, 2).to(seen.weights)
        for measure, maps in (("weights", seen.attention), ("norms", seen.contributions)):
            sums = torch.matmul(maps.flatten(2), flat).cpu().double().numpy()
            statistics[f"kept_{measure}"] = Moments.of(sums / seen.queries[:, None, None])
        return statistics

    def see_pass(self, passed: Pass) -> Mapping[tuple[str, int], Mapping[str, Statistic]]:
        lens = passed.run.lens
        if lens is None or not self.output:
            return {}
        statistics: dict[tuple[str, int], dict[str, Statistic]] = {}
        for kind in dict.fromkeys(seen.kind for seen in passed.blocks if seen.block.tgt == seen.block.src):
            blocks = [seen for seen in passed.blocks if seen.kind == kind]
            statistics[kind, blocks[0].layer] = self._changes(passed, lens, blocks, "change")
            if self.each_layer:
                for seen in blocks:
                    alone = self._changes(passed, lens, [seen], "alone")
                    statistics[kind, seen.layer] = statistics.get((kind, seen.layer), {}) | alone
        return statistics

    def _changes(self, passed: Pass, lens: Lens, blocks: list[Seen], name: str) -> dict[str, Statistic]:
        """How much each mask in these blocks changes each sequence."""
        queries = torch.from_numpy(blocks[0].real_queries)
        changes: dict[str, list[np.ndarray]] = {}
        for place in range(len(self.names)):
            hidden = {
                (seen.kind, seen.layer): (~self._keep(seen)[..., place] & queries[:, :, None])[:, None]
                for seen in blocks
            }
            output = observe_hiding(lens, passed.batch.encoded, hidden, hidden_states=True)
            for measure, values in changed(passed.output, output, blocks[0].kind, queries).items():
                if measure == "change" or blocks[0].kind != "encoder":  # a source has no prediction of its own
                    changes.setdefault(measure, []).append(values)
        return {f"{name}_{measure}": Moments.of(np.stack(values, axis=1)) for measure, values in changes.items()}

    def _keep(self, seen: Seen) -> Bool[Tensor, "batch tgt src mask"]:
        """The visible pairs that each mask keeps, ours and then the random ones."""
        visible = seen.pairs.cpu()
        which = zlib.crc32(visible.numpy().tobytes())  # layers may differ in what is visible
        of_block = any(predicate.of_block for each in self.predicates.values() for predicate in each)
        where = f"{self.name} of {seen.kind} {which} {seen.layer if of_block else ''}"
        return seen.src.once(where, lambda _: self._drawn(seen, visible))

    def _drawn(self, seen: Seen, visible: Bool[Tensor, "batch tgt src"]) -> Bool[Tensor, "batch tgt src mask"]:
        itself = torch.eye(visible.shape[1], dtype=torch.bool)
        kept = []
        for predicates in self.predicates.values():
            union = itself | torch.stack([predicate.mask(seen) for predicate in predicates]).any(dim=0)
            kept.append(union & visible)
        for place, mask in enumerate(list(kept)):
            order = np.where(itself, -1.0, np.where(visible, _random(seen, place), np.inf))
            ranks = order.argsort(axis=2, kind="stable").argsort(axis=2, kind="stable")
            kept.append(torch.from_numpy(ranks < mask.sum(dim=2, keepdim=True).numpy()) & visible)
        return torch.stack(kept, dim=-1)

    def result(self, sums: Sums, run: Facts) -> Masks:
        layers, density = sums.by_layer("density")
        whole, single = ({n: sums.by_layer(f"{what}_{n}")[1] for n in CHANGES} for what in ("change", "alone"))
        return Masks(
            kind=sums.kind,
            layers=layers,
            masks=self.names,
            sequences=int(density[0].count.max()),
            density=np.mean([moments.mean for moments in density], axis=0),
            kept={measure: padded([m.mean for m in sums.by_layer(f"kept_{measure}")[1]]) for measure in MEASURES},
            change={name: moments[0].mean for name, moments in whole.items() if moments},
            alone={name: np.stack([m.mean for m in moments]) for name, moments in single.items() if moments},
        )

    def section(self, result: Masks, run: Facts) -> Section:
        return Section(_sentences(result), [*_figures(result), *_tables(result)])


def _random(seen: Seen, place: int) -> Float[np.ndarray, "batch tgt src"]:
    """Chance that depends on the seed, the mask and the text alone, whatever batch the text is in."""
    values = np.zeros((len(seen.src.ids), *seen.weights.shape[2:]))
    for row, length in enumerate(seen.src.lengths):
        random = np.random.default_rng([seen.run.seed, place, *seen.src.ids[row, :length].tolist()])
        values[row, :length, :length] = random.random((length, length))
    return values


def _sentences(result: Masks) -> list[str]:
    half = len(result.masks) // 2
    kept = {measure: result.kept_by_layer(measure).mean(axis=0) for measure in MEASURES}
    lines = []
    for measure, what in KEPT.items():
        lift = kept[measure] / result.density
        best = int(lift[:half].argmax())
        lines.append(
            f"For its size, {result.masks[best]} keeps most of the {what}: {percent(kept[measure][best])} on "
            f"{percent(result.density[best])} of the pairs, {number(lift[best])} times its density. A random mask of "
            f"this size keeps {percent(kept[measure][best + half])}."
        )
    for name, values in result.change.items():
        said = [
            f"{result.masks[place]} {number(values[place])} ({number(values[place + half])})"
            for place in np.argsort(values[:half], kind="stable")
        ]
        lines.append(f"{_sentence_start(CHANGES[name])} (random masks of the same size in brackets): {listing(said)}.")
    if result.change:
        (weights, points), (norms, _) = (result.agreement(measure) for measure in MEASURES)
        where = "masks in single layers" if result.alone else "masks"
        lines.append(
            f"Over {points} {where}, Spearman’s ρ between the change of the output and what is kept is {rho(weights)} "
            f"for attention and {rho(norms)} for contributions. −1 would be a perfect prediction."
        )
    return lines


def _sentence_start(text: str) -> str:
    return text[0].upper() + text[1:]


def _figures(result: Masks) -> list[Exhibit]:
    kept = {measure: result.kept_by_layer(measure) for measure in MEASURES}
    groups = ("density", *(f"{what} kept" for what in KEPT.values()))
    values = (result.density, *(by_layer.mean(axis=0) for by_layer in kept.values()))
    bars = [
        Bar(mask, float(part[place]), group=group)
        for place, mask in enumerate(result.masks)
        for group, part in zip(groups, values, strict=True)
    ]
    figures: list[Exhibit] = [
        Bars(
            "masks",
            "Share of the visible pairs that each mask keeps, and what it keeps of the attention and of the "
            "contributions, means over heads and layers.",
            listing([f"{bar.name}, {bar.group} {percent(bar.value)}" for bar in bars]) + ".",
            tuple(bars),
            "share",
            names=groups,
        ),
        _lines(result, "masks_layers", {f"{KEPT[m]} kept": by_layer for m, by_layer in kept.items()}, top=1.0),
    ]
    for name, changes in result.change.items():
        ends = [Bar(mask, float(change)) for mask, change in zip(result.masks, changes, strict=True)]
        said = listing([f"{bar.name} {number(bar.value)}" for bar in ends])
        caption = f"{_sentence_start(CHANGES[name])} when the mask is applied in every layer."
        figures.append(Bars(f"masks_{name}", caption, f"{said}.", tuple(ends), CHANGES[name]))
    if result.alone:
        panels = {CHANGES[name]: values for name, values in result.alone.items()}
        figures.append(_lines(result, "masks_alone", panels, top=None))
    return figures


def _lines(result: Masks, name: str, panels: Mapping[str, Float[np.ndarray, "layer mask"]], top: float | None) -> Lines:
    return Lines(
        name,
        _sentence_start(listing(list(panels)))
        + (", the mask in one layer alone." if name == "masks_alone" else ", layer by layer, means over heads."),
        f"{many(len(panels), 'panel')} of lines over layers, one line for each mask.",
        tuple(
            LinePanel(title, tuple(Series(m, values[:, at]) for at, m in enumerate(result.masks)), top=top)
            for title, values in panels.items()
        ),
        ticks=tuple(map(str, result.layers)),
        names=result.masks,
    )


def _tables(result: Masks) -> list[Table]:
    kept = {f"kept_{measure}": result.kept_by_layer(measure) for measure in MEASURES}
    rows: list[Row] = []
    by_layer: list[Row] = []
    for at, mask in enumerate(result.masks):
        row: Row = {"mask": mask, "density": plain(result.density[at])}
        row |= {name: plain(values[:, at].mean()) for name, values in kept.items()}
        rows.append(row | {name: plain(values[at]) for name, values in result.change.items()})
        for place, layer in enumerate(result.layers):
            row = {"mask": mask, "layer": layer, **{name: plain(values[place, at]) for name, values in kept.items()}}
            by_layer.append(row | {f"{name}_alone": plain(v[place, at]) for name, v in result.alone.items()})
    columns = [Column("mask", "mask", "text"), Column("density", "density", "percent")]
    columns += [Column(f"kept_{measure}", f"{what} kept", "percent") for measure, what in KEPT.items()]
    columns += [Column(name, "change" if name == "change" else "KL") for name in result.change]
    return [
        Table("masks", "What each mask keeps, and how much the output changes", rows, tuple(columns)),
        Table("masks_layers", "The same layer by layer", by_layer, shown=0),
    ]
