"""The headline numbers of findings, for a program to read.

Room: results to plain data.
"""

from __future__ import annotations

from typing import Any

from normlens.reports.parts import headlines, results, said, tables_of
from normlens.reports.rows.row import plain
from normlens.studies import STUDIES
from normlens.studies.results import Findings

SUMMARIES = ("dispersion", "inputs", "categories", "correlation", "frequency")  # tables short enough to be repeated


def headline(findings: Findings) -> dict[str, Any]:
    """What was looked at, with which signature, the sentences, and the short table of every study and kind."""
    return {
        "signature": str(findings.signature),
        "settings": dict(findings.signature.facts),
        "model": findings.model,
        "corpus": findings.corpus,
        "items": findings.items,
        "tokens": findings.tokens,
        "squares": findings.squares,
        "mean_length": plain(findings.mean_length),
        "length": findings.length,
        "causal": list(findings.causal),
        "error": plain(findings.error),
        "notes": list(findings.notes),
        "found": headlines(findings),
        "studies": {
            study: {
                kind: {
                    "sentences": said(result),
                    **{name: rows for name, rows in tables_of(result).items() if name in SUMMARIES},
                }
                for kind, result in results(findings, study).items()
            }
            for study in STUDIES
            if getattr(findings, study)
        },
    }
