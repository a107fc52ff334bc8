"""Spearman's ρ over billions of pairs: one pass, bounded memory, ties as average ranks.

Each axis keeps a bounded number of codes (see codes.py), the finest that the numbers allow, and the table counts pairs
of codes. ρ is then exact for numbers rounded to their codes. Numbers that share a code count as tied, which moves ρ by
about ρ/k², k being the number of codes that hold most of the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from normlens.statistics.codes import coarsened, codes_of, distinct, joined, values_of
from normlens.statistics.histogram import Histogram


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """Pairs (x, y) of numbers. `a + b` are the pairs of both, and the same in whatever order they are added."""

    x_size: int  # most codes on the axis
    y_size: int
    x_shift: int  # low bits of float32 left out; 0: every x is its own code
    y_shift: int
    x_codes: Int[np.ndarray, " x"]  # ascending
    y_codes: Int[np.ndarray, " y"]
    counts: Int[np.ndarray, "x y"]

    @staticmethod
    def of(x: Shaped[np.ndarray, " n"], y: Shaped[np.ndarray, " n"], *, size: int | tuple[int, int] = 1024) -> Ranks:
        """The pairs (x[i], y[i]), taken as float32."""
        x_size, y_size = size if isinstance(size, tuple) else (size, size)
        (x_codes, x_at), (y_codes, y_at) = (np.unique(codes_of(v), return_inverse=True) for v in (x, y))
        (x_kept, x_shift), (y_kept, y_shift) = coarsened(x_codes, 0, x_size), coarsened(y_codes, 0, y_size)
        x_place = np.searchsorted(x_kept, x_codes >> x_shift)[x_at]
        y_place = np.searchsorted(y_kept, y_codes >> y_shift)[y_at]
        flat = np.bincount(x_place * len(y_kept) + y_place, minlength=len(x_kept) * len(y_kept))
        return Ranks(x_size, y_size, x_shift, y_shift, x_kept, y_kept, flat.reshape(len(x_kept), len(y_kept)))

    @staticmethod
    def none(x_size: int = 1024, y_size: int = 1024) -> Ranks:
        nothing = np.zeros(0, np.int64)
        return Ranks(x_size, y_size, 0, 0, nothing, nothing, np.zeros((0, 0), np.int64))

    def __add__(self, other: Ranks) -> Ranks:
        x_codes, x_shift = joined(self.x_codes, self.x_shift, other.x_codes, other.x_shift, self.x_size)
        y_codes, y_shift = joined(self.y_codes, self.y_shift, other.y_codes, other.y_shift, self.y_size)
        counts = np.zeros((len(x_codes), len(y_codes)), np.int64)
        for one in (self, other):
            x, folded = _folded(one.x_codes >> (x_shift - one.x_shift), one.counts, axis=0)
            y, folded = _folded(one.y_codes >> (y_shift - one.y_shift), folded, axis=1)
            counts[np.ix_(np.searchsorted(x_codes, x), np.searchsorted(y_codes, y))] += folded
        return Ranks(self.x_size, self.y_size, x_shift, y_shift, x_codes, y_codes, counts)

    @property
    def pairs(self) -> int:
        return int(self.counts.sum())

    @property
    def rho(self) -> float:
        """Spearman's ρ: Pearson's of the average ranks. NaN when either side is constant or nothing was seen."""
        return pooled([self]).rho

    @property
    def x(self) -> Histogram:
        return Histogram(self.x_size, self.x_shift, self.x_codes, self.counts.sum(axis=1))

    @property
    def y(self) -> Histogram:
        return Histogram(self.y_size, self.y_shift, self.y_codes, self.counts.sum(axis=0))

    @property
    def x_values(self) -> Float[np.ndarray, " x"]:
        """The middle of each code of x."""
        return values_of(self.x_codes, self.x_shift)

    @property
    def y_values(self) -> Float[np.ndarray, " y"]:
        return values_of(self.y_codes, self.y_shift)

    @property
    def blur(self) -> float:
        """The share of the variance of ranks that codes may hide. ρ is off by about half of it times ρ."""
        return pooled([self]).blur


class Pooled(NamedTuple):
    """The Spearman's ρ of many tables taken together."""

    pairs: int
    rho: float
    blur: float


def pooled(tables: Sequence[Ranks]) -> Pooled:
    """All pairs of all tables as one stream, each table cut as finely as it is: a code stands at its middle."""
    tables = [table for table in tables if table.pairs]
    pairs = sum(table.pairs for table in tables)
    if not pairs:
        return Pooled(0, float("nan"), 0.0)
    x_parts, x_spread, x_blur = _ranked([(t.x_values, t.counts.sum(axis=1), t.x_shift) for t in tables], pairs)
    y_parts, y_spread, y_blur = _ranked([(t.y_values, t.counts.sum(axis=0), t.y_shift) for t in tables], pairs)
    together = sum(float(x @ (t.counts / pairs) @ y) for x, y, t in zip(x_parts, y_parts, tables, strict=True))
    rho = together / np.sqrt(x_spread * y_spread) if x_spread * y_spread > 0 else float("nan")
    return Pooled(pairs, float(rho), max(x_blur, y_blur))


def _ranked(
    axes: list[tuple[Float[np.ndarray, " _"], Int[np.ndarray, " _"], int]], pairs: int
) -> tuple[list[Float[np.ndarray, " _"]], float, float]:
    """Average ranks of the codes of each table among all, as shares less one half; their variance; what codes hide."""
    values, place = np.unique(np.concatenate([values for values, _, _ in axes]), return_inverse=True)
    shares = np.bincount(place, np.concatenate([counts for _, counts, _ in axes]), minlength=len(values)) / pairs
    ranks = np.cumsum(shares) - shares / 2 - 0.5
    spread = float(ranks**2 @ shares) if len(values) > 1 else 0.0
    hidden = float((shares**3).sum()) if any(shift for _, _, shift in axes) else 0.0
    return np.split(ranks[place], np.cumsum([len(values) for values, _, _ in axes])[:-1]), spread, hidden


def _folded(codes: np.ndarray, counts: np.ndarray, *, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours that share a code now, counted together."""
    kept = distinct(codes)
    if len(kept) == len(codes):
        return codes, counts
    return kept, np.add.reduceat(counts, np.searchsorted(codes, kept), axis=axis)
