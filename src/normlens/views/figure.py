"""What a picture is made of: tokens, named numbers and a title, nothing else.

A `Figure` holds one text (or one source and one target) and its panels, each with any number of named maps. A panel is
an attention block, or belongs to no layer, such as

    Panel(None, "rollout", 0, 0, (), (n, n), (Map("rollout", "R(α)", ("tgt", "src"), values),))

which is a figure of its own, or stands beside blocks of the same sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from normlens.picture import Picture
from normlens.views.look import Look
from normlens.views.maps import FigureError as FigureError
from normlens.views.maps import Map, Panel


@dataclass(frozen=True, slots=True)
class Side:
    """One sequence of tokens: the text, the source or the target."""

    name: str  # "text", "source", "target"
    tokens: tuple[str, ...]
    special: tuple[bool, ...]  # [CLS], [SEP], </s> ...
    words: tuple[int | None, ...]  # word index of each token, None for special tokens
    punctuation: tuple[bool, ...] = ()  # commas, periods ...; empty: none is known
    spelled: tuple[str, ...] = ()  # the words as people write them; empty: their tokens in a row
    picture: Picture | None = None

    def __post_init__(self) -> None:
        if not len(self.tokens) == len(self.special) == len(self.words):
            raise FigureError(
                f"side '{self.name}': {len(self.tokens)} tokens, {len(self.special)} special flags and "
                f"{len(self.words)} word indices; there must be one of each per token."
            )
        if self.punctuation and len(self.punctuation) != len(self.tokens):
            raise FigureError(
                f"side '{self.name}': {len(self.punctuation)} punctuation flags for {len(self.tokens)} tokens."
            )
        if self.picture and self.picture.first + self.picture.rows * self.picture.columns > len(self.tokens):
            raise FigureError(f"side '{self.name}': more patches than its {len(self.tokens)} tokens.")


@dataclass(frozen=True, slots=True)
class Figure:
    """Everything a view shows of one text, and what it shows first."""

    title: str
    signature: str  # model, tokenizer, measure, version: what makes the numbers reproducible
    sides: tuple[Side, ...]
    panels: tuple[Panel, ...]
    look: Look = field(default_factory=Look)
    note: str = ""  # what a reader must know about these numbers, such as what was left out
    difference: bool = False  # one figure minus another

    def __post_init__(self) -> None:
        if not self.panels:
            raise FigureError("a figure needs at least one panel (attention block); got none.")
        object.__setattr__(self, "panels", _signed_alike(self.panels))
        layered = {panel.kind for panel in self.panels if panel.layer is not None}
        of_no_layer = [panel.kind for panel in self.panels if panel.layer is None]
        twice = [kind for kind in of_no_layer if kind in layered or of_no_layer.count(kind) > 1]
        if twice:
            raise FigureError(f"a panel of no layer needs a kind of its own; '{twice[0]}' is there twice.")
        for panel in self.panels:
            for axis, side, length in (("tgt", panel.tgt, panel.size[0]), ("src", panel.src, panel.size[1])):
                if not 0 <= side < len(self.sides):
                    raise FigureError(f"{panel.where}: {axis}={side}, but there are {len(self.sides)} sides.")
                if length != len(self.sides[side].tokens):
                    raise FigureError(
                        f"{panel.where}: {axis} has length {length}, but side "
                        f"'{self.sides[side].name}' has {len(self.sides[side].tokens)} tokens."
                    )

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """Panels that can be compared, by kind of attention; kinds with several texts are told apart by side."""
        sides: dict[str, set[tuple[int, int]]] = {}
        for panel in self.panels:
            sides.setdefault(panel.kind, set()).add((panel.tgt, panel.src))
        groups: dict[str, list[int]] = {}
        for index, panel in enumerate(self.panels):
            apart = len(sides[panel.kind]) > 1
            name = f"{panel.kind} ({self.sides[panel.src].name})" if apart else panel.kind
            groups.setdefault(name, []).append(index)
        return {name: tuple(panels) for name, panels in groups.items()}

    def beside(self, kind: str) -> dict[str, Panel]:
        """Maps of no layer that can stand beside those of a group, having the same sides: their panels by name."""
        group = [self.panels[index] for index in self.groups[kind]]
        own = {name for panel in group for name in panel.measures}
        return {
            name: panel
            for panel in self.panels
            if panel.layer is None and panel not in group and (panel.tgt, panel.src) == (group[0].tgt, group[0].src)
            for name in panel.measures
            if name not in own
        }

    @property
    def signed(self) -> frozenset[str]:
        """The measures that may be below 0."""
        return frozenset(one.name for panel in self.panels for one in panel.maps if one.signed)

    def looking(self, **changes: Any) -> Figure:
        """The same numbers, shown in another way: view=, layers=, heads=, measures=, hide= ... (see `Look`)."""
        if isinstance(pin := changes.get("pin"), str):
            changes["pin"] = ("tgt", self._position(pin, changes.get("kind")))
        look = self.look.changed(**changes)
        look.resolved(self)  # refused here, if at all
        return replace(self, look=look)

    def resolved(self) -> Figure:
        """The same figure, its look without anything left open."""
        return replace(self, look=self.look.resolved(self))

    def with_maps(self, maps: Mapping[str, Sequence[np.ndarray | None]], *, signed: bool = False) -> Figure:
        """The figure with more named maps: for each name and panel an array (head, tgt, src) or (tgt, src), or None.

        Other axes, symbols and sentences: declare a measure (`nl.measure`), or give a panel its `Map`s.
        """
        panels = list(self.panels)
        for name, arrays in maps.items():
            if len(arrays) != len(panels):
                raise FigureError(
                    f"map '{name}': {len(arrays)} arrays for {len(panels)} panels.",
                    do="give one array for each panel, or None.",
                )
            for index, array in enumerate(arrays):
                if array is not None:
                    axes = ("head", "tgt", "src") if array.ndim == 3 else ("tgt", "src")
                    more = Map(name, name, axes, np.asarray(array, dtype=np.float32), signed=signed)
                    panels[index] = replace(panels[index], maps=(*panels[index].maps, more))
        return replace(self, panels=tuple(panels))

    def minus(self, other: Figure) -> Figure:
        """What is larger here than there, as signed maps: two models on one text, or two texts in one model."""
        from normlens.views.difference import difference

        return difference(self, other)

    def save(self, path: str | Path) -> Path:
        """Write the figure; the suffix decides: .html (the interactive view), .svg, .pdf or .png (what it shows)."""
        from normlens.views.files import save

        return save(self, Path(path))

    def _position(self, token: str, kind: str | None) -> int:
        """The first position of a token, or of a word, among the queries."""
        group = self.groups[str(self.look.changed(kind=kind).resolved(self).kind)]
        side = self.sides[self.panels[group[0]].tgt]
        if token in side.tokens:
            return side.tokens.index(token)
        if token in side.spelled:
            return side.words.index(side.spelled.index(token))
        some = " ".join(side.tokens[:20]) + " ..." * (len(side.tokens) > 20)
        raise FigureError(f"pin: no token {token!r}.", do=f"use one of {some}")

    def _repr_html_(self) -> str:
        from normlens.views.html import fragment

        return fragment(self)


def _signed_alike(panels: tuple[Panel, ...]) -> tuple[Panel, ...]:
    """A measure that is signed in one panel is signed in all, so that one scale fits them."""
    signed = {one.name for panel in panels for one in panel.maps if one.signed}
    if all(one.signed for panel in panels for one in panel.maps if one.name in signed):
        return panels
    return tuple(
        replace(panel, maps=tuple(replace(one, signed=one.name in signed) for one in panel.maps)) for panel in panels
    )
