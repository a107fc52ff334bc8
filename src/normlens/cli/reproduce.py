"""`normlens reproduce PAPER`: a paper's experiments run again, and its numbers beside ours."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from normlens import papers, reports
from normlens.cli.options import add_model, load_from
from normlens.cli.progress import Progress
from normlens.models import LoadError
from normlens.papers.data import FILE

MODEL = "bert-base-uncased"
WEIGHTS = (
    f"  The paper ran {MODEL}. Where there is a network:\n"
    f"    hf download {MODEL} config.json model.safetensors tokenizer.json tokenizer_config.json vocab.txt \\\n"
    f"      --local-dir {MODEL}\n"
    "  then bring that folder here and give it with --model; any other model works as a stand-in."
)
EXAMPLES = """examples:
  normlens reproduce kobayashi2020 --data unlabeled_attn.pkl
  normlens reproduce kobayashi2020 --data unlabeled_attn.pkl --model folder/bert-base-uncased --out paper
  normlens reproduce kobayashi2020 --data unlabeled_attn.pkl --out paper --resume     # after an interruption
  normlens reproduce kobayashi2020 --data my.txt --model my-bert --limit 50           # stand-ins, to try it
"""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "reproduce",
        description="Run the experiments of Kobayashi et al. (2020) on BERT as the paper did, and print paper against "
        "measured, cell by cell. The checksums of the data say whether it is the paper's. Cells that differ are a "
        "measurement, not a failure: the exit code is 0.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        conflict_handler="resolve",  # --model has another default here
    )
    parser.add_argument("paper", choices=("kobayashi2020",), metavar="PAPER", help="kobayashi2020")
    parser.add_argument(
        "--data", default=FILE, metavar="F", help=f"{FILE} of Clark et al. (2019), or a corpus in its place"
    )
    parser.add_argument(
        "--ranks",
        type=Path,
        metavar="F",
        help="frequency ranks, 'rank count id' (default: the order of the vocabulary)",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="the first N sequences only")
    parser.add_argument("--out", type=Path, metavar="DIR", help="also write comparison.csv, .json and the whole report")
    parser.add_argument("--resume", action="store_true", help="go on with a run in --out that was interrupted")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON, nothing else")
    add_model(parser)
    parser.add_argument("--model", default=MODEL, metavar="M", help=f"hub id or folder (default: {MODEL})")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run, print, write."""
    if options.resume and options.out is None:
        raise papers.ReproductionError(
            "--resume goes on with a run in a folder.",
            do="give it with --out.",
        )
    data = papers.read(options.data, options.limit)
    if data.stand_in:
        print(f"normlens: the data is a stand-in. {data.stand_in}", file=sys.stderr)
    if options.out is not None:
        reports.check()
    try:
        lens = load_from(options)
    except LoadError as error:
        raise LoadError(f"{error}\n{WEIGHTS}") from error
    with Progress(resumed=options.resume) as progress:
        findings, comparison = papers.reproduce(
            lens,
            data,
            ranks=options.ranks,
            limit=options.limit,
            folder=options.out,
            resume=options.resume,
            progress=progress,
        )
    print(json.dumps(comparison.to_json(), ensure_ascii=False) if options.json else papers.show(comparison))
    if options.out is not None:
        print(f"Report: {papers.write(findings, comparison, options.out)}", file=sys.stderr)
    return 0
