"""`normlens report`: every study of a corpus, as one page to open."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from normlens import reports
from normlens.cli.corpus import add_corpus, study_from
from normlens.cli.options import add_model, load_from

EXAMPLES = """examples:
  normlens report --out first                                  # the embedded model on the embedded text
  normlens report --model bert-base-uncased --corpus wiki.txt --split paragraph --pairs --out wiki
  normlens report --model gpt2 --corpus posts.csv --column body --limit 500 --out posts
  normlens report --corpus wiki.txt --category 'numbers=/[0-9]+/' --category 'the=the,The' --out mine
  normlens report --corpus wiki.txt --out wiki --resume        # go on after an interruption
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "report",
        description="Stream a corpus through a model and write report.html, figures/ and tables/: how much ‖f(x)‖ "
        "varies, what each category of tokens draws and gives, whether α and ‖f(x)‖ cancel, and what frequency does.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the report and its files; must be given")
    add_corpus(parser)
    add_model(parser)
    parser.set_defaults(run=run, check=partial(_check, parser))


def run(options: argparse.Namespace) -> int:
    """Study, write, say what was found."""
    reports.check()
    findings = study_from(options, load_from(options), folder=options.out)
    page = reports.write(findings, options.out)
    print(reports.show(findings))
    print(f"Report: {page}", file=sys.stderr)
    return 0


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.out is None:  # not left to argparse, which would complain of it before a file without --corpus
        parser.error("the following arguments are required: --out")
