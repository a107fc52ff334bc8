"""Arguments and manners that the commands over a corpus share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from normlens.cli.progress import Progress
from normlens.corpora import Corpus, corpus, default_corpus, parse_category
from normlens.lens import Lens
from normlens.studies import STUDIES, Findings, study


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Which texts, how they are cut, and what is asked of their tokens."""
    group = parser.add_argument_group("corpus")
    group.add_argument(
        "--corpus", metavar="F", help="text, jsonl, csv, tsv, pkl, a folder, or - for standard input; else a sample"
    )
    group.add_argument("--split", choices=("line", "paragraph"), default="line", help="what an item of plain text is")
    group.add_argument("--pairs", action="store_true", help="items 1 and 2, 3 and 4 ... make pairs, as in the paper")
    group.add_argument("--column", metavar="C", help="name or number of the text column of csv, tsv or jsonl")
    group.add_argument("--pair-column", metavar="C", help="name or number of the column of the second text")
    group.add_argument("--encoding", default="utf-8", metavar="E", help="of text files (default: utf-8)")
    group.add_argument("--limit", type=int, metavar="N", help="the first N items only")
    group.add_argument("--length", type=int, default=128, metavar="N", help="cut items to N tokens (default: 128)")
    group = parser.add_argument_group("studies")
    group.add_argument(
        "--category",
        action="append",
        default=[],
        metavar="NAME=...",
        help="a category of your own: NAME=tok,tok or NAME=/regex/ or NAME=@first, @special, @punctuation; repeat it",
    )
    group.add_argument(
        "--ranks", metavar="R", help="frequency ranks: a file 'rank count id', 'vocabulary', or 'corpus' to count them"
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="for what is drawn at random (default: 0)")
    group.add_argument("--batch-tokens", type=int, default=4096, metavar="N", help="tokens run at once (default: 4096)")
    group.add_argument("--resume", action="store_true", help="go on with the run in --out that was interrupted")


def corpus_from(options: argparse.Namespace) -> Corpus:
    """The corpus these options ask for."""
    if options.corpus is None:
        return default_corpus()
    return corpus(
        options.corpus,
        split=options.split,
        column=_column(options.column),
        pair_column=_column(options.pair_column),
        pairs=options.pairs,
        encoding=options.encoding,
    )


def study_from(options: argparse.Namespace, lens: Lens, *, names: Any = STUDIES, folder: Path | None) -> Findings:
    """Run the studies these options ask for, and show how far they have come."""
    with Progress(resumed=options.resume) as progress:
        return study(
            lens,
            corpus_from(options),
            names=names,
            categories=[parse_category(text) for text in options.category] or None,
            ranks=options.ranks,
            length=options.length,
            limit=options.limit,
            seed=options.seed,
            batch_tokens=options.batch_tokens,
            folder=folder,
            resume=options.resume,
            progress=progress,
        )


def _column(name: str | None) -> str | int | None:
    return int(name) if name is not None and name.isdigit() else name
