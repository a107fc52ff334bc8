"""How much a loss depends on every head, told: gradient scores, leave-one-out and pruning curves in one result.

After Michel, Levy and Neubig (2019). The orders by norms and at random beside theirs are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from normlens.exhibits import (
    Article,
    Chapter,
    Column,
    Document,
    Exhibit,
    LinePanel,
    Lines,
    Row,
    Section,
    Series,
    Table,
    head_name,
    listing,
    many,
    number,
    percent,
    plain,
    rho,
    show,
    write,
)
from normlens.lens import import_pandas
from normlens.signature import Signature
from normlens.studies.importance import Importance, ImportanceStudy
from normlens.studies.losses import Loss
from normlens.studies.means import spearman

ORDERS = {  # what heads are removed by, the lowest first
    "importance": "gradient score",
    "leave_one_out": "leave-one-out",
    "norms": "norm Σ‖αf(x)‖",
    "random": "random",
}
KEPT = 0.95  # of the accuracy: how many heads can go before less is left


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Loss and accuracy of a model without ever more of its heads."""

    order: str
    seed: int | None  # of a random order
    removed: Int[np.ndarray, " step"]  # how many heads
    losses: Float[np.ndarray, " step"]
    accuracies: Float[np.ndarray, " step"]


@dataclass(frozen=True, slots=True, eq=False)
class HeadImportance:
    """How much a loss depends on every head: one row a head, and what remains without ever more of them."""

    signature: Signature
    loss_name: Loss
    items: int
    scores: Mapping[str, Importance]  # by kind of attention
    heads: Sequence[tuple[str, int, int]]  # kind, layer and head of every gate
    loss: float  # of the whole model
    accuracy: float
    losses_without: Float[np.ndarray, " head"] | None  # each head removed alone
    accuracies_without: Float[np.ndarray, " head"] | None
    curves: tuple[Curve, ...]
    left_out: Mapping[str, str]  # blocks whose heads have no gates, and why

    def of_heads(self, name: str) -> Float[np.ndarray, " head"]:
        """ "normalised", "raw" or "norms" of every gate."""
        return np.array(
            [
                getattr(self.scores[kind], name)[self.scores[kind].layers.index(layer), head]
                for kind, layer, head in self.heads
            ]
        )

    def rows(self) -> list[Row]:
        """One row per kind, layer and head."""
        columns = {
            "importance": self.of_heads("normalised"),
            "importance_raw": self.of_heads("raw"),
            "contribution_norms": self.of_heads("norms"),
        }
        if self.losses_without is not None and self.accuracies_without is not None:
            columns["loss_change"] = self.losses_without - self.loss
            columns["accuracy_change"] = self.accuracies_without - self.accuracy
        return [
            {"head_name": head_name(layer, head), "kind": kind, "layer": layer, "head": head}
            | {name: plain(values[place]) for name, values in columns.items()}
            for place, (kind, layer, head) in enumerate(self.heads)
        ]

    def curve_rows(self) -> list[Row]:
        """One row per order, seed and number of heads removed."""
        return [
            {
                "order": curve.order,
                "seed": curve.seed,
                "removed": int(removed),
                "share_removed": plain(removed / len(self.heads)),
                "loss": plain(loss),
                "accuracy": plain(accuracy),
            }
            for curve in self.curves
            for removed, loss, accuracy in zip(curve.removed, curve.losses, curve.accuracies, strict=True)
        ]

    def to_dataframe(self) -> Any:
        """The rows of the heads as a pandas table."""
        return import_pandas().DataFrame(self.rows())

    def section(self) -> Section:
        """The result as sentences, figures and tables."""
        notes = [f"{block} is left out: {reason}." for block, reason in sorted(self.left_out.items())]
        return Section(_sentences(self), _exhibits(self), notes)

    def document(self) -> Document:
        """The section as a page of its own."""
        method = (
            *ImportanceStudy.method,
            "Leave-one-out sets the gate of one head to 0 and leaves the others at 1. A pruning curve removes the "
            "heads with the lowest scores first. The order is computed once, with every head in place, on the texts of "
            "the curve itself.",
        )
        about = ImportanceStudy.question, ImportanceStudy.caution, method
        chapter = Chapter("importance", ImportanceStudy.title, (Article(self.section()),), *about)
        facts = (("loss", self.loss_name), ("measured", many(self.items, "item")))
        lead = "How much a loss depends on every attention head, after Michel, Levy and Neubig (2019)."
        return Document("Importance of heads", lead, facts, (chapter,), (str(self.signature),), self.signature.facts)

    def save(self, folder: str | Path) -> Path:
        """Write report.html, figures/ and tables/; the path of the page."""
        return write(self.document(), Path(folder))

    def show(self) -> str:
        """The result in words and small tables, for a terminal."""
        return show(self.document(), f"{self.loss_name} loss over {many(self.items, 'item')}\n")

    def __repr__(self) -> str:
        return self.show()


