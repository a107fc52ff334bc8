"""Which pattern does the map of each head follow? The five of Kovaleva et al. (2019), by rules that are ours.

They trained a network on maps labelled by hand; here three scores and stated thresholds take its place:

    diagonal  share on the token itself and its neighbours, |i - j| <= 1
    vertical  of the others, share on special tokens and on the first token
    block     of the rest, the share within the query's segment, over what equal attention to all keys would have there
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from normlens.exhibits import (
    Bar,
    Bars,
    Grid,
    Grids,
    Section,
    count,
    head_name,
    listing,
    percent,
)
from normlens.statistics import Moments, Statistic
from normlens.studies.marks import segments
from normlens.studies.per_head import MEASURES, HeadColumn, PerHead, texts
from normlens.studies.seen import Facts, Seen
from normlens.studies.study import Study
from normlens.studies.sums import Sums, padded

PATTERNS = ("vertical", "diagonal", "vertical + diagonal", "block", "heterogeneous")


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """For every head how often its map follows each pattern, and the mean scores; by measure."""

    kind: str
    layers: tuple[int, ...]
    follows: Mapping[str, Float[np.ndarray, "layer head pattern"]]  # shares of the sequences
    scores: Mapping[str, Float[np.ndarray, "layer head score"]]  # vertical, diagonal, block; NaN where not defined

    def pattern(self, measure: str) -> list[list[str]]:
        """The pattern that most maps of a head follow, the first of equals; "" where there is no head."""
        return [
            [PATTERNS[int(shares.round(9).argmax())] if np.isfinite(shares).all() else "" for shares in layer]
            for layer in self.follows[measure]
        ]


class PatternsStudy(Study[Patterns]):
    name, title = "patterns", "Which pattern does each head follow?"
    paper = "Kovaleva et al. (2019), section 4.1; the rules in place of their trained classifier are ours"
    question = (
        "Kovaleva et al. sort attention maps into vertical (on special tokens), diagonal (on neighbours), both, block "
        "(within a segment) and heterogeneous. The same rules applied to the contributions show which of these "
        "patterns reach the output."
    )

    def __init__(self, *, much: float = 0.5, some: float = 0.2, lift: float = 1.5) -> None:
        self.much, self.some, self.lift = much, some, lift
        self.method = (
            "Each map of a sequence has three scores. Diagonal: the mean share of a query’s attention on the token "
            "itself and its neighbours, |i − j| ≤ 1. Vertical: the share on special tokens and on the first token that "
            "is not diagonal. Block: of the attention that is neither, the share within the query’s segment over the "
            "share that equal attention to those keys would have there; segments end at special tokens, or, where a "
            "text has one segment, at the ends of sentences. For contributions ‖αf(x)‖, divided by their sum over the "
            "keys, take the place of α.",
            f"A map is vertical + diagonal when both scores together are above {much:g} and each is above {some:g}; "
            f"else vertical or diagonal when that score is above {much:g}; else block when its score is above "
            f"{lift:g}; else heterogeneous. A head has the pattern that most of its maps follow. Scores and thresholds "
            "are ours.",
        )

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        if seen.block.tgt != seen.block.src:
            return {}
        weights = seen.attention
        vertical, diagonal, rest, within = (mask.to(weights).flatten(1) for mask in _masks(seen))
        masks = torch.stack([vertical, diagonal, rest, within], dim=2)
        share = (within.sum(dim=1) / rest.sum(dim=1).clamp_min(1)).cpu().double().numpy()[:, None]
        statistics: dict[str, Statistic] = {}
        for measure, maps in (("weights", weights), ("norms", seen.contributions)):
            sums = torch.matmul(maps.flatten(2), masks).cpu().double().numpy() / seen.queries[:, None, None]
            with np.errstate(invalid="ignore", divide="ignore"):
                block = sums[..., 3] / sums[..., 2] / share
            block = np.where((sums[..., 2] > 1e-6) & (share > 0) & (share < 1), block, np.nan)
            scores = np.stack([sums[..., 0], sums[..., 1], block], axis=-1)
            named = self.named(scores)
            statistics[f"follows_{measure}"] = Moments.of((named[..., None] == np.arange(len(PATTERNS))).astype(float))
            statistics[f"scores_{measure}"] = Moments.of(np.nan_to_num(scores), np.isfinite(scores))
        return statistics

    def named(self, scores: Float[np.ndarray, "*map score"]) -> np.ndarray:
        """The number of each map's pattern."""
        vertical, diagonal, block = np.moveaxis(scores, -1, 0)
        both = (vertical + diagonal > self.much) & (vertical > self.some) & (diagonal > self.some)
        conditions = [both, vertical > self.much, diagonal > self.much, np.nan_to_num(block) > self.lift]
        return np.select(conditions, [2, 0, 1, 3], 4)

    def result(self, sums: Sums, run: Facts) -> Patterns:
        layers, _ = sums.by_layer("follows_weights")
        follows, scores = {}, {}
        for measure in MEASURES:
            follows[measure] = padded([m.mean for m in sums.by_layer(f"follows_{measure}")[1]])
            scores[measure] = padded(
                [np.where(m.count > 0, m.mean, np.nan) for m in sums.by_layer(f"scores_{measure}")[1]]
            )
        return Patterns(sums.kind, layers, follows, scores)

    def per_head(self, result: Patterns) -> PerHead:
        columns: list[HeadColumn] = []
        for measure, symbol in MEASURES.items():
            names, scores = texts(result.pattern(measure)), np.moveaxis(result.scores[measure], -1, 0)
            columns += [
                HeadColumn(f"pattern_{measure}", f"pattern {symbol}", names, "text"),
                HeadColumn(f"follows_{measure}", f"follow it {symbol}", result.follows[measure].max(-1), "percent"),
                HeadColumn(f"vertical_{measure}", f"vertical {symbol}", scores[0], "percent"),
                HeadColumn(f"diagonal_{measure}", f"diagonal {symbol}", scores[1], "percent"),
                HeadColumn(f"block_{measure}", f"block {symbol}", scores[2]),
            ]
        return PerHead(result.layers, tuple(columns))

    def section(self, result: Patterns, run: Facts) -> Section:
        table = self.per_head(result).table("patterns", "Pattern and scores of every head")
        return Section(_sentences(result), [_bars(result), _map(result), table])


