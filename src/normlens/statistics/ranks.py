"""Spearman's ρ over billions of pairs: one pass, bounded memory, ties as average ranks.

Room: statistics. Knows nothing of attention.

Each axis keeps a bounded number of codes (see codes.py), the finest that the numbers allow, and the table counts pairs
of codes. ρ is then exact for numbers rounded to their codes. Numbers that share a code count as tied, which moves ρ by
about ρ/k², k being the number of codes that hold most of the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from normlens.statistics.codes import coarsened, codes_of, distinct, joined, values_of
from normlens.statistics.histogram import Histogram


@dataclass(frozen=True, slots=True)
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
        total = Ranks(self.x_size, self.y_size, x_shift, y_shift, x_codes, y_codes, counts)
        for one in (self, other):
            total._take(one)
        return total

    @staticmethod
    def pooled(tables: Sequence[Ranks], *, size: int = 2048) -> Ranks:
        """The sum of many tables, with room for more codes than each of them had."""
        x_shift, y_shift = (max((getattr(t, f"{axis}_shift") for t in tables), default=0) for axis in "xy")
        nothing = [np.zeros(0, np.int64)]
        x_all = np.unique(np.concatenate([t.x_codes >> (x_shift - t.x_shift) for t in tables] + nothing))
        y_all = np.unique(np.concatenate([t.y_codes >> (y_shift - t.y_shift) for t in tables] + nothing))
        (x_codes, x_shift), (y_codes, y_shift) = coarsened(x_all, x_shift, size), coarsened(y_all, y_shift, size)
        total = Ranks(size, size, x_shift, y_shift, x_codes, y_codes, np.zeros((len(x_codes), len(y_codes)), np.int64))
        for table in tables:
            total._take(table)
        return total

    @property
    def pairs(self) -> int:
        return int(self.counts.sum())

    @property
    def rho(self) -> float:
        """Spearman's ρ: the correlation of the average ranks. NaN when either side is constant or nothing was seen."""
        if min(self.counts.shape) < 2:
            return float("nan")
        x, y = (_centred(self.counts.sum(axis=axis)) for axis in (1, 0))
        shares = self.counts / self.pairs
        spread = (x**2 @ shares.sum(axis=1)) * (y**2 @ shares.sum(axis=0))
        return float(x @ shares @ y / np.sqrt(spread))

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
    def blur(self) -> float:
        """The share of the variance of ranks that codes may hide. ρ is off by about half of it times ρ."""
        hidden = [
            0.0 if shift == 0 or not self.pairs else float(((self.counts.sum(axis=axis) / self.pairs) ** 3).sum())
            for shift, axis in ((self.x_shift, 1), (self.y_shift, 0))
        ]
        return max(hidden)

    def _take(self, one: Ranks) -> None:
        """Count the pairs of a table whose codes are all here, cut as finely or finer."""
        x, folded = _folded(one.x_codes >> (self.x_shift - one.x_shift), one.counts, axis=0)
        y, folded = _folded(one.y_codes >> (self.y_shift - one.y_shift), folded, axis=1)
        self.counts[np.ix_(np.searchsorted(self.x_codes, x), np.searchsorted(self.y_codes, y))] += folded


def _folded(codes: np.ndarray, counts: np.ndarray, *, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours that share a code now, counted together."""
    kept = distinct(codes)
    if len(kept) == len(codes):
        return codes, counts
    return kept, np.add.reduceat(counts, np.searchsorted(codes, kept), axis=axis)


def _centred(counts: Int[np.ndarray, " code"]) -> Float[np.ndarray, " code"]:
    """Average rank of each code, as a share of all, less the mean of all."""
    return (np.cumsum(counts) - counts / 2) / counts.sum() - 0.5
