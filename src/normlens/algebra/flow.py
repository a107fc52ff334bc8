"""The most that can flow from a position down to a token, through layers whose edges are shares (Abnar, Zuidema, 2020).

The solver takes whole numbers: a capacity is rounded down to a multiple of 2⁻³⁰, so a flow is never too large, and too
small by at most 2⁻³⁰ for each edge of a smallest cut: fewer than there are edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

UNIT = 1 << 30  # a row adds up to 1, so no flow exceeds it


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Edges from some nodes down to others; nodes of one level are numbered in a row."""

    upper: int  # number of the first node above
    lower: int  # number of the first node below
    shares: Float[np.ndarray, "above below"]


def max_flows(links: Sequence[Links], sources: Sequence[int], sinks: Sequence[int]) -> Float[np.ndarray, "source sink"]:
    """The maximum flow from each source to each sink."""
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import maximum_flow

    tails, heads, units = [], [], []
    for link in links:
        whole = np.floor(link.shares.astype(np.float64) * UNIT).astype(np.int32)
        above, below = whole.nonzero()
        tails.append(above + link.upper)
        heads.append(below + link.lower)
        units.append(whole[above, below])
    count = max(max(link.upper + len(link.shares), link.lower + link.shares.shape[1]) for link in links)
    edges = np.concatenate(units), (np.concatenate(tails), np.concatenate(heads))
    graph = csr_array(coo_array(edges, shape=(count, count)))
    graph.indices, graph.indptr = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
    found = [[maximum_flow(graph, source, sink).flow_value for sink in sinks] for source in sources]
    return np.asarray(found, dtype=np.float64).reshape(len(sources), len(sinks)) / UNIT


def rounding(links: Sequence[Links]) -> float:
    """By how much a flow can be too small at most."""
    return sum(int(np.count_nonzero(link.shares)) for link in links) / UNIT
