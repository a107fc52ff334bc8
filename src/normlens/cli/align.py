"""`normlens align`: word alignments from a translation model, and their error against gold links."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from normlens.alignment import (
    SAMPLE,
    Pair,
    alignment_text,
    choose,
    compare_methods,
    default_lens,
    default_sample,
    each_alignment,
    peek,
    read_gold,
    splitter,
    to_pharaoh,
    write_alignment,
)
from normlens.cli.options import add_comparison, add_links, add_model, load_from
from normlens.cli.progress import write_lines
from normlens.lens import Lens
from normlens.models import InputError
from normlens.nmt import parallel
from normlens.views import check

EXAMPLES = """examples:
  normlens align                                          # the bundled models on the bundled gold: table and report
  normlens align --source text.de --target text.en --out links.txt            # German-English, bundled models
  normlens align --model Helsinki-NLP/opus-mt-fr-en --source text.fr --target text.en --out links.txt
  normlens align --model mt/de-en --reverse-model mt/en-de --source a.de --target a.en --out links.txt --confidence
  normlens align --source a.de --target a.en --gold a.talp --aligners fast_align,hmm --report compared
"""
CHOICES = ("measure", "position", "head", "combine", "min_confidence", "second_link")


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "align",
        description="Word alignments from the cross-attention of a translation model. Links are Pharaoh pairs "
        "source-target, counted from 0, one line per sentence pair. With a model of the other direction, the maps of "
        "both are combined before links are chosen. With --gold, methods are compared and a report is written.",
        epilog=EXAMPLES,
    )
    text = parser.add_argument_group("text")
    text.add_argument(
        "--source", type=Path, metavar="F", help="source sentences, one a line; may be packed as .gz, .xz or .bz2"
    )
    text.add_argument("--target", type=Path, metavar="F", help="their translations, line by line")
    text.add_argument("--encoding", default="utf-8", metavar="E", help="encoding of both (default: utf-8)")
    text.add_argument(
        "--words",
        default="whitespace",
        metavar="W",
        help="how words are split: whitespace (default), punctuation, or moses:LANGUAGE",
    )
    text.add_argument("--limit", type=int, metavar="N", help="use the first N pairs (default: all)")
    out = parser.add_argument_group("result")
    out.add_argument("--out", type=Path, metavar="F", help="file of links (default: standard output)")
    out.add_argument("--confidence", action="store_true", help="write each link with its confidence, as 3-5:0.93")
    out.add_argument("--resume", action="store_true", help="continue after the last complete line of --out")
    add_links(parser.add_argument_group("attention maps and links"))
    add_comparison(parser.add_argument_group("comparison with gold links"))
    add_model(parser, default="the bundled German-English pair")
    model = parser.add_argument_group("other direction")
    model.add_argument("--reverse-model", metavar="M", help="a model that translates target to source")
    model.add_argument(
        "--languages", default="de-en", metavar="L", help="direction of the bundled models: de-en (default) or en-de"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Align; with gold, compare and write the report instead."""
    if (options.source is None) != (options.target is None):
        raise InputError(
            "A text needs both --source and --target.",
            got=f"--{'target' if options.source is None else 'source'} alone.",
            do="give both, or neither for the bundled sentences.",
        )
    if options.gold is not None or options.source is None:
        return _compare(options)
    _check_no_comparison(options)
    lens, reverse = _lenses(options)
    total = _count(options)
    sample, pairs = peek(islice(_pairs(options), options.limit))
    aligner = choose(lens, reverse, _enough(options, sample), own=len(sample), **_chosen(options))
    for direction in aligner.directions:
        print(f"normlens: {direction}", file=sys.stderr)
    done = _written(options.out) if options.resume and options.out else 0
    empty: dict[int, str] = {}
    alignments = each_alignment(aligner, islice(pairs, done, None), left_out=empty.__setitem__)
    lines = (to_pharaoh(alignment, confidence=options.confidence) for alignment in alignments)
    if options.out:
        write_lines(lines, options.out, after=done, total=total)
    else:
        for line in lines:
            print(line)
    for number, why in sorted(empty.items())[:10]:
        print(f"normlens: line {done + number + 1} has no links: {why}", file=sys.stderr)
    if len(empty) > 10:
        print(f"normlens: {len(empty) - 10} more lines have no links", file=sys.stderr)
    print(f"normlens: {aligner.signature}", file=sys.stderr)
    return 0


