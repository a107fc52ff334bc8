"""What of a figure is looked at, and how: the one state that Python, the page and a link share.

Room: plain data for the views. Knows no numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, get_args

from normlens.views.maps import FigureError

if TYPE_CHECKING:
    from normlens.views.figure import Figure

View = Literal["heat", "lines", "grid", "bars", "picture"]
Scale = Literal["own", "shared"]
Hidden = Literal["special", "punctuation"]
Unit = Literal["tokens", "words"]
Order = Literal["text", "size"]
Axis = Literal["tgt", "src"]


@dataclass(frozen=True, slots=True)
class Look:
    """How a figure is looked at. Empty tuples and None mean: what suits the view."""

    view: View = "heat"
    kind: str | None = None  # "self", "encoder", "decoder", "cross"; None: cross-attention if there is any
    layers: tuple[int, ...] = ()  # several: their mean, or the rows of a grid; none: the middle one, or all in a grid
    heads: tuple[int, ...] = ()  # several: their mean, or the columns of a grid; none: all
    measures: tuple[str, ...] = ()  # side by side; none: α beside what is moved
    scale: Scale = "own"  # of each panel, or one for all layers and heads of a measure
    hide: tuple[Hidden, ...] = ()
    rescale: bool = False  # bring each row back to its sum when tokens are hidden
    unit: Unit = "tokens"  # or words: sources add up, targets are averaged
    order: Order = "text"  # of bars
    pin: tuple[Axis, int] | None = None  # ("tgt", 3): what token 3 takes; ("src", 3): who takes from token 3

    def changed(self, **changes: Any) -> Look:
        """Another look; single numbers and names may stand for tuples of one."""
        known = {one.name for one in fields(self)}
        wrong = sorted(set(changes) - known)
        if wrong:
            raise FigureError(f"a look has no '{wrong[0]}'; it has {', '.join(sorted(known))}.")
        for name in ("layers", "heads", "measures", "hide"):
            if name in changes:
                changes[name] = _tuple(changes[name])
        if changes.get("pin") is not None:
            changes["pin"] = _pin(changes["pin"])
        _check(changes)
        return replace(self, **changes)

    def resolved(self, figure: Figure) -> Look:
        """With every default filled in for this figure, or refused with what it could be."""
        _check(self.as_json())
        groups = figure.groups
        kind = self.kind or next((name for name in groups if name.startswith("cross")), next(iter(groups)))
        _one_of("kind", kind, tuple(groups))
        panels = [figure.panels[index] for index in groups[kind]]
        there = [int(panel.name.removeprefix("L")) for panel in panels]
        for layer in self.layers:
            _one_of("layers", layer, tuple(there))
        grid = self.view == "grid"
        layers = self.layers or (tuple(there) if grid else (there[(len(there) - 1) // 2],))
        heads = sorted({head for panel in panels for head in panel.heads})
        for head in self.heads:
            _one_of("heads", head, tuple(heads))
        measures = self.measures or _telling(panels[0].measures, one_head=bool(self.heads) or grid)
        for measure in measures:
            _one_of("measures", measure, panels[0].measures)
        if self.view == "picture" and figure.sides[panels[0].src].picture is None:
            raise FigureError(
                f"there is no picture to draw {kind} attention on.",
                cause="the model reads text, or its patches do not make a rectangle.",
                do="view='heat', 'lines', 'grid' or 'bars'.",
            )
        if self.pin is not None:
            axis, at = self.pin
            tokens = figure.sides[getattr(panels[0], axis)].tokens
            if not 0 <= at < len(tokens):
                raise FigureError(f"pin: there is no token {at}; side '{axis}' has tokens 0 to {len(tokens) - 1}.")
        return replace(self, kind=kind, layers=layers, measures=measures)

    def as_json(self) -> dict[str, Any]:
        """As the page reads it."""
        return asdict(self)


def _pin(pin: Any) -> tuple[Axis, int]:
    """(axis, position); a position alone is that of a row."""
    pair: tuple[Any, ...] = ("tgt", pin) if isinstance(pin, Integral) else tuple(pin)
    if len(pair) != 2 or not isinstance(pair[1], Integral):
        raise FigureError(
            f"pin: got {pin!r}.",
            do="give a token, its number, or ('tgt' or 'src', its number).",
        )
    _one_of("pin", pair[0], get_args(Axis))
    return pair[0], int(pair[1])


def _check(values: Mapping[str, Any]) -> None:
    for name, options in (("view", View), ("scale", Scale), ("unit", Unit), ("order", Order), ("hide", Hidden)):
        for value in _tuple(values.get(name, ())):
            _one_of(name, value, get_args(options))


def _telling(measures: Sequence[str], *, one_head: bool) -> tuple[str, ...]:
    """α beside what is moved: of one head, or of all heads summed."""
    order = ("weighted_norms", "summed_norms") if one_head else ("summed_norms", "weighted_norms")
    moved = [name for name in order if name in measures][:1]
    chosen = (*(name for name in ("weights",) if name in measures), *moved)
    return chosen or tuple(measures[:1])


def _tuple(value: Any) -> tuple[Any, ...]:
    """One or several as a tuple, whole numbers of any library as Python's."""
    one = isinstance(value, str | Integral)
    several: tuple[Any, ...] = () if value is None else (value,) if one else tuple(value)
    return tuple(int(item) if isinstance(item, Integral) else item for item in several)


def _one_of(what: str, got: object, options: Sequence[object]) -> None:
    if got not in options:
        raise FigureError(
            f"{what}: {got!r} is not there.",
            do=f"choose from {', '.join(map(str, options))}.",
        )
