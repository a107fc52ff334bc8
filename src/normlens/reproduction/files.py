"""A comparison on disk, beside the report of the run.

Room: writing. The comparison comes first: it is there even when a figure cannot be drawn.
"""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

from normlens import reports
from normlens.reproduction.compare import Comparison
from normlens.studies import Findings


def write(findings: Findings, comparison: Comparison, folder: Path) -> Path:
    """Write comparison.csv, comparison.json and the whole report into the folder; the path of the page."""
    rows = comparison.rows()
    table = io.StringIO(newline="")
    lines = csv.DictWriter(table, fieldnames=list(rows[0]), lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows)
    _put(folder / "comparison.csv", table.getvalue())
    _put(folder / "comparison.json", json.dumps(comparison.to_json(), ensure_ascii=False, indent=1) + "\n")
    return reports.write(findings, folder)


def _put(path: Path, text: str) -> None:
    """Write beside its place, then take the place at once."""
    unfinished = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")
        os.replace(unfinished, path)
    except OSError as error:
        raise reports.ReportError(
            f"The comparison cannot be written: '{path}': {error.strerror or error}.\n"
            "  Usual causes: the folder is not yours to write in, or the disk is full.\n  Do: choose another folder."
        ) from error
