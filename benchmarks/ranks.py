"""How close Spearman's ρ in one pass comes to scipy's, on real pairs (α, ‖f(x)‖) of the bundled MiniLM.

    python benchmarks/ranks.py CORPUS [--pairs 10000000]

For each category as many items of the corpus as give at least so many pairs, cut to 128 tokens; all heads pooled.
"""

import argparse
from dataclasses import replace

import numpy as np
from scipy.stats import spearmanr

import normlens as nl
from normlens.corpora import corpus, default_categories
from normlens.lens import Block, Lens
from normlens.statistics import pooled
from normlens.studies import STUDIES, Seen, Tally, batches, request, seen_block, shards


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--pairs", type=int, default=10_000_000)
    options = parser.parse_args()
    lens = nl.load()
    print("category               pairs    one pass       scipy  difference   worst single head")
    for index, name in enumerate(default_categories(lens.subject).names):
        tallies, kept = collected(lens, options.corpus, index, options.pairs)
        tables = [table for tally in tallies.values() for table in tally.tables().values()]
        ours, exact = pooled(tables), exactly([pair for pairs in kept.values() for pair in pairs])
        worst = max(
            abs(table.rho - exactly(kept[layer, head]))
            for layer, tally in tallies.items()
            for (head, _), table in tally.tables().items()
            if np.ptp(table.x_values) > 1e-5 * table.x_values[-1]
        )
        gap = abs(ours.rho - exact)
        print(f"{name:16s} {ours.pairs:12d} {ours.rho:+11.6f} {exact:+11.6f} {gap:11.1e} {worst:19.1e}", flush=True)


def collected(
    lens: Lens, path: str, category: int, wanted: int
) -> tuple[dict[int, Tally], dict[tuple[int, int], list]]:
    """Tallies by layer, and the very pairs they counted by (layer, head), until there are enough."""
    tallies: dict[int, Tally] = {}
    kept: dict[tuple[int, int], list] = {}
    count = 0
    facts = request(lens, corpus(path), studies=[STUDIES["categories"]], limit=1).facts

    def on_block(block: Block) -> None:
        nonlocal count
        alone = replace(group, categories=np.where(group.categories == category, category, -1))
        seen = seen_block(facts, block, group, alone, 0)
        tallies.setdefault(block.layer, Tally()).add(seen)
        for head in range(seen.weights.shape[1]):
            kept.setdefault((block.layer, head), []).append(pairs_of(seen, head))
            count += len(kept[block.layer, head][-1][0])

    for items in shards(corpus(path), 64, limit=None, skip=0):
        for batch in batches(lens.subject, items, default_categories(lens.subject), length=128, tokens=2048):
            group = batch.groups["text"]
            lens.observe(batch.encoded, on_block, fields=("weights", "transformed_norms"))
            if count >= wanted:
                return tallies, kept
    return tallies, kept


def pairs_of(seen: Seen, head: int) -> tuple[np.ndarray, np.ndarray]:
    there = np.broadcast_to(seen.real[:, None], seen.weights[:, head].shape)
    if seen.visible is not None:
        there = there & seen.visible.numpy()
    norms = np.broadcast_to(seen.norms[:, head][:, None], there.shape)
    return seen.weights[:, head].numpy()[there], norms[there]


def exactly(parts: list[tuple[np.ndarray, np.ndarray]]) -> float:
    return spearmanr(*(np.concatenate(side) for side in zip(*parts, strict=True))).statistic


if __name__ == "__main__":
    main()
