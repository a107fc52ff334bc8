"""Tables of frequency: the correlations of Figure 6 of the 2020 paper, one row per type, and the points drawn.

Room: results to rows.
"""

from __future__ import annotations

from normlens.reports.rows.row import Row, plain
from normlens.studies.results import Frequency


def frequency(found: Frequency) -> dict[str, list[Row]]:
    """ρ over occurrences, with and without special tokens, and over types; every type; every point drawn."""
    summary: list[Row] = [
        {
            "row": "every occurrence",
            "points": found.occurrences,
            "rho_weight": plain(found.rho_weight),
            "rho_norm": plain(found.rho_norm),
        },
        {
            "row": "without special tokens",
            "points": found.plain,
            "rho_weight": plain(found.rho_weight_plain),
            "rho_norm": plain(found.rho_norm_plain),
        },
        {
            "row": "one point per type",
            "points": found.types,
            "rho_weight": plain(found.rho_weight_types),
            "rho_norm": plain(found.rho_norm_types),
        },
    ]
    types: list[Row] = [
        {
            "token": token,
            "rank": int(rank),
            "occurrences": int(count),
            "weight": plain(weight),
            "transformed": plain(norm),
        }
        for token, rank, count, weight, norm in zip(
            found.type_token, found.type_rank, found.type_count, found.type_weight, found.type_norm, strict=True
        )
    ]
    points: list[Row] = [
        {"category": found.names[category], "rank": int(rank), "weight": plain(weight), "transformed": plain(norm)}
        for category, rank, weight, norm in zip(
            found.point_category, found.point_rank, found.point_weight, found.point_norm, strict=True
        )
    ]
    return {"frequency": summary, "frequency_types": types, "frequency_points": points}
