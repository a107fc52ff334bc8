"""How often each size of number occurs, in bins that fit the numbers seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from normlens.statistics.codes import coarsened, codes_of, joined, values_of


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """At most `size` bins; `a + b` is the histogram of both streams, in whatever order they are added."""

    size: int
    shift: int  # low bits of float32 left out; 0: every number is its own bin
    codes: Int[np.ndarray, " code"]  # occupied bins, ascending
    counts: Int[np.ndarray, " code"]

    @staticmethod
    def of(values: Shaped[np.ndarray, " n"], *, size: int = 1024) -> Histogram:
        return Histogram(size, 0, *np.unique(codes_of(values), return_counts=True))._fitted()

    def __add__(self, other: Histogram) -> Histogram:
        codes, shift = joined(self.codes, self.shift, other.codes, other.shift, self.size)
        counts = np.zeros(len(codes), np.int64)
        for one in (self, other):
            np.add.at(counts, np.searchsorted(codes, one.codes >> (shift - one.shift)), one.counts)
        return Histogram(self.size, shift, codes, counts)

    @property
    def values(self) -> Float[np.ndarray, " code"]:
        """The middle of each bin."""
        return values_of(self.codes, self.shift)

    def quantile(self, share: float) -> float:
        """The number below which this share of the stream lies, up to the width of a bin; NaN when nothing was seen."""
        if not len(self.counts):
            return float("nan")
        return float(self.values[np.searchsorted(np.cumsum(self.counts), share * self.counts.sum())])

    def _fitted(self) -> Histogram:
        codes, shift = coarsened(self.codes, self.shift, self.size)
        places = np.searchsorted(codes, self.codes >> (shift - self.shift))
        return Histogram(
            self.size, shift, codes, np.bincount(places, self.counts, minlength=len(codes)).astype(np.int64)
        )
