"""Named numbers of one attention block, or of a whole model: plain data for the views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from normlens.errors import NormlensError
from normlens.measures import QUANTITIES, Quantity, Role

Axis = Literal["head", "tgt", "src"]
AXES: tuple[tuple[Axis, ...], ...] = (
    ("head", "tgt", "src"), ("tgt", "src"), ("head", "src"), ("head", "tgt"), ("tgt",), ("src",), ("head",),
)  # fmt: skip


class FigureError(NormlensError, ValueError):
    """The numbers and the tokens of a figure do not belong together."""


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """One named quantity of one block. `values` is None where it is |first| times second of two other maps."""

    name: str
    label: str  # its symbol, as it is written beside a picture
    axes: tuple[Axis, ...]
    values: Float[np.ndarray, "*axes"] | None
    says: str = ""  # what it is, in a sentence
    role: Role | None = None
    signed: bool = False  # may be below 0: a difference, or weights that are no softmax
    product: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.axes not in AXES:
            raise FigureError(
                f"map '{self.name}' has the axes {self.axes}, which cannot be drawn.",
                do=f"use one of {', '.join(map(str, AXES))}.",
            )
        if (self.values is None) == (self.product is None):
            raise FigureError(f"map '{self.name}' needs either values or the two maps that it is the product of.")

    @property
    def is_matrix(self) -> bool:
        """Whether it has a number for each query and key."""
        return self.axes[-2:] == ("tgt", "src")

    @property
    def has_heads(self) -> bool:
        """Whether single heads of it can be chosen."""
        return self.axes[0] == "head"

    @classmethod
    def of(
        cls,
        quantity: Quantity,
        values: np.ndarray | None,
        *,
        signed: bool | None = None,
        product: tuple[str, str] | None = None,
    ) -> Map:
        """A quantity of one sequence, with everything a reader is told about it."""
        axes: tuple[Axis, ...] = quantity.map_axes  # pyright: ignore[reportAssignmentType]
        signed = quantity.signed if signed is None else signed
        return cls(quantity.name, quantity.symbol, axes, values, quantity.says, quantity.role, signed, product)


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """The maps of one attention block, or of no layer. Rows are queries (tgt), columns are keys (src)."""

    layer: int | None  # None: of the whole model, such as a rollout
    kind: str  # "self", "encoder", "decoder", "cross"; of no layer: what the maps are, such as "rollout"
    tgt: int  # index into Figure.sides
    src: int  # index into Figure.sides
    heads: tuple[int, ...]  # their numbers in the model; none where no map has heads
    size: tuple[int, int]  # rows (tgt), columns (src)
    maps: tuple[Map, ...]
    error: float | None = None  # how exactly the parts rebuilt this block, relative; None: nothing was rebuilt

    def __post_init__(self) -> None:
        lengths = {"head": len(self.heads), "tgt": self.size[0], "src": self.size[1]}
        for one in self.maps:
            shape = tuple(lengths[axis] for axis in one.axes)
            if one.values is None:
                continue
            if one.values.shape != shape:
                raise FigureError(
                    f"{self.where}: {one.name} has shape {one.values.shape}, but {len(self.heads)} heads, "
                    f"{self.size[0]} rows and {self.size[1]} columns ask for {shape} ({' '.join(one.axes)})."
                )
            if not (np.isfinite(one.values).all() and (one.signed or (one.values >= 0).all())):
                raise FigureError(
                    f"{self.where}: {one.name} holds a negative, infinite or NaN number.",
                    cause="rows of padding tokens, whose weights are undefined.",
                    do="cut each sequence to its real length before drawing it; signed=True for numbers below 0.",
                )

    @property
    def name(self) -> str:
        """As its layer is written, L0; of no layer, its kind. A head of it is written L0H3."""
        return self.kind if self.layer is None else f"L{self.layer}"

    @property
    def where(self) -> str:
        """Its name in an error: self L0."""
        return self.kind if self.layer is None else f"{self.kind} L{self.layer}"

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the maps, in their order; a product only where both its factors are there."""
        names = {one.name for one in self.maps}
        return tuple(one.name for one in self.maps if one.product is None or set(one.product) <= names)

    def map(self, name: str) -> Map:
        """The map of that name."""
        found = next((one for one in self.maps if one.name == name), None)
        if found is None or (found.product is not None and name not in self.measures):
            raise FigureError(f"{self.where} has no map '{name}'.", do=f"use {', '.join(self.measures)}.")
        return found

    def values(self, name: str) -> Float[np.ndarray, "*axes"]:
        """The numbers of a map, those of a product worked out."""
        found = self.map(name)
        if found.values is not None:
            return found.values
        assert found.product is not None
        first, second = (self.map(factor) for factor in found.product)
        factors = [_spread(self.values(one.name), one.axes, found.axes) for one in (first, second)]
        return np.abs(factors[0]) * factors[1]

    def of_role(self, role: Role, *, heads: bool) -> Map | None:
        """The first map of this role with a number for each query and key, for single heads or not."""
        matrices = (self.map(name) for name in self.measures)
        return next((one for one in matrices if one.role == role and one.is_matrix and one.has_heads == heads), None)

    @property
    def weights(self) -> Float[np.ndarray, "head tgt src"]:
        """α."""
        return self.values("weights")

    @property
    def transformed_norms(self) -> Float[np.ndarray, "head src"]:
        """‖f(x)‖."""
        return self.values("transformed_norms")

    @property
    def weighted_norms(self) -> Float[np.ndarray, "head tgt src"]:
        """‖αf(x)‖."""
        return self.values("weighted_norms")

    @property
    def summed_norms(self) -> Float[np.ndarray, "tgt src"]:
        """‖Σ_h αf(x)‖."""
        return self.values("summed_norms")


def _spread(values: np.ndarray, axes: tuple[Axis, ...], onto: tuple[Axis, ...]) -> np.ndarray:
    """An array with an axis of length 1 for each that it lacks."""
    return np.expand_dims(values, [at for at, axis in enumerate(onto) if axis not in axes])


def attention(
    layer: int | None,
    kind: str,
    tgt: int,
    src: int,
    weights: Float[np.ndarray, "head tgt src"],
    transformed_norms: Float[np.ndarray, "head src"],
    summed_norms: Float[np.ndarray, "tgt src"],
    error: float | None,
    *,
    heads: Sequence[int] | None = None,
) -> Panel:
    """The panel of an attention block from α, ‖f(x)‖ and ‖Σ_h αf(x)‖; ‖αf(x)‖ follows from the first two."""
    given = {"weights": weights, "transformed_norms": transformed_norms, "summed_norms": summed_norms}
    numbers = tuple(range(len(weights))) if heads is None else tuple(heads)
    return Panel(layer, kind, tgt, src, numbers, weights.shape[1:], quantity_maps(given), error)


def quantity_maps(arrays: dict[str, np.ndarray], declared: dict[str, Quantity] | None = None) -> tuple[Map, ...]:
    """Maps of quantities; ‖αf(x)‖ follows from α and ‖f(x)‖ unless it is given, and α below 0 makes it signed."""
    quantities = {**QUANTITIES, **(declared or {})}
    factors = ("weights", "transformed_norms")
    maps = {
        name: Map.of(
            quantities[name], values, signed=quantities[name].signed or bool((values < 0).any() and name == "weights")
        )
        for name, values in arrays.items()
    }
    if set(factors) <= set(arrays) and "weighted_norms" not in arrays:
        maps["weighted_norms"] = Map.of(QUANTITIES["weighted_norms"], None, product=factors)
    return tuple(maps[name] for name in sorted(maps, key=list(quantities).index))
