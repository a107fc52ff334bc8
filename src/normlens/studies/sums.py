"""The statistics of a run by name, study/kind/layer/what, and how to read them layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from normlens.lens import SIDES
from normlens.statistics import Statistic


class Sums:
    """The statistics of one study, or of one study and one kind of attention, within those of a run."""

    def __init__(self, statistics: dict[str, Statistic], study: str, kind: str = "") -> None:
        self.statistics, self.study, self.kind = statistics, study, kind
        self._prefix = f"{study}/{kind}/" if kind else f"{study}/"

    def of(self, kind: str) -> Sums:
        """Those of one kind of attention."""
        return Sums(self.statistics, self.study, kind)

    def add(self, name: str, statistic: Statistic) -> None:
        """Put a statistic on top of what has its name."""
        before: Any = self.get(name)
        self[name] = statistic if before is None else before + statistic

    def __setitem__(self, name: str, statistic: Statistic) -> None:
        self.statistics[self._prefix + name] = statistic

    def __getitem__(self, name: str) -> Any:
        return self.statistics[self._prefix + name]

    def get(self, name: str) -> Any:
        return self.statistics.get(self._prefix + name)

    def __iter__(self) -> Iterator[str]:
        return iter([name.removeprefix(self._prefix) for name in self.statistics if name.startswith(self._prefix)])

    @property
    def kinds(self) -> list[str]:
        """Kinds of attention that were counted: self, encoder, decoder, cross, then any others."""
        counted = dict.fromkeys(name.partition("/")[0] for name in self)
        return [kind for kind in SIDES if kind in counted] + [kind for kind in counted if kind not in SIDES]

    def by_layer(self, name: str) -> tuple[tuple[int, ...], list[Any]]:
        """The layers that have this statistic, ascending, and the statistics."""
        parts = [key.split("/", 1) for key in self]
        layers = sorted(int(layer) for layer, *rest in parts if rest == [name])
        return tuple(layers), [self[f"{layer}/{name}"] for layer in layers]


def padded(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays that may differ in their number of heads, stacked; NaN where there is no head."""
    shape = tuple(max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True))
    stacked = np.full((len(arrays), *shape), np.nan)
    for index, array in enumerate(arrays):
        stacked[(index, *(slice(0, size) for size in array.shape))] = array
    return stacked
