"""Do α and ‖f(x)‖ cancel each other? Table 2 and Figure 5 of the 2020 paper.

Room: studies. Pooled: every pair (layer, head, sequence, query, key) whose key is in the category counts once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from normlens.statistics import Ranks, Sample
from normlens.studies.batches import Batch
from normlens.studies.look import Look
from normlens.studies.pairs import Tally
from normlens.studies.results import Correlation
from normlens.studies.state import State, ranks_in

RATE = 0.01  # share of the pairs drawn for Figure 5
DRAWN = 5000  # points kept of a category
CONSTANT = 1e-5  # ‖f‖ that differ by less, relative, differ by rounding alone
BLURRED = 1e-3  # 2 · 5e-4: more variance than this lost to codes, and ρ is not good to 5e-4


class CorrelationStudy:
    """Counts pairs."""

    name = "correlation"

    def __init__(self, state: State, categories: int, seed: int) -> None:
        self.state, self.categories, self.seed = state, categories, seed
        self.tallies: dict[str, Tally] = {}
        self.batches = 0

    def see(self, look: Look) -> None:
        prefix = f"correlation/{look.kind}/{look.layer}"
        if prefix not in self.tallies:
            self.tallies[prefix] = Tally(_tables(self.state, prefix))
        self.tallies[prefix].add(look)
        self._draw(look)

    def finish(self, batch: Batch, output: Any) -> None:
        """Nothing is left to do when the blocks were seen."""

    def settle(self) -> None:
        """Bring what was counted into the state."""
        for prefix, tally in self.tallies.items():
            for (head, category), table in tally.tables().items():
                self.state[f"{prefix}/{head}/{category}"] = table

    def _draw(self, look: Look) -> None:
        """A share of the pairs, the same ones whenever the seed and the batch are the same."""
        batch, head, tgt, src = look.weights.shape
        random = np.random.default_rng([self.seed, look.number, look.layer])
        count = random.poisson(RATE * batch * head * tgt * src)
        at = [random.integers(0, size, count) for size in (batch, head, tgt, src)]
        category = look.categories[at[0], at[3]]
        kept = category >= 0
        if look.visible is not None:
            kept &= look.visible.cpu().numpy()[at[0], at[2], at[3]]
        weights = look.weights[tuple(torch.from_numpy(index) for index in at)].cpu().numpy()
        rows = np.stack([weights, look.norms[at[0], at[1], at[3]]], axis=1)
        for one in np.unique(category[kept]):
            mine = rows[kept & (category == one)]
            self.state.add(f"sample/{look.kind}/{one}", Sample.of(mine, size=DRAWN, random=random))


def correlation(state: State, kind: str, names: tuple[str, ...]) -> Correlation:
    """What was counted, as a result."""
    tables = ranks_in(state, f"correlation/{kind}")
    layers = tuple(sorted({layer for layer, _, _ in tables}))
    heads = 1 + max(head for _, head, _ in tables)
    rho_heads = np.full((len(names), len(layers), heads), np.nan)
    constant = blurred = 0
    for (layer, head, category), table in tables.items():
        if _constant(table):
            constant += 1
        else:
            rho_heads[category, layers.index(layer), head] = table.rho
        blurred += table.blur > BLURRED
    pooled = [
        Ranks.pooled([table for (_, _, c), table in tables.items() if c == category]) for category in range(len(names))
    ]
    drawn = [state.sample(f"sample/{kind}/{category}") for category in range(len(names))]
    rows = [np.zeros((0, 2)) if sample is None else sample.rows for sample in drawn]
    notes = []
    if constant:
        notes.append(f"ρ of {constant} heads is not defined: ‖f(x)‖ is the same for every token of the category.")
    if blurred:
        notes.append(f"ρ of {blurred} heads is approximate: the numbers are too unevenly spread for 5e-4.")
    coarse = [name for name, table in zip(names, pooled, strict=True) if table.blur > BLURRED]
    if coarse:
        notes.append(f"Pooled ρ of {', '.join(coarse)} is approximate: the numbers are too unevenly spread for 5e-4.")
    return Correlation(
        kind=kind,
        names=names,
        layers=layers,
        pairs=np.array([table.pairs for table in pooled]),
        rho=np.array([np.nan if _constant(table) else table.rho for table in pooled]),
        rho_heads=rho_heads,
        sample_rate=RATE,
        sample_category=np.repeat(np.arange(len(names)), [len(part) for part in rows]),
        sample_weight=np.concatenate(rows)[:, 0],
        sample_norm=np.concatenate(rows)[:, 1],
        notes=tuple(notes),
    )


def _tables(state: State, prefix: str) -> dict[tuple[int, int], Ranks]:
    """Rank tables of one block that a run being resumed has already."""
    kind, layer = prefix.rsplit("/", 1)
    return {(head, c): table for (number, head, c), table in ranks_in(state, kind).items() if number == int(layer)}


def _constant(table: Ranks) -> bool:
    norms = table.x_values
    return not len(norms) or bool(norms[-1] - norms[0] <= CONSTANT * norms[-1])
