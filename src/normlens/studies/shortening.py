"""How short can a text get before a classifier errs? Tokens kept by attention, by norm or by contribution.

After Tan et al. (2023): a token is scored by the attention it receives in the first layer, added up over queries and
heads, and the highest are kept. The same by ‖f(x)‖ and by ‖αf(x)‖, and the floor of random tokens, are ours; so is
keeping every special token. Their filter by semantic similarity is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from normlens.corpora import corpus as as_corpus
from normlens.corpora import survey
from normlens.exhibits import (
    Article,
    Chapter,
    Column,
    Document,
    LinePanel,
    Lines,
    Row,
    Section,
    Series,
    Table,
    listing,
    many,
    percent,
    plain,
    show,
    write,
)
from normlens.lens import Lens, import_pandas
from normlens.models import as_found
from normlens.signature import Signature
from normlens.studies.batches import Batch
from normlens.studies.cutting import SCORES, cut_inputs, kept_counts, kept_positions, random_scores, token_scores
from normlens.studies.losses import class_of, in_batches, loss_for
from normlens.studies.study import StudyError

FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
KEPT = 0.95  # of the accuracy: how few tokens suffice for it
METHOD = (
    "The score of a token is the attention it receives, added up over queries and heads of the scoring layers (the "
    "first one by default); or the norm ‖f(x)‖ of its transformed vector, or its contribution ‖αf(x)‖, added up in the "
    "same way. The highest scores are kept, at least one token, in their order in the text; special tokens stay. "
    "The shorter text goes through the whole model as a text of its own, with new positions.",
    "Intervals of 95 % are Wilson's over the texts. Random tokens are chosen once for each seed; their interval is "
    "from the lowest to the highest seed.",
)


@dataclass(frozen=True, slots=True, eq=False)
class Shortened:
    """Accuracy of a classifier on texts of which a share of the tokens is kept."""

    signature: Signature
    items: int
    fractions: tuple[float, ...]
    tokens: Float[np.ndarray, " fraction"]  # mean number of tokens kept, special ones not counted
    accuracy: float  # on whole texts
    accuracies: dict[str, Float[np.ndarray, " fraction"]]  # by what tokens are kept by
    random: Float[np.ndarray, "seed fraction"]

    def rows(self) -> list[Row]:
        """One row per score and fraction, "random" among them: the mean over its seeds."""
        rows: list[Row] = []
        for place, fraction in enumerate(self.fractions):
            for name, values in self.accuracies.items():
                low, high = wilson(values[place], self.items)
                rows.append(self._row(place, fraction, name, values[place], low, high))
            if len(self.random):
                seeds = self.random[:, place]
                rows.append(self._row(place, fraction, "random", seeds.mean(), seeds.min(), seeds.max()))
        return rows

    def _row(self, place: int, fraction: float, name: str, value: float, low: float, high: float) -> Row:
        return {
            "kept_by": name,
            "fraction": plain(fraction),
            "tokens": plain(self.tokens[place]),
            "accuracy": plain(value),
            "low": plain(low),
            "high": plain(high),
            "accuracy_kept": plain(value / self.accuracy) if self.accuracy else None,
        }

    def to_dataframe(self) -> Any:
        """The rows as a pandas table."""
        return import_pandas().DataFrame(self.rows())

    def section(self) -> Section:
        """The result as sentences, a figure and a table."""
        columns = (
            Column("kept_by", "kept by", "text"),
            Column("fraction", "tokens kept", "percent"),
            Column("tokens", "tokens"),
            Column("accuracy", "accuracy", "percent"),
            Column("low", "from", "percent"),
            Column("high", "to", "percent"),
            Column("accuracy_kept", "of the accuracy", "percent"),
        )
        table = Table("shortening", "Accuracy on shortened texts", self.rows(), columns)
        return Section(_sentences(self), [_lines(self), table])

    def document(self) -> Document:
        """The section as a page of its own."""
        title = "How short can a text get?"
        chapter = Chapter("shortening", title, (Article(self.section()),), method=METHOD)
        facts = (("measured", many(self.items, "labelled text")),)
        lead = "Accuracy of a classifier on ever shorter texts, after Tan et al. (2023)."
        return Document(title, lead, facts, (chapter,), (str(self.signature),), self.signature.facts)

    def save(self, folder: str | Path) -> Path:
        """Write report.html, figures/ and tables/; the path of the page."""
        return write(self.document(), Path(folder))

    def show(self) -> str:
        """The result in words and a small table, for a terminal."""
        return show(self.document(), f"{many(self.items, 'labelled text')}\n")

    def __repr__(self) -> str:
        return self.show()


def shorten(
    lens: Lens,
    corpus: Any,
    *,
    scores: Sequence[str] = tuple(SCORES),
    fractions: Sequence[float | int] = FRACTIONS,
    layers: int | Sequence[int] = 0,
    seeds: int = 5,
    length: int = 128,
    limit: int | None = None,
    seed: int = 0,
    batch_tokens: int = 4096,
    progress: Callable[[int, int], None] | None = None,
) -> Shortened:
    """Accuracy of a classifier when only the tokens with the highest scores are kept; random tokens are the floor.

    `corpus` has labels: a column "label", a corpus with `label_column`, or a list of {"text": ..., "label": ...}.
    `scores` are "weights" (received attention), "norms" and "contributions", taken from `layers`, the first by default.
    `progress` is told how many texts are done, of how many.
    """
    loss_for(lens, "classification")
    fractions = tuple(sorted({float(fraction) for fraction in fractions}))
    _check(scores, fractions, seeds)
    corpus = as_corpus(corpus)
    surveyed = survey(corpus, limit)
    right = {name: np.zeros(len(fractions)) for name in scores}
    by_chance, tokens, whole, done = np.zeros((seeds, len(fractions))), np.zeros(len(fractions)), 0, 0
    for batch in in_batches(lens, corpus, length=length, limit=limit, batch_tokens=batch_tokens):
        wanted = np.array([class_of(lens, item) for item in batch.items])
        all_scores = token_scores(lens, batch, layers, scores)
        chance = [random_scores(batch, number) for number in range(seed, seed + seeds)]
        whole += _right(lens, batch, chance[0], 1.0, wanted)
        for place, fraction in enumerate(fractions):
            for name in scores:
                right[name][place] += _right(lens, batch, all_scores[name], fraction, wanted)
            for number, values in enumerate(chance):
                by_chance[number, place] += _right(lens, batch, values, fraction, wanted)
            tokens[place] += kept_counts(batch, fraction).sum()
        done += len(batch.items)
        if progress is not None:
            progress(done, surveyed.items)
    return Shortened(
        signature=lens.signature.adding(
            corpus=f"{corpus.describe()}@{surveyed.digest}", items=str(done), length=str(length), layers=str(layers)
        ),
        items=done,
        fractions=fractions,
        tokens=tokens / done,
        accuracy=whole / done,
        accuracies={name: counts / done for name, counts in right.items()},
        random=by_chance / done,
    )


def _right(lens: Lens, batch: Batch, scores: np.ndarray, fraction: float, wanted: Int[np.ndarray, " batch"]) -> int:
    """How many of the shortened texts get the right class."""
    positions = kept_positions(batch, scores, fraction)
    alone = not lens.takes_padding and len(set(map(len, positions))) > 1
    groups = [[row] for row in range(len(positions))] if alone else [list(range(len(positions)))]
    right = 0
    with as_found(lens.subject.model), torch.no_grad():
        for rows in groups:
            inputs = cut_inputs(lens, batch, rows, [positions[row] for row in rows])
            classes = lens.subject.model(**inputs).logits.argmax(dim=-1).cpu().numpy()
            right += int((classes == wanted[rows]).sum())
    return right


def wilson(share: float, count: int) -> tuple[float, float]:
    """The ends of Wilson's 95 % interval of a share of `count` trials."""
    squared = 1.959963985**2 / count
    middle, half = share + squared / 2, np.sqrt(squared * (share * (1 - share) + squared / 4))
    return float((middle - half) / (1 + squared)), float((middle + half) / (1 + squared))


