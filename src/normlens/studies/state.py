"""Where a run stands: named statistics, and how to read them layer by layer.

Room: studies. A name is study/kind/layer/what, with head and category after it where a statistic has neither axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from normlens.lens.wiring import SIDES
from normlens.statistics import Moments, Ranks, Sample
from normlens.statistics.files import Statistic


class State(dict[str, Statistic]):
    """Statistics by name."""

    def add(self, name: str, one: Statistic) -> None:
        """Put a statistic on top of what is there under its name."""
        known = self.get(name)
        self[name] = one if known is None else known + one  # pyright: ignore[reportOperatorIssue]

    def moments(self, name: str) -> Moments:
        return cast(Moments, self[name])

    def ranks(self, name: str) -> Ranks:
        return cast(Ranks, self[name])

    def sample(self, name: str) -> Sample | None:
        return cast(Sample | None, self.get(name))

    def kinds(self, study: str) -> list[str]:
        """Kinds of attention this study has seen, in the order of the paper: self, encoder, decoder, cross."""
        found = {name.split("/")[1] for name in self if name.startswith(study + "/")}
        return [kind for kind in SIDES if kind in found]


def by_layer(state: State, prefix: str, what: str) -> tuple[tuple[int, ...], list[Moments]]:
    """The layers that have this statistic, ascending, and the statistics."""
    found = {}
    for name, one in state.items():
        parts = name.removeprefix(prefix + "/").split("/")
        if name.startswith(prefix + "/") and len(parts) == 2 and parts[1] == what and isinstance(one, Moments):
            found[int(parts[0])] = one
    return tuple(sorted(found)), [found[layer] for layer in sorted(found)]


def padded(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays that may differ in their number of heads, stacked; NaN where there is no head."""
    shape = tuple(max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True))
    stacked = np.full((len(arrays), *shape), np.nan)
    for index, array in enumerate(arrays):
        stacked[(index, *(slice(0, size) for size in array.shape))] = array
    return stacked


def ranks_in(state: State, prefix: str) -> dict[tuple[int, int, int], Ranks]:
    """Rank tables by (layer, head, category)."""
    found = {}
    for name, one in state.items():
        if name.startswith(prefix + "/") and isinstance(one, Ranks):
            layer, head, category = (int(part) for part in name.removeprefix(prefix + "/").split("/"))
            found[layer, head, category] = one
    return found
