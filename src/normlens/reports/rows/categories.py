"""Tables of categories: what each draws and gives, by layer and by head.

Room: results to rows.
"""

from __future__ import annotations

import numpy as np

from normlens.reports.rows.row import Row, plain
from normlens.reports.shares import mean_over, norm_shares, present, weight_shares
from normlens.studies.results import Categories


def categories(found: Categories) -> dict[str, list[Row]]:
    """One row per category; per category and layer (Figure 3); per category and head (Figures 4, 10, 11, 12)."""
    weights, shares, norms = weight_shares(found), norm_shares(found), mean_over(found.norms)
    summary: list[Row] = [
        {
            "category": name,
            "tokens": int(found.tokens[index]),
            "sequences": int(found.sequences[index]),
            "weight_share": plain(mean_over(weights[index])),
            "norm_share": plain(mean_over(shares[index])),
            "transformed": plain(mean_over(mean_over(found.transformed[index]))),
        }
        for index, name in enumerate(found.names)
    ]
    by_layer: list[Row] = [
        {
            "category": found.names[index],
            "layer": layer,
            "weight": plain(weights[index, row]),
            "norm": plain(norms[index, row]),
            "norm_share": plain(shares[index, row]),
        }
        for index in present(found)
        for row, layer in enumerate(found.layers)
    ]
    by_head: list[Row] = [
        {
            "category": found.names[index],
            "layer": layer,
            "head": head,
            "weight": plain(found.weights[index, row, head]),
            "norm": plain(found.norms[index, row, head]),
            "transformed": plain(found.transformed[index, row, head]),
        }
        for index in present(found)
        for row, layer in enumerate(found.layers)
        for head in range(found.weights.shape[2])
        if np.isfinite(found.weights[index, row, head])
    ]
    return {"categories": summary, "categories_layers": by_layer, "categories_heads": by_head}