def _compare(options: argparse.Namespace) -> int:
    check()
    lens, reverse = _lenses(options)
    if options.source is None:
        sample = default_sample(options.languages)
        pairs, golds = sample.pairs, sample.golds
    else:
        pairs = list(islice(_pairs(options), options.limit))
        golds = read_gold(
            options.gold,
            possible=options.possible,
            first=options.first,
            reverse=options.gold_reverse,
            sources=[len(source) for source, _ in pairs] if options.limit is None else None,
            targets=[len(target) for _, target in pairs] if options.limit is None else None,
        )[: options.limit]
    compared = compare_methods(
        lens,
        reverse,
        pairs,
        golds,
        gradients=options.gradients,
        aligners=options.aligners,
        also=list(_training(options)),
        progress=lambda what: print(f"normlens: {what} ...", file=sys.stderr),
        **_chosen(options),
    )
    print(alignment_text(compared))
    if options.out:
        alignments = each_alignment(compared.aligner, pairs)
        write_lines((to_pharaoh(links, confidence=options.confidence) for links in alignments), options.out)
    print(f"Report: {write_alignment(compared, options.report)}", file=sys.stderr)
    return 0


def _lenses(options: argparse.Namespace) -> tuple[Lens, Lens | None]:
    if options.model is None:
        if options.reverse_model is not None:
            raise InputError(
                "--reverse-model needs --model.",
                do="give the model of the first direction with --model.",
            )
        return default_lens(options.languages), default_lens("-".join(reversed(options.languages.split("-"))))
    return load_from(options), None if options.reverse_model is None else load_from(options, options.reverse_model)


def _check_no_comparison(options: argparse.Namespace) -> None:
    asked = [f"--{name}" for name in ("gradients", "aligners", "possible") if getattr(options, name)]
    if asked:
        raise InputError(
            f"{' and '.join(asked)} can be used only in a comparison, which needs gold links.",
            do=f"add --gold, or leave out {' and '.join(asked)} to align only.",
        )


def _enough(options: argparse.Namespace, sample: list[Pair]) -> list[Pair]:
    """For the bundled models, a short text is completed by the bundled sentences when layers are chosen."""
    if options.model is not None or len(sample) >= SAMPLE:
        return sample
    own = default_sample(options.languages).pairs
    if options.layers == "auto":
        print(
            f"normlens: layers are chosen on {len(sample)} of your pairs and the {len(own)} bundled ones",
            file=sys.stderr,
        )
    return [*sample, *own]


def _count(options: argparse.Namespace) -> int:
    """How many pairs there are; files that do not fit together are refused here, before any work."""
    count = sum(1 for _ in parallel(options.source, options.target, encoding=options.encoding))
    return count if options.limit is None else min(count, options.limit)


def _pairs(options: argparse.Namespace) -> Iterable[Pair]:
    both = parallel(options.source, options.target, encoding=options.encoding)
    return _split(both, options.words)


def _training(options: argparse.Namespace) -> Iterator[Pair]:
    if options.train_source is None or options.train_target is None:
        return
    both = parallel(options.train_source, options.train_target, encoding=options.encoding)
    words = "punctuation" if options.words == "whitespace" else options.words
    yield from (pair for pair in islice(_split(both, words), options.train_limit) if pair[0] and pair[1])


def _split(both: Iterable[tuple[str, str]], words: str) -> Iterator[Pair]:
    split = splitter(words)
    return ((split(source), split(target)) for source, target in both)


def _chosen(options: argparse.Namespace) -> dict[str, Any]:
    choices = {name: getattr(options, name) for name in CHOICES if getattr(options, name) is not None}
    return choices | {"layers": options.layers, "reverse_layers": options.reverse_layers, "words": options.words}


def _written(path: Path) -> int:
    """Complete lines of a file that was being written; what follows the last of them is cut off."""
    if not path.exists():
        return 0
    content = path.read_bytes()
    complete = content[: content.rfind(b"\n") + 1]
    if len(complete) < len(content):
        path.write_bytes(complete)
    return complete.count(b"\n")