def _masks(seen: Seen) -> tuple[Bool[Tensor, "batch tgt src"], ...]:
    """Vertical, diagonal, the rest, and the rest within the query's segment; visible pairs only."""
    n = seen.weights.shape[2]
    visible = seen.pairs.cpu()
    parked = torch.from_numpy(seen.src.special).clone()
    parked[:, 0] = True
    near = (torch.arange(n)[:, None] - torch.arange(n)).abs() <= 1
    segment = torch.from_numpy(segments(seen.src))
    diagonal = visible & near
    vertical = visible & parked[:, None] & ~near
    rest = visible & ~vertical & ~diagonal
    within = rest & (segment[:, :, None] == segment[:, None])
    return tuple(mask.to(seen.weights.device) for mask in (vertical, diagonal, rest, within))


def _counts(result: Patterns, measure: str) -> dict[str, list[str]]:
    """The heads of each pattern by name."""
    heads: dict[str, list[str]] = {pattern: [] for pattern in PATTERNS}
    for layer, row in zip(result.layers, result.pattern(measure), strict=True):
        for head, pattern in enumerate(row):
            if pattern:
                heads[pattern].append(head_name(layer, head))
    return heads


def _sentences(result: Patterns) -> list[str]:
    by_weights, by_norms = (_counts(result, measure) for measure in MEASURES)
    total = sum(map(len, by_weights.values()))
    said = [f"{len(heads)} {pattern}" for pattern, heads in by_weights.items() if heads]
    changed = [name for pattern, heads in by_weights.items() for name in heads if name not in by_norms[pattern]]
    lines = [f"By attention weights, the patterns of {count(total)} heads are: {listing(said)}."]
    said = [f"{len(heads)} {pattern}" for pattern, heads in by_norms.items() if heads]
    lines.append(
        f"By contributions they are: {listing(said)}. {percent(len(changed) / max(total, 1))} of the heads change."
    )
    return lines


def _bars(result: Patterns) -> Bars:
    bars = [
        Bar(pattern, len(_counts(result, measure)[pattern]), group=symbol)
        for pattern in PATTERNS
        for measure, symbol in MEASURES.items()
    ]
    said = ", ".join(f"{bar.name} by {bar.group} {bar.value:.0f}" for bar in bars)
    return Bars(
        "patterns",
        "Heads by the pattern that most of their maps follow, by α and by ‖αf(x)‖.",
        said,
        tuple(bars),
        "heads",
    )


def _map(result: Patterns) -> Grids:
    grids = tuple(
        Grid(f"{name}: {symbol}", result.scores[measure][..., place], "weight" if measure == "weights" else "norm", 1.0)
        for place, name in enumerate(("vertical", "diagonal"))
        for measure, symbol in MEASURES.items()
    )
    return Grids(
        "pattern_scores",
        "Vertical and diagonal score of every head, by α and by ‖αf(x)‖, on scales from 0 to 1.",
        "Four maps, layer by head: the vertical and the diagonal score by weights and by norms.",
        grids,
        tuple(map(str, result.layers)),
    )
