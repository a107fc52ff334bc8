"""What each decision of `align` is worth on a gold set: AER, one decision changed at a time.

    python benchmarks/choices.py SOURCE TARGET GOLD [--model M --reverse-model M]

Both directions, nothing chosen with the gold. The first row is what `align` does by itself.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from normlens.alignment import choose, default_lens, each_alignment, paired, read_gold, score
from normlens.lens import load
from normlens.nmt import parallel

VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "weights instead of norms": {"measure": "weights"},
    "AWI alone": {"position": "input"},
    "AWO alone": {"position": "output"},
    "mean of all layers under AWI": {"layers": "all"},
    "layer of the largest norm, AWI": {"layers": "norm"},
    "one to one (second_link 1)": {"second_link": 1.0},
    "second_link 0.9": {"second_link": 0.9},
    "second_link 0.7": {"second_link": 0.7},
    "second_link 0.6": {"second_link": 0.6},
    "min_confidence 0.1": {"min_confidence": 0.1},
    "min_confidence 0.2": {"min_confidence": 0.2},
    "hard links: intersection": {"combine": "intersection"},
    "hard links: grow-diag-final-and": {"combine": "grow-diag-final-and"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("source", "target", "gold"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--model")
    parser.add_argument("--reverse-model")
    options = parser.parse_args()
    lens = load(options.model) if options.model else default_lens("de-en")
    reverse = load(options.reverse_model) if options.reverse_model else default_lens("en-de")
    sources, targets = zip(*parallel(options.source, options.target), strict=True)
    pairs = list(paired(sources, targets, "whitespace"))
    golds = read_gold(options.gold)
    print(f"{len(pairs)} pairs; {lens.subject.name}, {reverse.subject.name}")
    print(f"{'':<34} {'AER':>5} {'precision':>10} {'recall':>7}")
    for name, choices in VARIANTS.items():
        aligner = choose(lens, reverse, pairs, **choices)
        found = score(list(each_alignment(aligner, pairs)), golds)
        where = f"{aligner.forward.where}; {aligner.backward.where if aligner.backward else ''}"
        numbers = f"{100 * found.aer:5.1f} {100 * found.precision:10.1f} {100 * found.recall:7.1f}"
        print(f"{name:<34} {numbers}   {where}", flush=True)


if __name__ == "__main__":
    main()
