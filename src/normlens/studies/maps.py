"""What does the map of each head look like, on average over a corpus? By weights and by norms.

Texts differ in length, so every map is laid on a raster of relative positions:

    map[r, c] = mean over the queries i in part r of the text of Σ α[i, j] over the keys j in part c

A token that lies in two parts counts in each by as much of it as lies there. Every row adds up to 1, whatever the
length of the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from normlens.exhibits import Section, Thumbnails, head_name, many, percent
from normlens.statistics import Moments, Statistic
from normlens.studies.means import extremes, mean_over
from normlens.studies.per_head import MEASURES, HeadColumn, PerHead
from normlens.studies.seen import Facts, Seen
from normlens.studies.study import Study, StudyError
from normlens.studies.sums import Sums, padded


@dataclass(frozen=True, slots=True, eq=False)
class Maps:
    """The mean map of every head by measure; NaN where no query sees a key, and where there is no head."""

    kind: str
    layers: tuple[int, ...]
    maps: Mapping[str, Float[np.ndarray, "layer head row column"]]
    difference: Float[np.ndarray, "layer head"]  # share of the attention beyond the share of the contributions


class MapsStudy(Study[Maps]):
    name, title = "maps", "What does the map of each head look like?"
    paper = "small maps of every head after Vig (2019); the raster, the mean over a corpus and the norms are ours"
    question = (
        "One map shows one text. The mean over a corpus shows what a head always does: a diagonal is attention to "
        "neighbours, a column is attention to one place, blocks are parts of the text that attend to themselves. The "
        "same of the contributions ‖αf(x)‖ shows what of it reaches the output."
    )
    caution = (
        "a mean map shows what depends on the position. A head that finds copies or names wherever they are looks "
        "uniform here."
    )

    def __init__(self, *, size: int = 24) -> None:
        if not 2 <= size <= 64:
            raise StudyError(f"size must be at least 2 and at most 64 (got {size}).", do="leave it out: 24.")
        self.size = size
        self.method = (
            f"Every text is divided into {size} parts of equal length. A cell of a map is the share of the attention "
            "that the queries of one part direct to the keys of another: summed over keys, mean over queries, then "
            "over sequences. For contributions, the norms ‖αf(x)‖ divided by their sum over the keys take the place of "
            "α. Every row adds up to 1. A cell is blank where no query sees a key in any sequence.",
            "The difference of a head is Σ max(0, p − s) = 1 − Σ min(p, s) over the keys of a query, mean over "
            "queries and sequences, where p is the share of the attention and s the share of the contributions: 0 % "
            "when contributions follow the attention, 100 % when they come from other tokens. It is computed token by "
            "token, not on the raster (ours).",
        )

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        attention, contributions = seen.attention, seen.contributions
        rows, columns = (
            group.once(f"{self.size} parts", lambda side: parts(side.lengths, side.ids.shape[1], self.size))
            for group in (seen.tgt, seen.src)
        )
        rows, columns = rows.to(attention), columns.to(attention).mT
        rows_of_mean = rows / rows.sum(dim=-1, keepdim=True)
        sees = rows @ seen.pairs.to(attention) @ columns > 0
        statistics: dict[str, Statistic] = {"sees": Moments.of(sees.cpu().double().numpy())}
        for measure, maps in (("weights", attention), ("norms", contributions)):
            raster = rows_of_mean[:, None] @ maps @ columns[:, None]
            statistics[f"map_{measure}"] = Moments.of(raster.cpu().double().numpy())
        shared = torch.minimum(attention, contributions).sum(dim=(-1, -2)).cpu().double().numpy()
        statistics["difference"] = Moments.of(1 - shared / seen.queries[:, None])
        return statistics

    def result(self, sums: Sums, run: Facts) -> Maps:
        layers, differences = sums.by_layer("difference")
        sees = [moments.mean > 0 for moments in sums.by_layer("sees")[1]]
        maps = {}
        for measure in MEASURES:
            means = [moments.mean for moments in sums.by_layer(f"map_{measure}")[1]]
            maps[measure] = padded([np.where(there, mean, np.nan) for there, mean in zip(sees, means, strict=True)])
        return Maps(sums.kind, layers, maps, padded([m.mean for m in differences]))

    def per_head(self, result: Maps) -> PerHead:
        return PerHead(result.layers, (HeadColumn("difference", "difference", result.difference, "percent"),))

    def section(self, result: Maps, run: Facts) -> Section:
        table = self.per_head(result).table("maps", "Difference of attention and contributions of every head", shown=0)
        return Section([difference(result)], [*thumbnails(result), table])


def parts(lengths: Int[np.ndarray, " batch"], width: int, size: int) -> Float[Tensor, "batch part token"]:
    """How much of each token lies in each of the equal parts of its sequence; nothing of padding."""
    edges = np.arange(size + 1)[None] * lengths[:, None] / size
    token = np.arange(width)
    begins = np.maximum(edges[:, :-1, None], token)
    ends = np.minimum(edges[:, 1:, None], token + 1)
    return torch.from_numpy(np.maximum(ends - begins, 0.0))


def difference(result: Maps) -> str:
    """Where contributions are not where the attention is, in a sentence."""
    values, places = result.difference, extremes(result.difference)
    assert places is not None
    most, least = (f"{percent(values[place])} in {head_name(result.layers[place[0]], place[1])}" for place in places)
    return (
        f"{percent(float(mean_over(values.reshape(-1))))} of the attention of a head, on average, is on tokens beyond "
        f"their share of the contributions (from {least} to {most})."
    )


def thumbnails(result: Maps, patterns: Mapping[str, tuple[tuple[str, ...], ...]] | None = None) -> list[Thumbnails]:
    """The mean map of every head, by α and by ‖αf(x)‖; frames take the colours of `patterns`, by measure."""
    heads = int(np.isfinite(result.difference).sum())
    framed = (
        " Frames are coloured by the pattern that most maps of a head follow; heterogeneous ones are grey."
        if patterns
        else ""
    )
    figures = []
    for measure, symbol in MEASURES.items():
        what = "attention" if measure == "weights" else "contributions"
        figures.append(
            Thumbnails(
                f"maps_{measure}",
                f"The mean map of every head by {symbol}: queries down, keys across, from the first token to the last "
                f"of a text. A cell is the share of the {what} of the queries in one part of the text that falls on "
                "keys in another. Dark is much: colours follow the square root of the share, from 0 to 1, the same "
                f"for all heads.{framed}",
                f"{many(heads, 'small map')}, layers down and heads across.",
                result.maps[measure],
                "weight" if measure == "weights" else "norm",
                tuple(map(str, result.layers)),
                groups=(patterns or {}).get(measure, ()),
            )
        )
    return figures
