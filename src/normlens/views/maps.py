"""Named numbers of one attention block.

Room: plain data for the views. No model, no torch, no drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from normlens.errors import NormlensError

Axes = Literal["head tgt src", "tgt src", "head src"]
Tone = Literal["weight", "norm"]  # amber is what is looked at, blue what is moved
MEASURES: dict[str, tuple[str, Axes, Tone]] = {  # how each is written, what its axes are, which colour it has
    "weights": ("α", "head tgt src", "weight"),
    "transformed_norms": ("‖f(x)‖", "head src", "norm"),
    "weighted_norms": ("‖αf(x)‖", "head tgt src", "norm"),
    "summed_norms": ("‖Σₕ αf(x)‖", "tgt src", "norm"),
}


class FigureError(NormlensError, ValueError):
    """The numbers and the tokens of a figure do not belong together."""


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """One named quantity of one block."""

    name: str
    label: str  # as it is written beside a picture
    axes: Axes
    values: Float[np.ndarray, "*axes"]
    tone: Tone = "norm"
    signed: bool = False  # may be below 0: a difference, or weights that are no softmax


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One attention block. Rows look (tgt), columns are looked at (src)."""

    name: str  # "L0", "L1" ...; a head of it is written L0H3
    kind: str  # "self", "encoder", "decoder", "cross"
    tgt: int  # index into Figure.sides
    src: int  # index into Figure.sides
    heads: tuple[int, ...]  # their numbers in the model
    size: tuple[int, int]  # rows (tgt), columns (src)
    maps: tuple[Map, ...]
    error: float  # how exactly the parts rebuilt this block, relative

    def __post_init__(self) -> None:
        lengths = {"head": len(self.heads), "tgt": self.size[0], "src": self.size[1]}
        for one in self.maps:
            shape = tuple(lengths[axis] for axis in one.axes.split())
            if one.values.shape != shape:
                raise FigureError(
                    f"{self.kind} {self.name}: {one.name} has shape {one.values.shape}, but {len(self.heads)} heads, "
                    f"{self.size[0]} rows and {self.size[1]} columns ask for {shape} ({one.axes})."
                )
            if not (np.isfinite(one.values).all() and (one.signed or (one.values >= 0).all())):
                raise FigureError(
                    f"{self.kind} {self.name}: {one.name} holds a negative, infinite or NaN number.",
                    cause="rows of padding tokens, whose weights are undefined.",
                    do="cut each sequence to its real length before drawing it.",
                )

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the maps, ‖αf(x)‖ included where it follows from the others; known ones first."""
        names = {one.name for one in self.maps}
        if {"weights", "transformed_norms"} <= names:
            names.add("weighted_norms")
        known = [name for name in MEASURES if name in names]
        return (*known, *(one.name for one in self.maps if one.name not in MEASURES))

    def map(self, name: str) -> Map:
        """The map of that name."""
        for one in self.maps:
            if one.name == name:
                return one
        if name == "weighted_norms" and name in self.measures:
            values = np.abs(self.map("weights").values) * self.map("transformed_norms").values[:, None, :]
            label, axes, tone = MEASURES[name]
            return Map(name, label, axes, values, tone)
        raise FigureError(f"{self.kind} {self.name} has no map '{name}'; it has {', '.join(self.measures)}.")

    @property
    def weights(self) -> Float[np.ndarray, "head tgt src"]:
        return self.map("weights").values

    @property
    def transformed_norms(self) -> Float[np.ndarray, "head src"]:
        return self.map("transformed_norms").values

    @property
    def weighted_norms(self) -> Float[np.ndarray, "head tgt src"]:
        return self.map("weighted_norms").values

    @property
    def summed_norms(self) -> Float[np.ndarray, "tgt src"]:
        return self.map("summed_norms").values


def attention(
    name: str,
    kind: str,
    tgt: int,
    src: int,
    weights: Float[np.ndarray, "head tgt src"],
    transformed_norms: Float[np.ndarray, "head src"],
    summed_norms: Float[np.ndarray, "tgt src"],
    error: float,
    *,
    heads: Sequence[int] | None = None,
) -> Panel:
    """The panel of an attention block: α, signed where one is below 0, ‖f(x)‖ and ‖Σ_h α·f(x)‖."""
    given = {"weights": weights, "transformed_norms": transformed_norms, "summed_norms": summed_norms}
    signed = bool((weights < 0).any())
    maps = tuple(
        Map(key, *MEASURES[key][:2], values, MEASURES[key][2], signed and key == "weights")
        for key, values in given.items()
    )
    numbers = tuple(range(len(weights))) if heads is None else tuple(heads)
    return Panel(name, kind, tgt, src, numbers, weights.shape[1:], maps, error)
