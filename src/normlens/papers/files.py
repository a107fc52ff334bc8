"""A comparison on disk, beside the report of the run.

Room: writing. The comparison comes first: it is there even when a figure cannot be drawn.
"""

from __future__ import annotations

from pathlib import Path

from normlens import reports
from normlens.papers.compare import Comparison
from normlens.reports.files import as_csv, as_json, put
from normlens.studies import Findings


def write(findings: Findings, comparison: Comparison, folder: Path) -> Path:
    """Write comparison.csv, comparison.json and the whole report into the folder; the path of the page."""
    put(folder / "comparison.csv", as_csv(comparison.rows()))
    put(folder / "comparison.json", as_json(comparison.to_json()))
    return reports.write(findings, folder)
