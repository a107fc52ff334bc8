"""What a picture is made of: tokens, numbers and a title, nothing else.

Room: plain data for the views. No model, no torch, no drawing.

A `Figure` holds one text (or one source and one target) and its attention blocks. Per cell it keeps the weight α;
‖α·f(x)‖ is α times ‖f(x)‖, so it is derived wherever it is needed and never stored.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from normlens.errors import NormlensError

Measure = Literal["weights", "transformed_norms", "weighted_norms", "summed_norms"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


class FigureError(NormlensError, ValueError):
    """The numbers and the tokens of a figure do not belong together."""


@dataclass(frozen=True, slots=True)
class Side:
    """One sequence of tokens: the text, the source or the target."""

    name: str  # "text", "source", "target"
    tokens: tuple[str, ...]
    special: tuple[bool, ...]  # [CLS], [SEP], </s> ...
    words: tuple[int | None, ...]  # word index of each token, None for special tokens

    def __post_init__(self) -> None:
        if not len(self.tokens) == len(self.special) == len(self.words):
            raise FigureError(
                f"side '{self.name}': {len(self.tokens)} tokens, {len(self.special)} special flags and "
                f"{len(self.words)} word indices; there must be one of each per token."
            )


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One attention block. Rows look (tgt), columns are looked at (src)."""

    name: str  # "L0", "L1" ...; a head of it is written L0H3
    kind: str  # "self", "encoder", "decoder", "cross"
    tgt: int  # index into Figure.sides
    src: int  # index into Figure.sides
    weights: Float[np.ndarray, "head tgt src"]  # α
    transformed_norms: Float[np.ndarray, "head src"]  # ‖f(x)‖
    summed_norms: Float[np.ndarray, "tgt src"]  # ‖Σ_h α·f(x)‖
    error: float  # how exactly the parts rebuilt this block, relative

    def __post_init__(self) -> None:
        heads, tgt, src = self.weights.shape
        expected = {"transformed_norms": (heads, src), "summed_norms": (tgt, src)}
        for field, shape in expected.items():
            if (got := getattr(self, field).shape) != shape:
                raise FigureError(
                    f"{self.kind} {self.name}: {field} has shape {got}, but weights {self.weights.shape} "
                    f"(head, tgt, src) ask for {shape}."
                )
        for field in ("weights", "transformed_norms", "summed_norms"):
            values = getattr(self, field)
            if not (np.isfinite(values).all() and (values >= 0).all()):
                raise FigureError(
                    f"{self.kind} {self.name}: {field} holds a negative, infinite or NaN number.\n"
                    "  Usual cause: rows of padding tokens, whose weights are undefined.\n"
                    "  Try: cut each sequence to its real length before drawing it."
                )

    @property
    def heads(self) -> int:
        return self.weights.shape[0]

    @property
    def weighted_norms(self) -> Float[np.ndarray, "head tgt src"]:
        """‖α·f(x)‖ = α·‖f(x)‖."""
        return self.weights * self.transformed_norms[:, None, :]


@dataclass(frozen=True, slots=True)
class Figure:
    """Everything a view shows of one text."""

    title: str
    signature: str  # model, tokenizer, measure, version: what makes the numbers reproducible
    sides: tuple[Side, ...]
    panels: tuple[Panel, ...]

    def __post_init__(self) -> None:
        if not self.panels:
            raise FigureError("a figure needs at least one panel (attention block); got none.")
        for panel in self.panels:
            for axis, side, length in (
                ("tgt", panel.tgt, panel.weights.shape[1]),
                ("src", panel.src, panel.weights.shape[2]),
            ):
                if not 0 <= side < len(self.sides):
                    raise FigureError(
                        f"{panel.kind} {panel.name}: {axis}={side}, but there are {len(self.sides)} sides."
                    )
                if length != len(self.sides[side].tokens):
                    raise FigureError(
                        f"{panel.kind} {panel.name}: {axis} has length {length}, but side "
                        f"'{self.sides[side].name}' has {len(self.sides[side].tokens)} tokens."
                    )
