"""Do frequent words get less weight, or shorter vectors? Figure 6 of the 2020 paper.

Room: studies. For each occurrence of a token ‖f(x)‖ is its mean over all heads of all layers, and α its mean over the
same heads and over the queries that can see it. ρ is taken with and without special tokens, which are few, draw much,
and of which some rules rank all first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from normlens.corpora import FrequencyRanks
from normlens.lens.wiring import SIDES, Kind
from normlens.statistics import Moments, Ranks, Sample
from normlens.studies.batches import Batch
from normlens.studies.look import Look
from normlens.studies.results import Frequency
from normlens.studies.seeing import Study
from normlens.studies.state import State

DRAWN = 20_000  # occurrences kept for the picture
SIZE = 1024


class FrequencyStudy(Study):
    """Counts occurrences."""

    def __init__(self, state: State, ranks: FrequencyRanks, seed: int) -> None:
        super().__init__(state)
        self.ranks, self.seed = ranks, seed
        self.waiting: dict[str, list[Float[np.ndarray, "token column"]]] = {}
        self.number = 0
        self.sums: dict[Kind, tuple[int, Float[np.ndarray, "batch src"], Float[np.ndarray, "batch src"]]] = {}

    def see(self, look: Look) -> None:
        heads, norms, weights = self.sums.get(look.kind, (0, 0.0, 0.0))
        here = look.received.sum(axis=1, dtype=np.float64) / np.maximum(look.seen_by, 1)
        norms, weights = norms + look.norms.sum(axis=1, dtype=np.float64), weights + here
        self.sums[look.kind] = heads + look.norms.shape[1], np.asarray(norms), np.asarray(weights)

    def finish(self, batch: Batch, output: Any) -> None:
        for kind, (heads, norms, weights) in self.sums.items():
            group = batch.groups[SIDES[kind][1]]  # the tokens that are looked at
            real = group.categories >= 0
            columns = group.ids, weights / heads, norms / heads, group.categories, group.special
            self.waiting.setdefault(kind, []).append(np.stack([column[real] for column in columns], axis=1))
        self.sums, self.number = {}, batch.number

    def shard(self) -> None:
        for kind, waiting in self.waiting.items():
            self._count(kind, np.concatenate(waiting))
        self.waiting = {}

    def _count(self, kind: str, rows: Float[np.ndarray, "token column"]) -> None:
        ids, weight, norm, category, special = rows.T
        ids, size = ids.astype(np.int64), len(self.ranks.ranks)
        self.state.add(f"types/{kind}/norm", Moments.grouped(norm, ids, size))
        self.state.add(f"types/{kind}/weight", Moments.grouped(weight, ids, size))
        kept = ~self.ranks.excluded[ids]
        rank = self.ranks.ranks[ids][kept].astype(np.float64)
        plain = special[kept] == 0
        for name, values in (("norm", norm[kept]), ("weight", weight[kept])):
            self.state.add(f"frequency/{kind}/{name}", Ranks.of(rank, values, size=SIZE))
            self.state.add(f"frequency/{kind}/{name}/plain", Ranks.of(rank[plain], values[plain], size=SIZE))
        points = np.stack([rank, weight[kept], norm[kept], category[kept], special[kept]], axis=1)
        random = np.random.default_rng([self.seed, self.number])
        self.state.add(f"points/{kind}", Sample.of(points, size=DRAWN, random=random))


def frequency(
    state: State, kind: str, names: tuple[str, ...], ranks: FrequencyRanks, tokenizer: Any | None
) -> Frequency:
    """What was counted, as a result."""
    norm, weight = state.ranks(f"frequency/{kind}/norm"), state.ranks(f"frequency/{kind}/weight")
    plain_norm, plain_weight = (state.ranks(f"frequency/{kind}/{name}/plain") for name in ("norm", "weight"))
    types, type_weights = state.moments(f"types/{kind}/norm"), state.moments(f"types/{kind}/weight")
    points = state.sample(f"points/{kind}")
    found = np.flatnonzero((types.count > 0) & ~ranks.excluded)
    found = found[np.lexsort((found, ranks.ranks[found]))]
    rank = ranks.ranks[found]
    rows = np.zeros((0, 5)) if points is None else points.rows
    return Frequency(
        kind=kind,
        source=ranks.source,
        names=names,
        occurrences=norm.pairs,
        excluded=int(types.count.sum()) - norm.pairs,
        rho_weight=weight.rho,
        rho_norm=norm.rho,
        plain=plain_norm.pairs,
        rho_weight_plain=plain_weight.rho,
        rho_norm_plain=plain_norm.rho,
        types=len(found),
        rho_weight_types=_exact(rank, type_weights.mean[found]),
        rho_norm_types=_exact(rank, types.mean[found]),
        point_rank=rows[:, 0].astype(np.int64),
        point_weight=rows[:, 1],
        point_norm=rows[:, 2],
        point_category=rows[:, 3].astype(np.int64),
        point_special=rows[:, 4] > 0,
        type_token=spelled(tokenizer, found.tolist()),
        type_rank=rank,
        type_count=types.count[found],
        type_weight=type_weights.mean[found],
        type_norm=types.mean[found],
    )


def spelled(tokenizer: Any | None, ids: list[int]) -> tuple[str, ...]:
    """Token ids as the tokenizer writes them; without one they stand for themselves."""
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    if tokenizer is None or not hasattr(tokenizer, "convert_ids_to_tokens"):
        return tuple(str(i) for i in ids)
    return tuple(str(token) for token in tokenizer.convert_ids_to_tokens(ids))


def _exact(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's ρ of numbers that are all at hand; NaN when either side is constant."""
    ranks = [_average_ranks(side) for side in (x, y)]
    x_rank, y_rank = (side - side.mean() for side in ranks)
    spread = np.sqrt((x_rank**2).sum() * (y_rank**2).sum())
    return float((x_rank * y_rank).sum() / spread) if spread > 0 else float("nan")


def _average_ranks(values: np.ndarray) -> np.ndarray:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]
