"""Options that commands share, and what they select: the model, the corpus, how words are aligned."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any, get_args

from normlens.alignment import Combine, Rows
from normlens.cli.arguments import column, layers, names
from normlens.cli.progress import Progress
from normlens.corpora import Corpus, corpus, default_corpus, parse_category
from normlens.lens import Lens, PartlyExact, load
from normlens.studies import DEFAULT, Findings, study


def add_model(parser: argparse.ArgumentParser, *, default: str = "the bundled MiniLM") -> None:
    """Which model, from where, in which precision, on which device."""
    group = parser.add_argument_group("model")
    group.add_argument("--model", metavar="M", help=f"hub id or folder (default: {default})")
    group.add_argument("--revision", metavar="R", help="branch, tag or commit on the hub")
    group.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), help="precision (default: as stored)")
    group.add_argument("--device", metavar="D", help="torch device, such as cpu, cuda or mps (default: cpu)")
    group.add_argument("--any-weights", action="store_true", help="also load weights that are not safetensors")
    group.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")


def load_from(options: argparse.Namespace, model: str | None = None) -> Lens:
    """The lens these options select, or that of another model loaded with the same options."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PartlyExact)
        lens = load(
            model or options.model,
            revision=options.revision,
            dtype=options.dtype,
            device=options.device,
            weights="any" if options.any_weights else "safetensors",
            trust_remote_code=options.trust_remote_code,
        )
    for warning in caught:
        if issubclass(warning.category, PartlyExact):
            print(f"normlens: {warning.message}", file=sys.stderr)
    return lens


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Which texts, how they are cut, and how their tokens are sorted."""
    group = parser.add_argument_group("corpus")
    group.add_argument(
        "--corpus",
        metavar="F",
        help="text, .jsonl, .csv, .tsv, .conllu or .pkl file, a folder, or - for standard input (default: the bundled "
        "text)",
    )
    group.add_argument(
        "--split", choices=("line", "paragraph"), default="line", help="what one item of plain text is (default: line)"
    )
    group.add_argument("--pairs", action="store_true", help="make pairs of items 1 and 2, 3 and 4 ..., as in the paper")
    group.add_argument(
        "--column", type=column, metavar="C", help="name or number of the text column of .csv, .tsv or .jsonl"
    )
    group.add_argument(
        "--pair-column", type=column, metavar="C", help="name or number of the column of the second text"
    )
    group.add_argument(
        "--label-column", type=column, metavar="C", help="name or number of the column of a classifier's answers"
    )
    group.add_argument("--encoding", default="utf-8", metavar="E", help="encoding of text files (default: utf-8)")
    group.add_argument("--limit", type=int, metavar="N", help="use the first N items (default: all)")
    group.add_argument("--length", type=int, default=128, metavar="N", help="cut items to N tokens (default: 128)")
    group = parser.add_argument_group("studies")
    group.add_argument(
        "--category",
        action="append",
        default=[],
        metavar="NAME=...",
        help="a category of tokens: NAME=tok,tok or NAME=/regex/ or NAME=@first, @special, @punctuation; may be "
        "repeated (default: the paper's four)",
    )
    group.add_argument(
        "--ranks",
        metavar="R",
        help="frequency ranks: a file of 'rank count id', 'vocabulary', or 'corpus' to count them",
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="seed of random samples (default: 0)")
    group.add_argument("--batch-tokens", type=int, default=4096, metavar="N", help="tokens of a batch (default: 4096)")
    group.add_argument("--resume", action="store_true", help="continue the interrupted run in --out")


def corpus_from(options: argparse.Namespace) -> Corpus:
    """The corpus these options select."""
    if options.corpus is None:
        return default_corpus()
    return corpus(
        options.corpus,
        split=options.split,
        column=options.column,
        pair_column=options.pair_column,
        label_column=options.label_column,
        pairs=options.pairs,
        encoding=options.encoding,
    )


def study_from(options: argparse.Namespace, lens: Lens, *, studies: Any = DEFAULT, folder: Path | None) -> Findings:
    """Run the studies these options select, and show the progress."""
    with Progress(resumed=options.resume) as progress:
        return study(
            lens, corpus_from(options), studies=studies, folder=folder, progress=progress, **run_options(options)
        )


def run_options(options: argparse.Namespace) -> dict[str, Any]:
    """How a corpus is run."""
    return {
        "categories": [parse_category(text) for text in options.category] or None,
        "ranks": options.ranks,
        "length": options.length,
        "limit": options.limit,
        "seed": options.seed,
        "batch_tokens": options.batch_tokens,
        "resume": options.resume,
    }


def add_links(group: Any) -> None:
    """Which attention maps are used, and how links are made of them."""
    group.add_argument(
        "--measure",
        choices=("norms", "weights"),
        help="norms: contributions ‖Σ αf(x)‖ (default); weights: attention weights α, mean over heads",
    )
    group.add_argument(
        "--position",
        choices=get_args(Rows),
        help="the target word of a row: the decoder's input (AWI), its output (AWO), both, or auto: as agrees most "
        "(default)",
    )
    group.add_argument(
        "--layers",
        type=layers,
        default="auto",
        metavar="L",
        help="auto: those that agree most (default); norm: the one of the largest mean norm; all; or 0,1,2",
    )
    group.add_argument(
        "--reverse-layers", type=layers, metavar="L", help="layers of the reverse model (default: as --layers)"
    )
    group.add_argument("--head", type=int, metavar="H", help="one head, from 0 (default: all)")
    group.add_argument("--combine", choices=get_args(Combine), help="how two directions are combined (default: soft)")
    group.add_argument(
        "--min-confidence", type=float, metavar="X", help="leave out links below this confidence, from 0 to 1"
    )
    group.add_argument(
        "--second-link",
        type=float,
        metavar="X",
        help="link a word also to a second one, of at least X times the strength of its best (default: 0.8; 1: never)",
    )


def add_comparison(group: Any) -> None:
    """What the links are compared with."""
    group.add_argument("--gold", type=Path, metavar="F", help="gold links, talp or Pharaoh")
    group.add_argument("--possible", type=Path, metavar="F", help="possible links, when the gold is Pharaoh")
    group.add_argument(
        "--first", type=int, choices=(0, 1), help="number of the gold's first word (default: talp 1, Pharaoh 0)"
    )
    group.add_argument("--gold-reverse", action="store_true", help="the gold is written target-source")
    group.add_argument("--gradients", type=names, default=(), metavar="G", help="saliency, smoothgrad, or both: a,b")
    group.add_argument("--aligners", type=names, default=(), metavar="A", help="fast_align, hmm, ibm4, eflomal: a,b")
    group.add_argument("--train-source", type=Path, metavar="F", help="more text that these aligners learn from")
    group.add_argument("--train-target", type=Path, metavar="F", help="its translation, line by line")
    group.add_argument("--train-limit", type=int, metavar="N", help="use its first N pairs (default: all)")
    group.add_argument(
        "--report",
        type=Path,
        default=Path("alignment-report"),
        metavar="DIR",
        help="folder of the report (default: alignment-report)",
    )
