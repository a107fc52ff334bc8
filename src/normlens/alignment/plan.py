"""How sentence pairs will be aligned: which layers of which models are read, and how two directions become one.

Room: decisions, made before the first link and written into the signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from normlens.alignment.choice import Choice, cross_layers, largest_norm, most_agreed
from normlens.alignment.extract import averaged, both, mutual, shares, strongest
from normlens.alignment.links import Alignment, symmetrised
from normlens.alignment.soft import Measure, Position, Reading
from normlens.alignment.stream import Maps, Pair, check
from normlens.lens import Lens
from normlens.models import InputError
from normlens.signature import Signature

Combine = Literal["soft", "intersection", "union", "grow-diag", "grow-diag-final-and"]
Layers = int | Sequence[int] | Literal["auto", "all"]


@dataclass(frozen=True, slots=True)
class Way:
    """How one model is read: the mean of these readings."""

    lens: Lens
    readings: tuple[Reading, ...]
    why: str  # these layers

    def links(self, maps: Maps) -> Alignment:
        """The links of this direction alone."""
        return strongest(averaged([maps[reading] for reading in self.readings]))

    def __str__(self) -> str:
        return f"{self.where} of {self.lens.subject.name}: {self.why}"

    @property
    def where(self) -> str:
        """The layers or heads."""
        return "+".join(reading.where for reading in self.readings)


@dataclass(frozen=True, slots=True)
class Plan:
    """One way, or two and what makes them one."""

    forward: Way
    backward: Way | None
    combine: Combine
    least: float  # links of less confidence are left out
    many: float | None  # see extract.mutual

    def links(self, forward: Maps, backward: Maps | None) -> Alignment:
        """The links of one sentence pair."""
        if self.backward is None or backward is None:
            return self.forward.links(forward).above(self.least)
        if self.combine != "soft":
            found = symmetrised(self.forward.links(forward), self.backward.links(backward).reversed(), self.combine)
            return found.above(self.least)
        one, two = (
            shares([maps[reading] for reading in way.readings])
            for way, maps in ((self.forward, forward), (self.backward, backward))
        )
        return mutual(both(one, two), many=self.many, least=self.least)

    @property
    def signature(self) -> Signature:
        """What makes these links reproducible."""
        ways = [way for way in (self.forward, self.backward) if way is not None]
        first = ways[0].readings[0]
        return Signature(
            (
                *(("model", f"{way.lens.subject.name}@{way.lens.subject.revision}") for way in ways),
                *(("layer", way.where) for way in ways),
                ("measure", "‖Σαf‖" if first.measure == "norms" and first.head is None else first.measure),
                ("rows", "AWI" if first.position == "input" else "AWO"),
                ("words", "sum×mean"),
                ("links", "argmax" if self.backward is None else self.combine),
                *((("least", f"{self.least:g}"),) if self.least else ()),
                *((("many", f"{self.many:g}"),) if self.many is not None and self.backward is not None else ()),
                *ways[0].lens.signature.facts[-1:],
            )
        )


def plan(
    lens: Lens,
    reverse: Lens | None,
    sample: Sequence[Pair],
    *,
    measure: Measure | str = "norms",
    position: Position | str = "input",
    layers: Layers = "auto",
    reverse_layers: Layers | None = None,
    head: int | None = None,
    combine: Combine | str = "soft",
    least: float = 0.0,
    many: float | None = None,
) -> Plan:
    """Decide how to align; what is left "auto" is chosen on the sample, without gold."""
    for one in (lens, reverse):
        if one is not None:
            check(one)
    read: dict[str, Any] = {
        "measure": _one_of("measure", measure, Measure),
        "position": _one_of("position", position, Position),
    }
    joined: Combine = _one_of("combine", combine, Combine)
    chosen = _chosen(lens, layers), None if reverse is None else _chosen(reverse, reverse_layers or layers)
    if reverse is not None and None in chosen:
        found = most_agreed(lens, reverse, sample, **read)
        chosen = chosen[0] or found[0], chosen[1] or found[1]
    forward = chosen[0] or largest_norm(lens, sample)
    ways = [
        Way(one, tuple(Reading(layer=layer, head=head, **read) for layer in choice.layers), choice.why)
        for one, choice in ((lens, forward), (reverse, chosen[1]))
        if one is not None and choice is not None
    ]
    return Plan(ways[0], ways[1] if reverse is not None else None, joined, least, many)


def _chosen(lens: Lens, layers: Layers) -> Choice | None:
    there = cross_layers(lens)
    if layers == "auto":
        return None
    if layers == "all":
        return Choice(tuple(there), "all layers, as asked")
    named = (layers,) if isinstance(layers, int) else tuple(layers)
    wrong = [layer for layer in named if not isinstance(layer, int) or layer not in there]
    if wrong or not named:
        raise InputError(
            f"'{lens.subject.name}' has no cross-attention in layer {wrong[0] if wrong else '(none given)'}.\n"
            f"  Got: {list(named)}.  There are layers {there[0]} to {there[-1]}, counted from 0.\n"
            "  Do: name layers from these, or leave the choice out."
        )
    return Choice(named, "as asked")


def _one_of(name: str, value: str, allowed: Any) -> Any:
    if value not in get_args(allowed):
        raise InputError(f"There is no {name} '{value}'.\n  Do: choose one of {', '.join(get_args(allowed))}.")
    return value
