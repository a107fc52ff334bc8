"""What aligning costs beside a plain forced pass of the same model over the same batches.

    python benchmarks/align.py SOURCE TARGET [--model M] [--reverse-model M]

Prints, for the first pairs of the text, the ratio of reading the alignment (what `align` reads, and all layers) to
the plain pass that returns nothing but logits, and sentences per second of the whole command beside those of fast_align
and eflomal, if they can run here. Settings stand in the output; ratios are of one run, alternating.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import torch

from normlens.alignment import (
    Reading,
    available,
    choose,
    default_lens,
    each_alignment,
    paired,
    shards,
    soft,
    statistical,
)
from normlens.lens import Lens, load
from normlens.nmt import parallel

ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--reverse-model")
    parser.add_argument("--pairs", type=int, default=508)
    options = parser.parse_args()
    lens = load(options.model) if options.model else default_lens("de-en")
    reverse = default_lens("en-de") if not options.model else load(options.reverse_model or options.model)
    text = list(islice(parallel(options.source, options.target), options.pairs))
    pairs = list(paired([s for s, _ in text], [t for _, t in text], "whitespace"))
    pairs = [(source, target) for source, target in pairs if source and target]
    print(f"{len(pairs)} pairs, {torch.get_num_threads()} threads, torch {torch.__version__}, {lens}")
    passes(lens, pairs)
    whole(lens, reverse, pairs)


def passes(lens: Lens, pairs: list) -> None:
    """The same batches, plainly and read."""
    batches = [shard.pairs(lens, batch) for shard in shards(lens, pairs) for batch in shard.batches]
    layers = sorted({wire.layer for wire in lens.wires if wire.kind == "cross"})
    read = choose(lens, None, pairs).forward
    every = [Reading(measure, "input", layer) for measure in ("weights", "norms") for layer in layers]

    def plain() -> None:
        with torch.no_grad():
            for batch in batches:
                lens.subject.model(**batch.encoded.inputs)

    ways: dict[str, Callable[[], None]] = {
        "plain forced pass": plain,
        f"what align reads, {read.where}": lambda: [soft(lens, batch, read.readings) for batch in batches] and None,
        "weights and norms of every layer": lambda: [soft(lens, batch, every) for batch in batches] and None,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS + 1):
        for name, run in ways.items():
            began = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - began)
    base = statistics.median(times["plain forced pass"][1:])
    for name, taken in times.items():
        ratios = [t / p for t, p in zip(taken[1:], times["plain forced pass"][1:], strict=True)]
        print(f"  {name:<34} {statistics.median(taken[1:]):7.2f} s   {statistics.median(ratios):5.2f}x")
    print(f"  {len(pairs) / base:.0f} pairs a second in the plain pass")


def whole(lens: Lens, reverse: Lens, pairs: list) -> None:
    """Text in, links out."""
    for name, other in (("one direction", None), ("both directions", reverse)):
        began = time.perf_counter()
        found = list(each_alignment(choose(lens, other, pairs), pairs))
        print(
            f"  normlens, {name:<16} {len(found) / (time.perf_counter() - began):8.0f} pairs a second, choice included"
        )
    for name, missing in available().items():
        if missing is None and name in ("fast_align", "eflomal"):
            began = time.perf_counter()
            statistical(name, *zip(*pairs, strict=True))
            print(f"  {name:<26} {len(pairs) / (time.perf_counter() - began):8.0f} pairs a second, both directions")


if __name__ == "__main__":
    main()
