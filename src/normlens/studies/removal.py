"""Run a model without some of its heads: losses under any setting of the gates, and curves of ever more heads removed.

After Michel, Levy and Neubig (2019), sections 3 and 4. The order in which heads are removed is computed once, with
every head in place, over all layers and kinds of attention together: the lowest score first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from normlens.corpora import Corpus, survey
from normlens.corpora import corpus as as_corpus
from normlens.lens import Gates, Lens
from normlens.models import as_found
from normlens.statistics import Moments
from normlens.studies.importance import ImportanceStudy
from normlens.studies.losses import Loss, Task, in_batches, loss_for, scored, task_of
from normlens.studies.pruning import ORDERS, Curve, HeadImportance
from normlens.studies.report import study
from normlens.studies.study import StudyError

FRACTIONS = tuple(tenth / 10 for tenth in range(11))
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """A corpus and a loss, to be run under settings of the gates."""

    lens: Lens
    gates: Gates
    corpus: Corpus
    loss: Loss
    length: int
    limit: int | None
    batch_tokens: int
    masked_share: float
    seed: int
    progress: Progress  # told of the sequences of every pass

    def run(
        self, settings: Float[np.ndarray, "setting head"]
    ) -> tuple[Float[np.ndarray, " setting"], Float[np.ndarray, " setting"]]:
        """Mean loss and mean accuracy over the sequences, under each setting; one batch in memory at a time."""
        sums: Moments | None = None
        options = {"length": self.length, "limit": self.limit, "batch_tokens": self.batch_tokens}
        for batch in in_batches(self.lens, self.corpus, **options):
            task = task_of(self.lens, batch, self.loss, masked_share=self.masked_share, seed=self.seed)
            more = gated_losses(self.gates, task, settings, self.progress)
            sums = more if sums is None else sums + more
        assert sums is not None
        return sums.mean[0], sums.mean[1]

    def curves(
        self,
        scores: Mapping[str, Float[np.ndarray, " head"]],
        orders: Sequence[str],
        removed: Int[np.ndarray, " step"],
        seeds: int,
    ) -> tuple[Curve, ...]:
        """A curve for every order, "random" once for each seed; the lowest scores are removed first."""
        ranked: list[tuple[str, int | None, np.ndarray]] = []
        for order in orders:
            if order == "random":
                numbers = range(self.seed, self.seed + seeds)
                ranked += [(order, n, np.random.default_rng(n).permutation(len(self.gates.heads))) for n in numbers]
            else:
                ranked.append((order, None, np.argsort(scores[order], kind="stable")))
        if not ranked:
            return ()
        settings = np.concatenate([without(heads, removed) for _, _, heads in ranked])
        losses, accuracies = (values.reshape(len(ranked), -1) for values in self.run(settings))
        return tuple(
            Curve(order, number, removed, losses[place], accuracies[place])
            for place, (order, number, _) in enumerate(ranked)
        )


def without(heads: Int[np.ndarray, " head"], removed: Int[np.ndarray, " step"]) -> Float[np.ndarray, "step head"]:
    """Gates that are 0 for the first heads of an order, ever more of them, and 1 for the others."""
    settings = np.ones((len(removed), len(heads)))
    for row, count in zip(settings, removed, strict=True):
        row[heads[:count]] = 0
    return settings


def gated_losses(
    gates: Gates, task: Task, settings: Float[np.ndarray, "setting head"], progress: Progress = lambda sequences: None
) -> Moments:
    """Loss and accuracy (the first axis) of a batch under each setting of the gates."""
    found = []
    with as_found(gates.model), torch.no_grad():
        for values in torch.from_numpy(settings):
            with gates.scaled(values, batch=len(task.wanted)):
                found.append(scored(gates.model(**task.inputs), task))
            progress(len(task.wanted))
    pairs = [torch.stack([one.losses.double(), one.accuracies.double()], dim=-1).cpu() for one in found]
    asked = found[0].asked.cpu().numpy()[:, None, None]
    values = torch.stack(pairs, dim=-1).numpy()  # (batch, 2, setting)
    return Moments.of(values, np.broadcast_to(asked, values.shape))


def importance(
    lens: Lens,
    corpus: Any,
    *,
    loss: str | None = None,
    leave_one_out: bool = True,
    orders: Sequence[str] = tuple(ORDERS),
    fractions: Sequence[float | int] = FRACTIONS,
    seeds: int = 3,
    masked_share: float = 0.15,
    length: int = 128,
    limit: int | None = None,
    seed: int = 0,
    batch_tokens: int = 4096,
    progress: Callable[[int, int], None] | None = None,
) -> HeadImportance:
    """How much a loss depends on every head: gradient scores, leave-one-out, and pruning curves.

    `loss` is "classification", "causal", "masked" or "translation"; by default what the model was made for. A
    classifier needs labels: a column "label", a corpus with `label_column`, or a list of {"text": ..., "label": ...}.
    The gradient scores cost one pass over the corpus, leave-one-out one for each head, a curve one for each of
    `fractions`; `orders=()` and `leave_one_out=False` leave them out. `progress` is told how many sequences were run,
    of how many.
    """
    checked = loss_for(lens, loss)
    orders = [order for order in orders if leave_one_out or order != "leave_one_out"]
    _check(orders, fractions, seeds)
    corpus = as_corpus(corpus)
    items = survey(corpus, limit).items
    options: dict[str, Any] = {"length": length, "limit": limit, "seed": seed, "batch_tokens": batch_tokens}
    measured = study(lens, corpus, studies=(ImportanceStudy(checked, masked_share),), **options)
    gates: Gates = measured.run.kept["gates"]
    every = np.ones((1, len(gates.heads)))
    settings = np.concatenate([every, every - np.eye(len(gates.heads))]) if leave_one_out else every
    removed = np.unique([round(fraction * len(gates.heads)) for fraction in fractions])
    count = len(settings) + len(removed) * sum(seeds if order == "random" else 1 for order in orders)
    told = _told(progress, items * count)
    removal = Removal(lens, gates, corpus, checked, masked_share=masked_share, progress=told, **options)
    losses, accuracies = removal.run(settings)
    result = HeadImportance(
        signature=measured.run.signature.adding(loss=checked),
        loss_name=checked,
        items=items,
        scores=measured["importance"],
        heads=gates.heads,
        loss=float(losses[0]),
        accuracy=float(accuracies[0]),
        losses_without=losses[1:] if leave_one_out else None,
        accuracies_without=accuracies[1:] if leave_one_out else None,
        curves=(),
        left_out=gates.left_out,
    )
    scores = {
        "importance": result.of_heads("normalised"),
        "norms": result.of_heads("norms"),
        "leave_one_out": losses[1:],
    }
    return replace(result, curves=removal.curves(scores, orders, removed, seeds))


def _told(progress: Callable[[int, int], None] | None, total: int) -> Callable[[int], None]:
    done = 0

    def tell(sequences: int) -> None:
        nonlocal done
        done += sequences
        if progress is not None:
            progress(done, total)

    return tell


def _check(orders: Sequence[str], fractions: Sequence[float | int], seeds: int) -> None:
    unknown = next((order for order in orders if order not in ORDERS), None)
    if unknown is not None:
        raise StudyError(f"Heads cannot be removed by '{unknown}'.", do=f"choose among {', '.join(ORDERS)}.")
    if orders and (not len(fractions) or not all(0 <= fraction <= 1 for fraction in fractions)):
        raise StudyError(f"fractions must be from 0 to 1 (got {list(fractions)}).", do="fractions=(0, 0.5, 1).")
    if seeds < 1:
        raise StudyError(f"seeds must be at least 1 (got {seeds}).", do="give 1 or more.")