def _check(scores: Sequence[str], fractions: Sequence[float | int], seeds: int) -> None:
    unknown = next((name for name in scores if name not in SCORES), None)
    if unknown is not None:
        raise StudyError(f"Tokens cannot be kept by '{unknown}'.", do=f"choose among {', '.join(SCORES)}.")
    if not fractions or not all(0 < fraction <= 1 for fraction in fractions):
        raise StudyError(
            f"fractions must be above 0 and at most 1 (got {list(fractions)}).", do="fractions=(0.05, 0.5, 1)."
        )
    if seeds < 1:
        raise StudyError(f"seeds must be at least 1 (got {seeds}).", do="give 1 or more.")


def _sentences(result: Shortened) -> list[str]:
    lines = [f"With whole texts the accuracy is {percent(result.accuracy)} over {many(result.items, 'text')}."]
    for name, values in result.accuracies.items():
        enough = np.flatnonzero(values >= KEPT * result.accuracy)
        if len(enough):
            lines.append(
                f"Kept by {SCORES[name]}, {percent(result.fractions[enough[0]])} of the tokens are enough for "
                f"{percent(KEPT)} of that accuracy."
            )
        else:
            lines.append(
                f"Kept by {SCORES[name]}, no share that was tried is enough for {percent(KEPT)} of that accuracy."
            )
    cut = [place for place, fraction in enumerate(result.fractions) if fraction < 1]
    for name, values in result.accuracies.items():
        above = [place for place in cut if values[place] > result.random[:, place].max()]
        below = [place for place in cut if values[place] < result.random[:, place].min()]
        if cut:
            lines.append(
                f"Tokens kept by {SCORES[name]} are better than every random choice at {len(above)} of {len(cut)} "
                f"shares, and worse than every one at {len(below)}."
            )
    return lines


def _lines(result: Shortened) -> Lines:
    x = np.array(result.fractions)
    series = [Series(SCORES[name], values, x) for name, values in result.accuracies.items()]
    series.append(Series("random tokens", result.random.mean(axis=0), x))
    first = [f"{one.name} {percent(one.y[0])}" for one in series]
    return Lines(
        "shortening",
        "Accuracy of the classifier over the share of the tokens that is kept, special tokens not counted. Random "
        f"tokens: the mean of {many(len(result.random), 'seed')}.",
        f"Lines of the accuracy. With {percent(x[0])} of the tokens: {listing(first)}.",
        (LinePanel("accuracy", tuple(series), top=1.0),),
        x="share of the tokens kept",
        names=(*SCORES.values(), "random tokens"),
    )
