"""What does each category of tokens draw, and what does it give? Figures 3, 4, 10, 11 and 12 of the 2020 paper.

Room: studies. Macro: within a sequence, α (or ‖αf‖) is summed over the tokens of the category and averaged over all
queries; then every sequence counts once, whatever its length; then, for Figure 3, heads are averaged. ‖f‖ is averaged
over the tokens of the category in a sequence, then over the sequences that have any.
"""

from __future__ import annotations

import numpy as np

from normlens.statistics import Moments
from normlens.studies.look import Look
from normlens.studies.results import Categories
from normlens.studies.seeing import Study
from normlens.studies.state import State, by_layer, padded


class CategoriesStudy(Study):
    """Counts shares."""

    def __init__(self, state: State, categories: int) -> None:
        super().__init__(state)
        self.categories = categories

    def see(self, look: Look) -> None:
        members = look.categories[:, :, None] == np.arange(self.categories)  # (batch, src, category)
        tokens = members.sum(axis=1)
        per_query = look.received.astype(np.float64) / look.queries[:, None, None]
        sizes = look.sizes.astype(np.float64) / look.queries[:, None, None]
        parts = {"weights": per_query, "norms": sizes * look.norms, "transformed": look.norms.astype(np.float64)}
        sums = {name: np.matmul(part, members.astype(np.float64)).swapaxes(1, 2) for name, part in parts.items()}
        there = np.broadcast_to((tokens > 0)[:, :, None], sums["transformed"].shape)
        prefix = f"categories/{look.kind}/{look.layer}"
        self.state.add(f"{prefix}/weights", Moments.of(sums["weights"]))
        self.state.add(f"{prefix}/norms", Moments.of(sums["norms"]))
        self.state.add(
            f"{prefix}/transformed", Moments.of(sums["transformed"] / np.maximum(tokens, 1)[:, :, None], there)
        )
        self.state.add(f"{prefix}/tokens", Moments.of(tokens.astype(np.float64)))


def categories(state: State, kind: str, names: tuple[str, ...], loose: dict[str, int]) -> Categories:
    """What was counted, as a result; `loose` are the special tokens among "other"."""
    layers, weights = by_layer(state, f"categories/{kind}", "weights")
    _, norms = by_layer(state, f"categories/{kind}", "norms")
    _, transformed = by_layer(state, f"categories/{kind}", "transformed")
    _, tokens = by_layer(state, f"categories/{kind}", "tokens")
    there = [np.where(m.count > 0, m.mean, np.nan) for m in transformed]
    return Categories(
        kind=kind,
        names=names,
        layers=layers,
        sequences=transformed[0].count[:, 0],
        total=int(tokens[0].count[0]),
        tokens=np.rint(tokens[0].mean * tokens[0].count).astype(np.int64),
        weights=padded([m.mean for m in weights]).swapaxes(0, 1),
        norms=padded([m.mean for m in norms]).swapaxes(0, 1),
        transformed=padded(there).swapaxes(0, 1),
        loose=loose,
    )
