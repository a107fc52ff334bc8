"""Tables of Spearman's ρ between weight and length: Table 2 of the 2020 paper, every head, and the points drawn.

Room: results to rows.
"""

from __future__ import annotations

import numpy as np

from normlens.reports.rows.row import Row, plain
from normlens.studies.results import Correlation


def correlation(found: Correlation) -> dict[str, list[Row]]:
    """One row per category; per category and head; per point of the scatter plot."""
    summary: list[Row] = []
    for index, name in enumerate(found.names):
        heads = found.rho_heads[index][np.isfinite(found.rho_heads[index])]
        summary.append(
            {
                "category": name,
                "pairs": int(found.pairs[index]),
                "rho": plain(found.rho[index]),
                "rho_heads": int(heads.size),
                "rho_negative": int((heads < 0).sum()) if heads.size else None,
                "rho_median": plain(np.median(heads)) if heads.size else None,
            }
        )
    by_head: list[Row] = [
        {"category": name, "layer": layer, "head": head, "rho": plain(found.rho_heads[index, row, head])}
        for index, name in enumerate(found.names)
        for row, layer in enumerate(found.layers)
        for head in range(found.rho_heads.shape[2])
        if np.isfinite(found.rho_heads[index, row, head])
    ]
    points: list[Row] = [
        {"category": found.names[category], "weight": plain(weight), "transformed": plain(norm)}
        for category, weight, norm in zip(found.sample_category, found.sample_weight, found.sample_norm, strict=True)
    ]
    return {"correlation": summary, "correlation_heads": by_head, "correlation_points": points}
