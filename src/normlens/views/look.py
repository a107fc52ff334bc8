"""What of a figure is shown, and how: the choices that Python, the page and a link share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, get_args

from normlens.views.maps import FigureError, Panel

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
    """What of a figure is shown. Empty tuples and None mean: what suits the view."""

    view: View = "heat"
    kind: str | None = None  # "self", "encoder", "decoder", "cross"; None: cross-attention if there is any
    layers: tuple[int, ...] = ()  # several: their mean, or the rows of a grid; none: the middle one, or all in a grid
    heads: tuple[int, ...] = ()  # several: their mean, or the columns of a grid; none: all
    measures: tuple[str, ...] = ()  # side by side; none: attention weights beside contributions
    scale: Scale = "own"  # of each panel, or one for all layers and heads of a measure
    hide: tuple[Hidden, ...] = ()
    rescale: bool = False  # bring each row back to its sum when tokens are hidden
    unit: Unit = "tokens"  # or words: sources add up, targets are averaged
    order: Order = "text"  # of bars
    pin: tuple[Axis, int] | None = None  # ("tgt", 3): query 3 alone; ("src", 3): key 3 alone

    def changed(self, **changes: Any) -> Look:
        """Another look; single numbers and names may stand for tuples of one."""
        known = {one.name for one in fields(self)}
        wrong = sorted(set(changes) - known)
        if wrong:
            raise FigureError(f"no option {wrong[0]!r} (use {', '.join(sorted(known))}).")
        for name in ("layers", "heads", "measures", "hide"):
            if name in changes:
                changes[name] = _tuple(changes[name])
        if changes.get("pin") is not None:
            changes["pin"] = _pin(changes["pin"])
        _check(changes)
        return replace(self, **changes)

    def resolved(self, figure: Figure) -> Look:
        """The same with every default filled in for this figure; refused where the figure lacks something."""
        _check(self.as_json())
        groups = figure.groups
        kind = self.kind or next((name for name in groups if name.startswith("cross")), next(iter(groups)))
        _one_of("kind", kind, tuple(groups))
        panels = [figure.panels[index] for index in groups[kind]]
        there = [panel.layer for panel in panels if panel.layer is not None]
        for layer in self.layers:
            _numbered("layer", layer, there, "the model" if len(groups) == 1 else f"{kind} attention")
        grid = self.view == "grid"
        layers = self.layers or (tuple(there) if grid else tuple(there[(len(there) - 1) // 2 :][:1]))
        heads = sorted({head for panel in panels for head in panel.heads})
        for head in self.heads:
            _numbered("head", head, heads, f"{kind} attention")
        named = tuple(dict.fromkeys(name for panel in panels for name in panel.measures))
        measures = self.measures or _compared(panels[0], one_head=bool(self.heads) or grid)
        for measure in measures:
            _one_of("measure", measure, (*named, *figure.beside(kind)))
        if self.view == "picture" and figure.sides[panels[0].src].picture is None:
            raise FigureError(
                f"there is no picture to draw {kind} attention on.",
                cause="the model reads text, or its patches do not make a rectangle.",
                do="view='heat', 'lines', 'grid' or 'bars'.",
            )
        if self.view == "picture":
            for name in measures:
                panel = next((one for one in panels if name in one.measures), figure.beside(kind).get(name))
                last = panel.map(name).axes[-1] if panel is not None else "src"
                if last == "head" or (last == "tgt" and panels[0].tgt != panels[0].src):
                    raise FigureError(f"{name} has no number for each patch.", do="view='bars'.")
        if self.pin is not None:
            axis, at = self.pin
            tokens = figure.sides[getattr(panels[0], axis)].tokens
            if not 0 <= at < len(tokens):
                raise FigureError(f"pin: no token {at}: {axis} has tokens 0 to {len(tokens) - 1}.")
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


def _compared(panel: Panel, *, one_head: bool) -> tuple[str, ...]:
    """Attention weights beside contributions: of one head, or of all heads together."""
    order = (True, False) if one_head else (False, True)
    weights = [panel.of_role("attention", heads=heads) for heads in (True, False)]
    contributions = [panel.of_role("contribution", heads=heads) for heads in order]
    first = [next((one for one in maps if one is not None), None) for maps in (weights, contributions)]
    return tuple(one.name for one in first if one is not None) or panel.measures[:1]


def _tuple(value: Any) -> tuple[Any, ...]:
    """One or several as a tuple, whole numbers of any library as Python's."""
    one = isinstance(value, str | Integral)
    several: tuple[Any, ...] = () if value is None else (value,) if one else tuple(value)
    return tuple(int(item) if isinstance(item, Integral) else item for item in several)


def _one_of(what: str, got: object, options: Sequence[object]) -> None:
    if got not in options:
        raise FigureError(f"no {what} {got!r} (use {', '.join(map(str, options))}).")


def _numbered(what: str, got: int, there: Sequence[int], whose: str) -> None:
    if got in there:
        return
    if not there:
        raise FigureError(f"no {what} {got}: these maps have no {what}s.", do=f"leave {what}s= out.")
    run = list(there) == list(range(there[0], there[0] + len(there))) and len(there) > 1
    listed = (
        f"{what}s {there[0]} to {there[-1]}" if run else f"{what}{'s' * (len(there) > 1)} {', '.join(map(str, there))}"
    )
    raise FigureError(f"no {what} {got}: {whose} has {listed}.")
