"""Tokens removed in an order: what is lost, and the best and the worst that any order does.

    drop(S) = F(all tokens) − F(without S)
    AOPC of an order = mean over shares of drop(its first tokens, so large a share)

after DeYoung et al. (2020). Its size depends on the text and the model, so it is set between the worst and the best
order of the same text, after Edin et al. (2024): (AOPC − worst) / (best − worst). Where there are few sets of tokens
both are exact; else they are the lowest and the highest that a beam search finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb

import numpy as np
from jaxtyping import Bool, Float, Int

from normlens.studies.study import StudyError

RANDOM = "random"
SHARES = (0.05, 0.1, 0.2, 0.5)
EXHAUSTIVE = 256  # sets of tokens that are all tried
Sets = Bool[np.ndarray, "set token"]


class Drops:
    """What is lost without a set of tokens; each set is computed once."""

    def __init__(self, compute: Callable[[Sets], Float[np.ndarray, " set"]], tokens: int) -> None:
        self.tokens, self._compute = tokens, compute
        self._known: dict[bytes, float] = {}

    def of(self, sets: Sets) -> Float[np.ndarray, " set"]:
        """The drop of every set."""
        keys = [np.packbits(row).tobytes() for row in sets]
        new = {key: place for place, key in enumerate(keys) if key not in self._known}
        if new:
            values = self._compute(sets[list(new.values())])
            self._known.update(zip(new, values.tolist(), strict=True))
        return np.array([self._known[key] for key in keys])

    @property
    def single(self) -> Float[np.ndarray, " token"]:
        """What is lost without each token alone."""
        return self.of(np.eye(self.tokens, dtype=bool))


def counts_of(shares: Sequence[float | int], tokens: int) -> Int[np.ndarray, " share"]:
    """How many tokens each share is: rounded, at least one, and never all of several."""
    return np.clip(np.round(np.array(shares) * tokens), 1, max(1, tokens - 1)).astype(int)


def order_of(scores: Float[np.ndarray, " token"], chance: np.random.Generator) -> Int[np.ndarray, " token"]:
    """Tokens from the highest score on; equal scores in an order by chance."""
    return np.lexsort((chance.random(len(scores)), -scores))


def first_of(order: Int[np.ndarray, " token"], counts: Int[np.ndarray, " share"]) -> Sets:
    """The first tokens of an order, as many as each count says."""
    sets = np.zeros((len(counts), len(order)), bool)
    for row, count in zip(sets, counts, strict=True):
        row[order[:count]] = True
    return sets


def bounds(drops: Drops, counts: Int[np.ndarray, " share"], width: int) -> tuple[float, float]:
    """The lowest and the highest AOPC that were found among all orders."""
    last = int(counts.max())
    sets = sum(comb(drops.tokens, size) for size in range(1, last + 1))
    kept = sets if sets <= EXHAUSTIVE else width
    weights = np.array([(counts == size).mean() for size in range(last + 1)])
    beams = {sign: _Beam(np.zeros((1, drops.tokens), bool), np.zeros(1)) for sign in (-1, 1)}
    for size in range(1, last + 1):
        grown = {sign: beam.grown(sign) for sign, beam in beams.items()}
        drops.of(np.concatenate([beam.sets for beam in grown.values()]))
        for sign, beam in grown.items():
            here = drops.of(beam.sets)
            reached = beam.reached + weights[size] * here
            hoped = sign * (reached + weights[size + 1 :].sum() * here)  # as if later tokens changed nothing
            best = np.argsort(-hoped, kind="stable")[:kept]
            beams[sign] = _Beam(beam.sets[best], reached[best])
    return float(beams[-1].reached.min()), float(beams[1].reached.max())


class _Beam:
    """Sets of tokens, and the most (or least) that was collected on the way to each."""

    def __init__(self, sets: Sets, reached: Float[np.ndarray, " set"]) -> None:
        self.sets, self.reached = sets, reached

    def grown(self, sign: int) -> _Beam:
        """Every set with one more token; of several ways to a set the best."""
        ways: dict[bytes, tuple[float, np.ndarray]] = {}
        for row, value in zip(self.sets, self.reached, strict=True):
            for token in np.flatnonzero(~row):
                more = row.copy()
                more[token] = True
                key = more.tobytes()
                if key not in ways or sign * value > sign * ways[key][0]:
                    ways[key] = (value, more)
        return _Beam(np.stack([more for _, more in ways.values()]), np.array([value for value, _ in ways.values()]))


def check_shares(shares: Sequence[float | int], width: int) -> None:
    """Refuse what is no share."""
    if not shares or not all(0 < share < 1 for share in shares):
        raise StudyError(f"shares must be above 0 and below 1 (got {list(shares)}).", do="shares=(0.05, 0.2, 0.5).")
    if width < 1:
        raise StudyError(f"width must be at least 1 (got {width}).", do="give 1 or more; 3 is the default.")
