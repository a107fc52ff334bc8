"""`normlens study NAME`: one question asked of a corpus."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from normlens import reports
from normlens.cli.corpus import add_corpus, study_from
from normlens.cli.options import add_model, load_from
from normlens.studies import STUDIES

EXAMPLES = """examples:
  normlens study categories                                    # the embedded model on the embedded text
  normlens study correlation --model bert-base-uncased --corpus wiki.txt
  normlens study frequency --corpus wiki.txt --ranks corpus --json
  normlens study dispersion --corpus wiki.txt --out spread     # also its part of the report
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "study",
        description="Run one study and print what it found; with --out also write its figures and tables.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=STUDIES, metavar="NAME", help=", ".join(STUDIES))
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the page, the figures and the tables")
    parser.add_argument("--json", action="store_true", help="print every table as JSON, nothing else")
    add_corpus(parser)
    add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Study, print, write."""
    if options.out is not None:
        reports.check()
    findings = study_from(options, load_from(options), names=(options.name,), folder=options.out)
    if options.json:
        print(
            json.dumps({"signature": str(findings.signature), "tables": reports.tables(findings)}, ensure_ascii=False)
        )
    else:
        print(reports.show(findings))
    if options.out is not None:
        print(f"Report: {reports.write(findings, options.out)}", file=sys.stderr)
    return 0
