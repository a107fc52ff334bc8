"""`normlens study NAME`: one study of a corpus."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from normlens.cli.options import add_corpus, add_model, load_from, study_from
from normlens.cli.studies import add_settings, list_of_studies, studies_from
from normlens.studies import Report, Study
from normlens.views import check

EXAMPLES = """examples:
  normlens study categories                                    # the bundled MiniLM on the bundled text
  normlens study dispersion --model bert-base-uncased --corpus wiki.txt
  normlens study frequency --corpus wiki.txt --ranks corpus --json
  normlens study categories --corpus wiki.txt --out shares     # also its page, figures and tables
  normlens study sinks --set threshold=0.2 --set positions=1   # a study with other arguments
  normlens study my_study.py:MyStudy --corpus wiki.txt --out own   # one of your own
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "study",
        description="Run one study of a corpus and print its result; with --out, also write its page, figures and "
        "tables.",
        epilog=list_of_studies() + EXAMPLES,
    )
    parser.add_argument("name", metavar="NAME", help="a study listed below, or your own as file.py:Class")
    add_settings(parser)
    add_output(parser)
    add_corpus(parser)
    add_model(parser)
    parser.set_defaults(run=run)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Where the findings go, beside the terminal."""
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the page, the figures and the tables")
    parser.add_argument("--json", action="store_true", help="print every table as JSON only")


def run(options: argparse.Namespace) -> int:
    """Study, print, write."""
    return run_studies(options, studies_from(options.name, options.settings))


def run_studies(options: argparse.Namespace, studies: Sequence[str | Study[Any]]) -> int:
    """Print the results of these studies, and write them to the folder of --out."""
    if options.out is not None:
        check()
    report = Report(study_from(options, load_from(options), studies=studies, folder=options.out))
    if options.json:
        print(
            json.dumps({"signature": str(report.findings.run.signature), "tables": report.tables}, ensure_ascii=False)
        )
    else:
        print(report.show())
        if options.out is None:
            print("Whole tables: --json, or --out DIR for the page, the figures and the tables.")
    if options.out is not None:
        print(f"Report: {report.save(options.out)}", file=sys.stderr)
    return 0
