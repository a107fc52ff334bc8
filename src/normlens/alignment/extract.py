"""From soft maps to links: which words belong together, and how sure that is.

Room: arrays of words by words. No model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from normlens.alignment.links import Alignment

TINY = 1e-30  # a row that gets nothing stays nothing


def strongest(soft: Float[np.ndarray, "tgt_word src_word"]) -> Alignment:
    """The source word that gives each target word most; none if what is no word (the last column) gives more.

    The confidence of a link is its share of the row. Ties go to the first word.
    """
    winner = soft.argmax(axis=1)
    total = soft.sum(axis=1)
    return Alignment.of(
        {
            (int(source), target): float(soft[target, source] / total[target])
            for target, source in enumerate(winner)
            if source < soft.shape[1] - 1 and total[target] > 0
        }
    )


def averaged(
    maps: Sequence[Float[np.ndarray, "tgt_word src_word"]], weights: Sequence[float] = ()
) -> Float[np.ndarray, "tgt_word src_word"]:
    """Mean of several maps, rows brought to 1 first so that none counts by its size; one map stays as it is."""
    return maps[0] if len(maps) == 1 else _mean(maps, weights)


def shares(
    maps: Sequence[Float[np.ndarray, "tgt_word src_word"]], weights: Sequence[float] = ()
) -> Float[np.ndarray, "tgt_word src"]:
    """Mean of several maps, each without its last column and with rows that add up to 1."""
    return _mean([soft[:, :-1] for soft in maps], weights)


def both(
    forward: Float[np.ndarray, "tgt_word src_word"], backward: Float[np.ndarray, "src_word tgt_word"]
) -> Float[np.ndarray, "tgt_word src_word"]:
    """Geometric mean of the shares of two directions: high only where both models agree."""
    return np.sqrt(forward * backward.T)


def mutual(
    agreed: Float[np.ndarray, "tgt_word src_word"], *, second_link: float = 1.0, min_confidence: float = 0.0
) -> Alignment:
    """Pairs of words that are each other's strongest, with the value as confidence; below `min_confidence` none.

    With `second_link` below 1, links are also those that are the strongest of one word only, if they have at least
    `second_link` times the strength of the other word's strongest: so one word can have several partners.
    """
    rows, columns = agreed.argmax(axis=1), agreed.argmax(axis=0)
    row_best, column_best = agreed.max(axis=1, initial=0), agreed.max(axis=0, initial=0)
    cells = {(int(source), target) for target, source in enumerate(rows) if columns[source] == target}
    if second_link < 1:
        cells |= {(int(s), t) for t, s in enumerate(rows) if agreed[t, s] >= second_link * column_best[s]}
        cells |= {(s, int(t)) for s, t in enumerate(columns) if agreed[t, s] >= second_link * row_best[t]}
    return Alignment.of({(s, t): float(agreed[t, s]) for s, t in cells if agreed[t, s] > min_confidence})


def _mean(maps: Sequence[Float[np.ndarray, "row column"]], weights: Sequence[float]) -> Float[np.ndarray, "row column"]:
    rows = [soft / np.maximum(soft.sum(axis=1, keepdims=True), TINY) for soft in maps]
    return np.average(rows, axis=0, weights=weights if sum(weights) else None)
