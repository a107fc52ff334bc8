"""Do α and ‖f(x)‖ cancel each other? Table 2 and Figure 5 of the 2020 paper.

Room: studies. Pooled: every pair (layer, head, sequence, query, key) whose key is in the category counts once.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch

from normlens.statistics import Ranks, Sample, pooled
from normlens.studies.look import Look
from normlens.studies.pairs import Tally
from normlens.studies.results import Constant, Correlation
from normlens.studies.seeing import Study
from normlens.studies.state import State, ranks_in

RATE = 0.01  # share of the pairs drawn for Figure 5
DRAWN = 5000  # points kept of a category
CONSTANT = 1e-5  # ‖f‖ that differ by less, relative, differ by rounding alone
BLURRED = 1e-3  # 2 · 5e-4: more variance than this lost to codes, and ρ is not good to 5e-4


class CorrelationStudy(Study):
    """Counts pairs."""

    def __init__(self, state: State, seed: int) -> None:
        super().__init__(state)
        self.seed = seed
        self.tallies: dict[str, Tally] = {}

    def see(self, look: Look) -> None:
        prefix = f"correlation/{look.kind}/{look.layer}"
        if prefix not in self.tallies:
            self.tallies[prefix] = Tally(_tables(self.state, prefix))
        self.tallies[prefix].add(look)
        self._draw(look)

    def settle(self) -> None:
        """Bring what was counted into the state."""
        for prefix, tally in self.tallies.items():
            for (head, category), table in tally.tables().items():
                self.state[f"{prefix}/{head}/{category}"] = table

    def _draw(self, look: Look) -> None:
        """A share of the pairs, the same ones whenever the seed and the batch are the same.

        What could not stay in a full sample, for its priority, is not drawn in the first place.
        """
        random = np.random.default_rng([self.seed, look.number, look.layer])
        heads, queries = look.weights.shape[1:3]
        for category in np.unique(look.categories[look.real]).tolist():
            name = f"sample/{look.kind}/{category}"
            known = self.state.sample(name)
            ceiling = 1.0 if known is None or len(known.rows) < DRAWN else float(known.priority[-1])
            sequence, position = np.nonzero(look.categories == category)
            count = random.poisson(RATE * ceiling * len(sequence) * heads * queries)
            key, head, query = (random.integers(0, size, count) for size in (len(sequence), heads, queries))
            at = sequence[key], head, query, position[key]
            if look.visible is not None:
                kept = look.visible.cpu().numpy()[at[0], at[2], at[3]]
                at = tuple(index[kept] for index in at)
            weights = look.weights[tuple(torch.from_numpy(index) for index in at)].cpu().numpy()
            rows = np.stack([weights, look.norms[at[0], at[1], at[3]]], axis=1)
            self.state.add(name, Sample.of(rows, size=DRAWN, random=random, ceiling=ceiling))


def correlation(state: State, kind: str, names: tuple[str, ...]) -> Correlation:
    """What was counted, as a result."""
    tables = ranks_in(state, f"correlation/{kind}")
    layers = tuple(sorted({layer for layer, _, _ in tables}))
    heads = 1 + max(head for _, head, _ in tables)
    rho_heads = np.full((len(names), len(layers), heads), np.nan)
    constant: Counter[tuple[int, int, str]] = Counter()
    blurred = 0
    for (layer, head, category), table in sorted(tables.items(), key=lambda one: one[0]):
        alone = pooled([table])
        side = _constant(table)
        if side is None:
            rho_heads[category, layers.index(layer), head] = alone.rho
        elif table.pairs:
            constant[category, layer, side] += 1
        blurred += alone.blur > BLURRED
    together = [
        pooled([table for (_, _, c), table in tables.items() if c == category]) for category in range(len(names))
    ]
    drawn = [state.sample(f"sample/{kind}/{category}") for category in range(len(names))]
    rows = [np.zeros((0, 2)) if sample is None else sample.rows for sample in drawn]
    notes = []
    if blurred:
        notes.append(f"ρ of {blurred} heads is approximate: the numbers are too unevenly spread for 5e-4.")
    coarse = [name for name, one in zip(names, together, strict=True) if one.blur > BLURRED]
    if coarse:
        notes.append(f"Pooled ρ of {', '.join(coarse)} is approximate: the numbers are too unevenly spread for 5e-4.")
    return Correlation(
        kind=kind,
        names=names,
        layers=layers,
        pairs=np.array([one.pairs for one in together]),
        rho=np.array([one.rho for one in together]),
        rho_heads=rho_heads,
        sample_rate=RATE,
        sample_category=np.repeat(np.arange(len(names)), [len(part) for part in rows]),
        sample_weight=np.concatenate(rows)[:, 0],
        sample_norm=np.concatenate(rows)[:, 1],
        constant=tuple(Constant(c, layer, heads, side) for (c, layer, side), heads in sorted(constant.items())),
        notes=tuple(notes),
    )


def _tables(state: State, prefix: str) -> dict[tuple[int, int], Ranks]:
    """Rank tables of one block that a run being resumed has already."""
    kind, layer = prefix.rsplit("/", 1)
    return {(head, c): table for (number, head, c), table in ranks_in(state, kind).items() if number == int(layer)}


def _constant(table: Ranks) -> str | None:
    """Which side of the pairs does not vary, so that no rank can tell them apart."""
    norms = table.x_values
    if not len(norms) or norms[-1] - norms[0] <= CONSTANT * norms[-1]:
        return "‖f(x)‖"
    return "α" if len(table.y_values) < 2 else None