def _sentences(result: HeadImportance) -> list[str]:
    heads = len(result.heads)
    lines = [
        f"The model has {many(heads, 'head')} with gates; its {result.loss_name} loss is {number(result.loss)} and its "
        f"accuracy {percent(result.accuracy)}."
    ]
    if result.losses_without is not None and result.accuracies_without is not None:
        change = result.losses_without - result.loss
        worst, best = int(change.argmax()), int(change.argmin())
        better = int((change < 0).sum())
        if change[worst] > 0:
            lines.append(
                f"Without {_named(result, worst)} the loss rises most, by {number(change[worst])} (accuracy "
                f"{percent(result.accuracies_without[worst])})."
            )
        lines.append(
            f"Without {many(better, 'head')} of {heads}, each removed alone, the loss is lower than with all of them"
            + (f", most without {_named(result, best)}." if better else ".")
        )
        size, signed = (spearman(result.of_heads("raw"), values) for values in (np.abs(change), change))
        if np.isfinite(size) and np.isfinite(signed):
            lines.append(
                f"Gradient scores and leave-one-out have ρ = {rho(size)} for the size of the change of the loss, and "
                f"{rho(signed)} for the change with its sign, which the score does not hold."
            )
    curves = [curve for curve in result.curves if curve.order != "random"]
    if curves and not result.accuracy > 0:
        return [*lines, "The whole model is never right, so there is no accuracy that heads could cost."]
    return [*lines, *(_kept(result, curve) for curve in curves)]


def _kept(result: HeadImportance, curve: Curve) -> str:
    """How far a curve goes before accuracy is lost."""
    whole = curve.accuracies[0] if curve.removed[0] == 0 else result.accuracy
    enough = curve.accuracies >= KEPT * whole
    steps = len(enough) if enough.all() else int(np.argmin(enough))
    most = int(curve.removed[steps - 1]) if steps else 0
    name = ORDERS[curve.order]
    if most == 0:
        return f"Removed by {name}, the first step already costs more than {percent(1 - KEPT)} of the accuracy."
    return (
        f"Removed by {name}, {most} of {len(result.heads)} heads ({percent(most / len(result.heads))}) can go while "
        f"{percent(KEPT)} of the accuracy is left."
    )


def _named(result: HeadImportance, place: int) -> str:
    kind, layer, head = result.heads[place]
    return head_name(layer, head) if len(result.scores) == 1 else f"{kind} {head_name(layer, head)}"


def _exhibits(result: HeadImportance) -> list[Exhibit]:
    changes = [
        Column("loss_change", "loss without it, change"),
        Column("accuracy_change", "accuracy without it, change"),
    ]
    columns = (
        Column("kind", "attention", "text"),
        Column("head_name", "head", "text"),
        Column("importance", "importance"),
        Column("importance_raw", "raw"),
        Column("contribution_norms", "norm Σ‖αf(x)‖"),
        *(changes if result.losses_without is not None else ()),
    )
    tables = [Table("importance_of_heads", "Importance of every head", result.rows(), columns)]
    if not result.curves:
        return [*tables]
    return [_lines(result), *tables, Table("pruning", "Pruning curves", result.curve_rows(), folded=True)]


def _lines(result: HeadImportance) -> Lines:
    present = [order for order in ORDERS if any(curve.order == order for curve in result.curves)]
    panels = []
    for title, values in (("loss", "losses"), ("accuracy", "accuracies")):
        series = []
        for order in present:
            curves = [curve for curve in result.curves if curve.order == order]
            mean = np.mean([getattr(curve, values) for curve in curves], axis=0)
            series.append(Series(ORDERS[order], mean, curves[0].removed / len(result.heads)))
        panels.append(LinePanel(title, tuple(series), top=1.0 if title == "accuracy" else None))
    seeds = sum(curve.order == "random" for curve in result.curves)
    ends = [f"{series.name} {percent(series.y[len(series.y) // 2])}" for series in panels[1].series]
    return Lines(
        "pruning",
        "Loss (left) and accuracy (right) without ever more heads, those with the lowest scores removed first."
        + (f" Random orders: the mean of {many(seeds, 'seed')}." if seeds else ""),
        f"Two panels of lines over the share of heads removed. Accuracy half way along the curves: {listing(ends)}.",
        tuple(panels),
        x="share of the heads removed",
        names=tuple(ORDERS.values()),
    )
