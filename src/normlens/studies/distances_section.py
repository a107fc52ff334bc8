"""The distances between heads as sentences, figures and tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from normlens.exhibits import (
    Cloud,
    Column,
    Grid,
    Grids,
    Row,
    Scatter,
    ScatterPanel,
    Table,
    count,
    number,
    percent,
    rho,
    span,
    top_of,
)
from normlens.studies.means import mean_over, spearman
from normlens.studies.per_head import MEASURES
from normlens.studies.predicates import PREDICATES

if TYPE_CHECKING:
    from normlens.studies.distances import Distances

COLOURS = 6  # groups of layers that the map tells apart


def sentences(result: Distances) -> list[str]:
    """Whether heads of one layer are alike, which clusters there are, and whether α and norms agree."""
    lines, heads = [], sum(result.heads)
    for measure, by in (("weights", "By attention weights"), ("norms", "By contributions")):
        within, across = (_mean(part) for part in (result.within(measure), result.across(measure)))
        if np.isfinite(within) and np.isfinite(across):
            nearest = np.where(np.eye(heads, dtype=bool), np.inf, np.nan_to_num(result.between[measure], nan=np.inf))
            same = int((result.layer_of[nearest.argmin(axis=1)] == result.layer_of).sum())
            chance = sum(n * (n - 1) for n in result.heads) / (heads - 1)
            lines.append(
                f"{by}, the mean Jensen-Shannon distance (0 to {number(np.log(2))} nats) is {number(within)} between "
                f"heads of one layer and {number(across)} between "
                f"heads of different layers. The nearest other head is of the same layer for {same} of {count(heads)} "
                f"heads, where {number(chance)} would be expected by chance."
            )
    for measure, what in (("weights", "attention"), ("norms", "contributions")):
        rows = _cluster_rows(result, measure)
        alone, shares = sum(row["size"] == 1 for row in rows), [float(row["share"] or 0) for row in rows]
        if len(rows) > 1:
            lines.append(
                f"By {MEASURES[measure]}, {count(heads)} heads form {len(rows)} clusters, {alone} of them of one head. "
                f"The largest has {rows[0]['size']} heads; the largest mean share of their {what} is on "
                f"{rows[0]['common']}, {percent(shares[0])}."
            )
    agreement = spearman(*(result.between[measure][np.triu_indices(heads, 1)] for measure in MEASURES))
    if np.isfinite(agreement):
        lines.append(f"Over pairs of heads, the distances by α and by ‖αf(x)‖ have ρ = {rho(agreement)}.")
    return lines


def _mean(values: np.ndarray) -> float:
    return float(mean_over(values.reshape(-1)))


def _cluster_rows(result: Distances, measure: str) -> list[Row]:
    rows: list[Row] = []
    names = [n for n, each in PREDICATES.items() if each.any_side or (result.kind != "cross" and n != "same_sentence")]
    for cluster in range(1, int(result.clusters[measure].max(initial=0)) + 1):
        members = np.flatnonzero(result.clusters[measure] == cluster)
        shares = mean_over(result.shares[measure][members, : len(names)].T)
        best = int(np.nan_to_num(shares, nan=-1.0).argmax())
        apart = result.between[measure][np.ix_(members, members)][np.triu_indices(len(members), 1)]
        rows.append(
            {
                "measure": MEASURES[measure],
                "cluster": cluster,
                "size": len(members),
                "distance": _mean(apart),
                "common": PREDICATES[names[best]].reading,
                "share": float(shares[best]),
                "heads": ", ".join(result.names[head] for head in members),
            }
        )
    return rows


def clusters(result: Distances) -> Table:
    """One row for each cluster of each measure."""
    columns = (
        Column("measure", "by", "text"),
        Column("cluster", "cluster", "count"),
        Column("size", "heads", "count"),
        Column("distance", "mean distance within"),
        Column("common", "largest mean share on", "text"),
        Column("share", "share", "percent"),
        Column("heads", "which", "text"),
    )
    rows = [row for measure in MEASURES for row in _cluster_rows(result, measure)]
    return Table("distances_clusters", "Clusters of heads, and where most of their attention falls", rows, columns)


def _groups(layers: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Neighbouring layers together, so that there are no more groups than colours."""
    size = -(-len(layers) // COLOURS)
    for start in range(0, len(layers), size):
        yield span(layers[start : start + size]), layers[start : start + size]


def head_map(result: Distances) -> Scatter:
    """Heads as points in the plane."""
    groups = list(_groups(result.layers))
    panels = tuple(
        ScatterPanel(
            f"by {symbol}",
            tuple(Cloud(name, *result.places[measure][np.isin(result.layer_of, layers)].T) for name, layers in groups),
        )
        for measure, symbol in MEASURES.items()
    )
    return Scatter(
        "distances_map",
        "Heads as points: the nearer two points, the more alike the two heads attend (left), or contribute (right). "
        "Distances in the plane stand for Jensen-Shannon divergences as well as two dimensions can.",
        f"Two panels of {count(sum(result.heads))} points, coloured by layer.",
        panels,
        "",
        names=tuple(name for name, _ in groups),
    )


def matrices(result: Distances) -> Grids:
    """Every head against every head."""
    top = max(top_of(result.between[measure]) for measure in MEASURES)
    grids = (
        Grid("distance by α", result.between["weights"], "weight", top),
        Grid("distance by ‖αf(x)‖", result.between["norms"], "norm", top),
    )
    return Grids(
        "distances",
        "Distance between every two heads, in the order of layers: left of the attention, right of the contributions, "
        f"on one scale from 0 to {number(top)} nats.",
        f"Two maps, head by head. Mean distance by α {number(_mean(result.between['weights']))}, by ‖αf(x)‖ "
        f"{number(_mean(result.between['norms']))}.",
        grids,
        tuple(result.names),
        tuple(result.names),
        row_axis="head",
        across=1,
        folded="Distances between all heads",
    )
