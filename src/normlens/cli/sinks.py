"""`normlens sinks`: which tokens are attention sinks, and do they contribute?"""

from __future__ import annotations

import argparse
from typing import Any

from normlens.cli.options import add_corpus, add_model
from normlens.cli.study import add_output, run_studies
from normlens.studies import SinksStudy

EXAMPLES = """examples:
  normlens sinks                                               # the bundled MiniLM on the bundled text
  normlens sinks --model gpt2 --corpus posts.csv --column body --limit 200
  normlens sinks --corpus wiki.txt --threshold 0.2 --json
  normlens sinks --corpus wiki.txt --out sinks                 # also the page, the figures and the tables
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "sinks",
        description="For every head: how often a token receives more than a threshold of the attention of the queries "
        "that see it, where it is, its norm ‖f(x)‖, its share of the contributions, the rank of what it writes, and "
        "whether it is a no-op or broadcasts; for every layer the largest activation.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "--threshold", type=float, default=0.3, metavar="T", help="share of the attention of a sink (default: 0.3)"
    )
    add_output(parser)
    add_corpus(parser)
    add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Study, print, write."""
    return run_studies(options, (SinksStudy(threshold=options.threshold),))
