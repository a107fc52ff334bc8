"""`normlens faithful FILE`: which attribution to trust on a model."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from normlens.attribution import REMOVALS
from normlens.cli.arguments import column, names, natural, positive
from normlens.cli.options import add_model, load_from
from normlens.cli.progress import Progress
from normlens.cli.study import add_output
from normlens.corpora import corpus
from normlens.exhibits import bullet, text_table
from normlens.models import CLASSIFIER
from normlens.studies import FAITHFUL_VALUES, Faithfulness, faithfulness
from normlens.views import check, visible_line

EXAMPLES = """examples:
  normlens faithful sst2-dev.tsv --column 0 --limit 200         # the bundled classifier
  normlens faithful stories.txt --model stories15m --limit 50   # a language model: its next token
  normlens faithful news.de --model Helsinki-NLP/opus-mt-de-en  # a translation model: a token of its translation
  normlens faithful texts.txt --methods gradient_x_input,integrated_gradients --removal delete
  normlens faithful texts.txt --out faithful                    # also the page, the figure and the tables
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "faithful",
        description="Compare the methods of attribution on the model's own predictions: what is lost when the tokens "
        "go that a method puts first, set between the best and the worst order of each text, with random orders as "
        "the floor.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "file", metavar="FILE", help="text, .jsonl, .csv, .tsv file or a folder; '-' reads standard input"
    )
    parser.add_argument("--methods", type=names, metavar="M", help="methods to compare: a,b (default: all of them)")
    parser.add_argument(
        "--removal",
        choices=REMOVALS,
        default="mask",
        help="how tokens are removed: mask (hidden from attention, default), delete, mask_token (the tokenizer's mask "
        "token instead), mean (the mean embedding instead)",
    )
    parser.add_argument(
        "--value", choices=FAITHFUL_VALUES, default="logit", help="what is explained of a prediction (default: logit)"
    )
    parser.add_argument(
        "--width", type=positive, default=3, metavar="N", help="width of the search for the best order (default: 3)"
    )
    add_output(parser)
    group = parser.add_argument_group("corpus")
    group.add_argument("--column", type=column, metavar="C", help="name or number of the text column")
    group.add_argument(
        "--pair-column", type=column, metavar="C", help="name or number of the column of the second text"
    )
    group.add_argument("--encoding", default="utf-8", metavar="E", help="encoding of text files (default: utf-8)")
    group.add_argument("--limit", type=positive, metavar="N", help="use the first N items (default: all)")
    group.add_argument("--length", type=positive, default=64, metavar="N", help="cut items to N tokens (default: 64)")
    group.add_argument("--seed", type=natural, default=0, metavar="N", help="seed of random orders (default: 0)")
    group.add_argument("--resume", action="store_true", help="continue the interrupted run in --out")
    add_model(parser, default="the bundled classifier")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare, print, write."""
    if options.out is not None:
        check()
    texts = corpus(options.file, column=options.column, pair_column=options.pair_column, encoding=options.encoding)
    lens = load_from(options, options.model or CLASSIFIER)
    with Progress(resumed=options.resume) as progress:
        result = faithfulness(
            lens,
            texts,
            methods=options.methods,
            removal=options.removal,
            value=options.value,
            width=options.width,
            length=options.length,
            limit=options.limit,
            seed=options.seed,
            out=options.out,
            resume=options.resume,
            progress=progress,
        )
    if options.json:
        tables = {table.name: list(table.rows) for table in result.document().tables().values()}
        print(json.dumps({"signature": str(result.signature), "tables": tables}, ensure_ascii=False))
    else:
        print(_text(result))
    if options.out is not None:
        print(f"Report: {Path(options.out) / 'report.html'}", file=sys.stderr)
    return 0


def _text(result: Faithfulness) -> str:
    """Sentences, then every method with as many columns as fit."""
    section = result.section()
    tables = [table for table in result.document().tables().values() if table.name == "faithfulness"]
    width = shutil.get_terminal_size((110, 0)).columns
    return "\n".join(
        [
            *map(bullet, [*section.sentences, *section.notes]),
            "",
            *(text_table(table, None, width) for table in tables),
            "Lost by share and pairs of methods: --json, or --out DIR for the page and its tables.",
            "",
            visible_line(str(result.signature)),
        ]
    )
