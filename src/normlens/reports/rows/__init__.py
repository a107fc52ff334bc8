"""The numbers of a report as tables: rows of plain values, one dict per row.

Room: results to rows. No formatting: numbers stay numbers, and what is not defined is None.
"""

from __future__ import annotations

from normlens.reports.rows.categories import categories
from normlens.reports.rows.correlation import correlation
from normlens.reports.rows.dispersion import dispersion
from normlens.reports.rows.frequency import frequency
from normlens.reports.rows.row import Row
from normlens.reports.words import STUDIES, results
from normlens.studies.results import Categories, Correlation, Dispersion, Findings, Frequency


def tables(findings: Findings) -> dict[str, list[Row]]:
    """Every table by name, `what_kind`: dispersion_self, categories_layers_cross ..."""
    return {
        f"{name}_{kind}": rows
        for study in STUDIES
        for kind, result in results(findings, study).items()
        for name, rows in tables_of(result).items()
    }


def tables_of(result: Dispersion | Categories | Correlation | Frequency) -> dict[str, list[Row]]:
    """The tables of one study and one kind of attention, those to read before those to compute with."""
    if isinstance(result, Dispersion):
        return dispersion(result)
    if isinstance(result, Categories):
        return categories(result)
    if isinstance(result, Correlation):
        return correlation(result)
    return frequency(result)
