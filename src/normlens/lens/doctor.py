"""What a model's proof says, block by block, without refusing anything.

Room: the examination, named and written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from normlens import tiny
from normlens.capture import examine
from normlens.errors import NormlensError
from normlens.lens.probe import probe_inputs
from normlens.lens.wiring import Wire, wire
from normlens.models import Subject, configuration


class NoProbe(NormlensError):
    """No made-up input was accepted by the model."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Every attention block of a model with its proof, and whether watching changed the model's output."""

    name: str
    wires: tuple[Wire, ...]
    difference: float  # ‖tapped − untapped‖ / ‖untapped‖ over the model's outputs
    reason: str | None  # why the model as a whole is refused

    @property
    def exact(self) -> int:
        """How many blocks are exact."""
        return sum(w.exact for w in self.wires)

    @property
    def healthy(self) -> bool:
        return self.reason is None and self.exact == len(self.wires) > 0

    def __str__(self) -> str:
        rows = [("block", "where", "rebuilt to", "verdict")]
        rows += [
            (f"{w.kind} L{w.layer}", w.attention or w.out, f"{w.error:.1e}" if w.out else "-", w.reason or "exact")
            for w in self.wires
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)).rstrip() for row in rows
        ]
        watched = f"watched against unwatched run: outputs differ by {self.difference:.1e}"
        verdict = self.reason or f"{self.exact} of {len(self.wires)} blocks exact"
        return "\n".join([f"{self.name}: {verdict}", watched, "", *lines])

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"exact": self.exact, "healthy": self.healthy}


def diagnose(subject: Subject, probe: Mapping[str, Any] | None = None) -> Diagnosis:
    """Examine a model on a made-up input, or on one of the caller's."""
    inputs = probe if probe is not None else probe_inputs(subject)
    if inputs is None:
        raise NoProbe(
            f"No made-up input was accepted by '{subject.name}'.\n"
            "  Usual cause: a model with inputs of its own.\n"
            "  Do: in Python, normlens.load(model, probe={...}) with inputs it takes."
        )
    examination = examine(subject.model, inputs)
    return Diagnosis(subject.name, wire(subject, examination), examination.difference, examination.reason)


def tiny_subject(name: str, *, revision: str | None = None, trust_remote_code: bool = False) -> Subject:
    """A small random model of the same architecture: a model type, or a name or folder whose configuration is read."""
    if name in tiny.model_types():
        built = tiny.build(name)
    else:
        built = tiny.build_from(configuration(name, revision=revision, trust_remote_code=trust_remote_code))
    return Subject(built.model, None, f"{name} (small, random weights)", "random")
