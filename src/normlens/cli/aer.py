"""`normlens aer`: the error rate of a file of word links against gold links."""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from normlens.alignment import (
    Comparison,
    Counts,
    Gold,
    GoldFile,
    Interval,
    Intervals,
    Tally,
    bootstrap,
    compare,
    numbering_doubts,
    open_gold,
    read_pharaoh,
    tally,
    uneven_lines,
)
from normlens.cli.arguments import encoding
from normlens.corpora import file_lines
from normlens.signature import Signature
from normlens.version import __version__

EXAMPLES = """examples:
  normlens aer links.txt --gold gold.talp                      # i-j sure, ipj possible, counted from 1
  normlens aer links.txt --gold sure.txt --possible possible.txt
  normlens aer links.txt --gold gold.talp --source text.de --target text.en      # also check every link
  normlens aer links.txt --gold gold.talp --against fast_align.txt               # compare two files, with a test
"""
SAMPLES, SWAPS = 1000, 10_000


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "aer",
        description="Alignment error rate, precision and recall of word links against gold links. Links are Pharaoh "
        "pairs source-target, counted from 0, one line per sentence pair.",
        epilog=EXAMPLES,
    )
    parser.add_argument("alignment", type=Path, metavar="ALIGNMENT", help="file of links, such as 0-0 1-2:0.93")
    parser.add_argument("--against", type=Path, metavar="F", help="a second file of links to compare with")
    parser.add_argument(
        "--links-first", type=int, choices=(0, 1), default=0, help="number of the first word in ALIGNMENT (default: 0)"
    )
    parser.add_argument("--links-reverse", action="store_true", help="ALIGNMENT is written target-source")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the resampling (default: 0)")
    parser.add_argument("--json", action="store_true", help="print counts and fractions as JSON only")
    gold = parser.add_argument_group("gold")
    gold.add_argument("--gold", type=Path, required=True, metavar="F", help="file of gold links")
    gold.add_argument("--possible", type=Path, metavar="F", help="possible links, when the gold is Pharaoh")
    gold.add_argument(
        "--format", choices=("auto", "talp", "pharaoh"), default="auto", help="format of the gold (default: auto)"
    )
    gold.add_argument("--first", type=int, choices=(0, 1), help="number of the first word (default: talp 1, Pharaoh 0)")
    gold.add_argument("--reverse", action="store_true", help="the gold is written target-source")
    text = parser.add_argument_group("text, to check that every link is inside its sentence")
    text.add_argument("--source", type=Path, metavar="F", help="source sentences, words separated by spaces")
    text.add_argument("--target", type=Path, metavar="F", help="target sentences, words separated by spaces")
    text.add_argument(
        "--encoding", type=encoding, default="utf-8", metavar="E", help="encoding of both (default: utf-8)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, score, print."""
    sources, targets = (path and _lengths(path, options.encoding) for path in (options.source, options.target))
    gold = open_gold(
        options.gold,
        format=options.format,
        possible=options.possible,
        first=options.first,
        reverse=options.reverse,
        sources=sources,
        targets=targets,
    )
    results = [
        _scored(path, gold.golds, options, sources, targets) for path in (options.alignment, options.against) if path
    ]
    test = (
        compare(results[0].rows, results[1].rows, samples=SAMPLES, swaps=SWAPS, seed=options.seed)
        if len(results) > 1
        else None
    )
    signature = _signature(options, gold, compared=test is not None)
    if options.json:
        print(json.dumps(_plain(results, test, signature), ensure_ascii=False))
    else:
        print(_shown(results, test, signature))
    return 0


@dataclass(frozen=True, slots=True)
class Result:
    """One file of links, scored."""

    name: str
    rows: Tally
    counts: Counts
    intervals: Intervals

    def scores(self) -> list[tuple[str, float, Interval]]:
        return [
            (name, getattr(self.counts, name), getattr(self.intervals, name)) for name in ("aer", "precision", "recall")
        ]


def _scored(path: Path, golds: list[Gold], options: argparse.Namespace, sources: Any, targets: Any) -> Result:
    alignments = read_pharaoh(
        path, first=options.links_first, reverse=options.links_reverse, sources=sources, targets=targets
    )
    if len(alignments) != len(golds):
        blank = sum(not alignment.links for alignment in alignments)
        raise uneven_lines(path.name, len(alignments), f"lines of {options.gold.name}", len(golds), blank)
    rows = tally(alignments, golds)
    counts = rows.total
    for doubt in numbering_doubts(alignments, golds):
        print(f"normlens: {path.name}: {doubt}", file=sys.stderr)
    return Result(path.name, rows, counts, bootstrap(rows, samples=SAMPLES, seed=options.seed))


def _shown(results: list[Result], test: Comparison | None, signature: Signature) -> str:
    out: list[str] = []
    for result in results:
        counts = result.counts
        out.append(result.name)
        out += [
            f"  {'AER' if name == 'aer' else name:<10}{_percent(value):>7}   95 % of resamples: {_range(interval)}"
            for name, value, interval in result.scores()
        ]
        out.append(
            f"  {counts.sentences:,} sentences, {counts.links:,} links: {counts.sure_hits:,} of {counts.sure:,} sure "
            f"links found, {counts.links - counts.possible_hits:,} links wrong"
        )
    if test is not None:
        out.append(f"AER of {results[0].name} minus AER of {results[1].name}")
        out.append(
            f"  {100 * test.difference:+.1f} points, 95 % of resamples: {_range(test.interval)}, p = {test.p:.4f} "
            f"({'significant' if test.p < 0.05 else 'not significant'} at 5 %)"
        )
    return "\n".join([*out, str(signature)])


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f} %"


def _range(interval: Interval) -> str:
    return "-" if math.isnan(interval.low) else f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"


def _plain(results: list[Result], test: Comparison | None, signature: Signature) -> dict[str, Any]:
    """Everything as fractions and counts; null where a score is not defined."""
    files = [
        {
            "alignment": result.name,
            **{name: _number(value) for name, value, _ in result.scores()},
            "intervals": {name: [_number(at.low), _number(at.high)] for name, _, at in result.scores()},
            "counts": asdict(result.counts),
        }
        for result in results
    ]
    plain: dict[str, Any] = {"signature": str(signature), "level": 0.95, "files": files}
    if test is not None:
        interval = [_number(test.interval.low), _number(test.interval.high)]
        plain["comparison"] = {"difference": test.difference, "interval": interval, "p": test.p}
    return plain


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _signature(options: argparse.Namespace, gold: GoldFile, *, compared: bool) -> Signature:
    facts = {
        "gold": options.gold.name,
        "format": gold.format,
        "first": str(gold.first),
        **({"possible": options.possible.name} if options.possible else {}),
        **({"gold_order": "target-source"} if options.reverse else {}),
        "links_first": str(options.links_first),
        **({"links_order": "target-source"} if options.links_reverse else {}),
        "bootstrap": str(SAMPLES),
        **({"test": f"approximate randomisation×{SWAPS}"} if compared else {}),
        "seed": str(options.seed),
        "normlens": __version__,
    }
    return Signature(tuple(facts.items()))


def _lengths(path: Path, encoding: str) -> list[int]:
    return [len(line.split()) for line in file_lines(path, encoding, name=path.name)]
