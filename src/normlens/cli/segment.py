"""`normlens segment FILE`: cut a text where attention says so, and score the cuts where they are known."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from io import BufferedIOBase
from itertools import islice
from pathlib import Path
from typing import Any, cast

from tqdm import tqdm

from normlens.cli.arguments import encoding, positive
from normlens.cli.options import add_model, load_from
from normlens.corpora import corpus, file_lines, lines
from normlens.studies import segment, segmentation_scores

EXAMPLES = """examples:
  normlens segment story.txt                             # after tokens that receive much attention
  normlens segment story.txt --by similarity --segments 5
  normlens segment sentences.txt --score lines           # one sentence a line, blank lines between texts
  normlens segment article.txt --score paragraphs        # blank lines between paragraphs
  normlens segment pairs.jsonl --score items --limit 200 # each item two paragraphs
"""
CHOICES = ("by", "measure", "layers", "threshold", "segments", "punctuation", "window")


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "segment",
        description="Cut a text where attention to separators, or the similarity of head outputs, says so. With "
        "--score, cut texts whose segments are known, and print P_k, WindowDiff and the F1 of boundaries beside "
        "punctuation and random cuts.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="a text; '-' reads standard input")
    parser.add_argument("--json", action="store_true", help="print JSON, nothing else")
    group = parser.add_argument_group("how it is cut (our choices, see the docs)")
    group.add_argument("--by", choices=("separators", "similarity"), help="default: separators")
    group.add_argument(
        "--measure", choices=("weights", "norms"), help="for separators: α or ‖αf(x)‖ (default: weights)"
    )
    group.add_argument("--layers", type=int, metavar="N", help="the last N layers (default: a third)")
    group.add_argument("--threshold", type=float, metavar="K", help="K standard deviations above the mean (default: 1)")
    group.add_argument("--segments", type=int, metavar="N", help="N segments, instead of a threshold")
    group.add_argument("--punctuation", action="store_true", default=None, help="only after a punctuation mark")
    group.add_argument("--window", type=int, metavar="N", help="tokens read at once (default: 128)")
    group = parser.add_argument_group("scores")
    group.add_argument(
        "--score",
        choices=("lines", "paragraphs", "items"),
        help="the known segments: lines, with blank lines between texts; paragraphs of one text; or the texts of each "
        "item of a corpus (jsonl, csv, tsv)",
    )
    group.add_argument("--limit", type=positive, metavar="N", help="score the first N texts (default: all)")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="for random cuts and intervals (default: 0)")
    group.add_argument(
        "--encoding", type=encoding, default="utf-8", metavar="E", help="encoding of the file (default: utf-8)"
    )
    add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Cut, or score, and print."""
    choices = {name: value for name in CHOICES if (value := getattr(options, name)) is not None}
    if options.score is None:
        text = "\n".join(_lines(options))
        segmented = segment(load_from(options), text, **choices)
        width = min(100, shutil.get_terminal_size((100, 24)).columns)
        print(json.dumps(segmented.to_json(), ensure_ascii=False) if options.json else segmented.show(width), end="")
        return 0
    documents = list(islice(_documents(options), options.limit))
    with tqdm(total=len(documents), unit="text", disable=None, file=sys.stderr, leave=False) as bar:

        def progress(done: int) -> None:
            bar.update(done - bar.n)

        scores = segmentation_scores(load_from(options), documents, seed=options.seed, progress=progress, **choices)
    print(json.dumps(scores.to_json(), ensure_ascii=False) + "\n" if options.json else scores.show(), end="")
    return 0


def _documents(options: argparse.Namespace) -> Iterator[list[str]]:
    """Texts as their known segments."""
    if options.score == "items":
        yield from (list(item.texts) for item in corpus(options.file, encoding=options.encoding))
        return
    groups = _groups(_lines(options))
    if options.score == "lines":
        yield from groups
    else:
        yield [" ".join(lines) for lines in groups]


def _lines(options: argparse.Namespace) -> Iterator[str]:
    if options.file == "-":
        return lines(cast(BufferedIOBase, sys.stdin.buffer), "stdin", options.encoding)
    return file_lines(Path(options.file), options.encoding)


def _groups(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines between blank ones."""
    group: list[str] = []
    for line in lines:
        if line.strip():
            group.append(line.strip())
        elif group:
            yield group
            group = []
    if group:
        yield group
