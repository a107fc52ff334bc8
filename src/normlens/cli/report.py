"""`normlens report`: every study of a corpus, as one page."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from normlens.cli.options import add_corpus, add_model, load_from, study_from
from normlens.cli.studies import add_settings, list_of_studies, studies_from
from normlens.studies import DEFAULT, Report
from normlens.views import check

EXAMPLES = """examples:
  normlens report --out first                                  # the bundled MiniLM on the bundled text
  normlens report --model bert-base-uncased --corpus wiki.txt --split paragraph --pairs --out wiki
  normlens report --model gpt2 --corpus posts.csv --column body --limit 500 --out posts
  normlens report --corpus wiki.txt --category 'numbers=/[0-9]+/' --category 'the=the,The' --out mine
  normlens report --studies categories,my_study.py:MyStudy --out own   # one study of ours, one of your own
  normlens report --studies sinks,targets --set threshold=0.2 --out sinks   # with other arguments
  normlens report --corpus wiki.txt --out wiki --resume        # continue after an interruption
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "report",
        description="Run a corpus through a model and write report.html, figures/ and tables/.",
        epilog=list_of_studies() + EXAMPLES,
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the report (required)")
    parser.add_argument(
        "--studies",
        metavar="S,S",
        help="names of studies, or your own as file.py:Class or package.module:Class (default: "
        + ", ".join(DEFAULT)
        + ")",
    )
    add_settings(parser)
    add_corpus(parser)
    add_model(parser)
    parser.set_defaults(run=run, check=partial(_check, parser))


def run(options: argparse.Namespace) -> int:
    """Study, write, print."""
    check()
    studies = studies_from(options.studies, options.settings)
    report = Report(study_from(options, load_from(options), studies=studies, folder=options.out))
    page = report.save(options.out)
    print(report.show())
    print(f"Report: {page}", file=sys.stderr)
    return 0


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.out is None:  # argparse would report this before a file without --corpus
        parser.error("the following arguments are required: --out")
