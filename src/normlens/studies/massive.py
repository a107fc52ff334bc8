"""Massive activations: the largest |x| of each hidden state of a text, its coordinate, and the median beside it.

Per sequence and hidden state: the largest |x| over its tokens and coordinates, where it is, and the median |x|. State 0
is the input of layer 0; the last state is the output of the last layer, after the final norm where the model has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from normlens.exhibits import (
    Column,
    LinePanel,
    Lines,
    Row,
    Series,
    Table,
    count,
    listing,
    many,
    number,
    percent,
    plain,
)
from normlens.statistics import Moments, Statistic
from normlens.studies.batches import Group
from normlens.studies.places import phrase, place_names, places
from normlens.studies.sums import Sums


@dataclass(frozen=True, slots=True, eq=False)
class Massive:
    """The largest |x| of each hidden state, means over sequences; the place and coordinate are the most frequent."""

    states: tuple[int, ...]
    largest: Float[np.ndarray, " state"]
    median: Float[np.ndarray, " state"]
    ratio: Float[np.ndarray, " state"]  # largest / median of each sequence, mean
    highest: Float[np.ndarray, " state"]  # the largest of the corpus
    coordinate: Int[np.ndarray, " state"]
    coordinate_share: Float[np.ndarray, " state"]  # of the sequences that have their largest |x| there
    place: tuple[str, ...]
    place_share: Float[np.ndarray, " state"]


def activations(states: Float[Tensor, "batch token model"], group: Group, positions: int) -> Mapping[str, Statistic]:
    """What one hidden state of a batch adds."""
    real = torch.from_numpy(group.categories >= 0).to(states.device)
    sizes = states.detach().float().abs().masked_fill(~real[..., None], 0.0)
    largest, at = sizes.flatten(1).max(dim=1)
    medians = torch.stack([sizes[b, :length].median() for b, length in enumerate(group.lengths)])
    top, median, at = (part.cpu().double().numpy() for part in (largest, medians, at))
    position, coordinate = np.divmod(at.astype(np.int64), states.shape[2])
    place = places(group, positions)[np.arange(len(position)), position]
    ratio = np.divide(top, median, out=np.full(top.shape, np.nan), where=median > 0)
    values = np.stack([top, median, ratio], axis=1)
    return {
        "activations": Moments.of(values, np.isfinite(values)),
        "coordinates": Moments.grouped(top, coordinate, states.shape[2]),
        "places": Moments.grouped(top, place, len(place_names(positions))),
    }


def massive(sums: Sums, positions: int) -> Massive | None:
    """The result for one kind of attention; None where the model shows no hidden states."""
    states, moments = sums.by_layer("activations")
    if not states:
        return None
    coordinates, at = sums.by_layer("coordinates")[1], sums.by_layer("places")[1]
    means = np.stack([np.where(m.count > 0, m.mean, np.nan) for m in moments])
    best, place = ([int(m.count.argmax()) for m in found] for found in (coordinates, at))
    return Massive(
        states=states,
        largest=means[:, 0],
        median=means[:, 1],
        ratio=means[:, 2],
        highest=np.array([m.high[0] for m in moments]),
        coordinate=np.array(best),
        coordinate_share=np.array([m.count[c] / m.count.sum() for m, c in zip(coordinates, best, strict=True)]),
        place=tuple(place_names(positions)[p] for p in place),
        place_share=np.array([m.count[p] / m.count.sum() for m, p in zip(at, place, strict=True)]),
    )


def sentence(result: Massive, bound: float) -> str:
    """Whether some hidden state holds an |x| far beyond its median, and where."""
    if not np.isfinite(result.ratio).any():
        return "The median |x| of the hidden states is 0, so nothing can be compared with it."
    top = int(np.nanargmax(result.ratio))
    where = (
        f"in hidden state {result.states[top]} the largest |x| is {number(result.largest[top])} on average, "
        f"{number(result.ratio[top])} times the median; it is coordinate {result.coordinate[top]} in "
        f"{percent(result.coordinate_share[top])} of the sequences, and at {phrase(result.place[top])} in "
        f"{percent(result.place_share[top])}"
    )
    far = [str(state) for state, ratio in zip(result.states, result.ratio, strict=True) if ratio >= bound]
    if far:
        has = "has" if len(far) == 1 else "have"
        return f"{many(len(far), 'hidden state')} ({listing(far)}) {has} massive activations: {where}."
    return f"No hidden state has massive activations, of at least {number(bound)} times the median |x|: {where}."


def figure(result: Massive) -> Lines:
    """The largest and the median |x|, and their ratio, by hidden state."""
    return Lines(
        "massive",
        "Largest and median |x| of each hidden state (left) and their ratio (right), means over sequences. State 0 is "
        "the input of layer 0.",
        "Lines over hidden states. Largest |x|: "
        f"{listing([f'{number(x)} in state {s}' for s, x in zip(result.states, result.largest, strict=True)])}.",
        (
            LinePanel("|x|", (Series("largest |x|", result.largest), Series("median |x|", result.median))),
            LinePanel("largest / median", (Series("ratio", result.ratio),)),
        ),
        x="hidden state",
        ticks=tuple(map(str, result.states)),
        names=("largest |x|", "median |x|", "ratio"),
    )


def table(result: Massive) -> Table:
    """One row for each hidden state."""
    rows: list[Row] = [
        {
            "state": state,
            "largest": plain(result.largest[at]),
            "median": plain(result.median[at]),
            "ratio": plain(result.ratio[at]),
            "highest": plain(result.highest[at]),
            "coordinate": int(result.coordinate[at]),
            "coordinate_share": plain(result.coordinate_share[at]),
            "place": result.place[at],
            "place_share": plain(result.place_share[at]),
        }
        for at, state in enumerate(result.states)
    ]
    columns = (
        Column("state", "hidden state", "count"),
        Column("largest", "largest |x|"),
        Column("median", "median |x|"),
        Column("ratio", "largest / median"),
        Column("highest", "largest of all"),
        Column("coordinate", "coordinate", "text"),
        Column("coordinate_share", "its texts", "percent"),
        Column("place", "place", "text"),
        Column("place_share", "texts there", "percent"),
    )
    return Table("massive", f"Largest |x| of {count(len(rows))} hidden states", rows, columns)
