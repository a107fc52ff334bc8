"""`normlens reproduce PAPER`: a paper's experiments run again, its numbers beside the measured ones."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from normlens import papers
from normlens.cli.options import add_model, load_from
from normlens.cli.progress import Progress
from normlens.models import LoadError
from normlens.papers import FILE
from normlens.views import check

MODEL = "bert-base-uncased"
DOWNLOAD = (
    f"download {MODEL}, the model of the paper, on a machine with a connection, and give its folder with --model:\n"
    f"    hf download {MODEL} config.json model.safetensors tokenizer.json tokenizer_config.json vocab.txt "
    f"--local-dir {MODEL}\n"
    "    Any other model works as a stand-in."
)
EXAMPLES = """examples:
  normlens reproduce kobayashi2020 --data unlabeled_attn.pkl
  normlens reproduce kobayashi2020 --data unlabeled_attn.pkl --model folder/bert-base-uncased --out paper
  normlens reproduce kobayashi2020 --data unlabeled_attn.pkl --out paper --resume     # after an interruption
  normlens reproduce kobayashi2021 --data unlabeled_attn.pkl --out mixing     # how much attention mixes tokens
  normlens reproduce kobayashi2020 --data my.txt --model my-bert --limit 50           # stand-ins, to try it
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "reproduce",
        description="Run the experiments of Kobayashi et al. (2020, or 2021 on mixing) on BERT and print the "
        "paper's numbers beside the "
        "measured ones, cell by cell. Checksums show whether the data is the paper's. Cells may differ: the exit code "
        "is 0 all the same.",
        epilog=EXAMPLES,
    )
    parser.add_argument("paper", choices=papers.PAPERS, metavar="PAPER", help=" or ".join(papers.PAPERS))
    parser.add_argument(
        "--data", default=FILE, metavar="F", help=f"{FILE} of Clark et al. (2019), or a corpus in its place"
    )
    parser.add_argument(
        "--ranks",
        type=Path,
        metavar="F",
        help="frequency ranks, 'rank count id' (default: the order of the vocabulary)",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="use the first N sequences (default: all)")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="also write comparison.csv, comparison.json and the report"
    )
    parser.add_argument("--resume", action="store_true", help="continue the interrupted run in --out")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON only")
    add_model(parser, default=MODEL)
    parser.set_defaults(run=run, model=MODEL)


def run(options: argparse.Namespace) -> int:
    """Run, print, write."""
    if options.resume and options.out is None:
        raise papers.ReproductionError(
            "--resume needs --out, the folder of the run to continue.",
            do="add --out DIR.",
        )
    data = papers.read(options.data, options.limit)
    if data.stand_in:
        print(f"normlens: the data is a stand-in. {data.stand_in}", file=sys.stderr)
    if options.out is not None:
        check()
    try:
        lens = load_from(options)
    except LoadError as error:
        raise LoadError(error.what, got=error.got, cause=error.cause, do=DOWNLOAD) from error
    with Progress(resumed=options.resume) as progress:
        findings, comparison = papers.reproduce(
            lens,
            data,
            paper=options.paper,
            ranks=options.ranks,
            limit=options.limit,
            folder=options.out,
            resume=options.resume,
            progress=progress,
        )
    print(json.dumps(comparison.to_json(), ensure_ascii=False) if options.json else comparison.show())
    if options.out is not None:
        print(f"Report: {comparison.save(findings, options.out)}", file=sys.stderr)
    return 0
