"""What a model's proof says, block by block, without refusing anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from normlens import probes
from normlens.capture import Own, Padding, examine
from normlens.errors import NormlensError
from normlens.lens.probe import find_probe
from normlens.lens.wiring import Wire, wire
from normlens.models import Subject, configuration

PARTS = {"residual": "residual", "normed": "norm", "output": "feed-forward"}  # of a layer, behind its attention


class NoProbe(NormlensError):
    """No made-up input was accepted by the model."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Every attention block of a model with its proofs, and what holds for the model as a whole."""

    name: str
    wires: tuple[Wire, ...]
    own: tuple[tuple[Own, str], ...]  # for each wire: do the model's own attentions agree, and if not, why
    difference: float  # ‖tapped − untapped‖ / ‖untapped‖ over the model's outputs
    reason: str | None  # why the model as a whole is refused
    padding: Padding  # has a padded text the same numbers as alone?
    padding_reason: str
    stand_in: str | None  # the attention read in place of the user's own
    changed: tuple[str, ...]  # what the model changes about itself while it runs

    @property
    def exact(self) -> int:
        """How many blocks are exact."""
        return sum(w.exact for w in self.wires)

    @property
    def healthy(self) -> bool:
        return self.reason is None and self.exact == len(self.wires) > 0 and self.padding != "differs"

    def __str__(self) -> str:
        verdict = self.reason or f"{self.exact} of {len(self.wires)} blocks exact"
        return "\n".join([f"{self.name}: {verdict}", *self._whole()])

    def rows(self) -> list[dict[str, str]]:
        """The proof of each block, one row each."""
        return [
            {
                "block": f"{wire.kind} L{wire.layer}",
                "where": wire.attention or wire.out,
                "rebuilt_to": f"{wire.error:.1e}" if wire.out else "-",
                "own_attentions": "agree" if own == "agrees" else own,
                "layer": ", ".join(word for scope, word in PARTS.items() if wire.path.has(scope)) or "-",
                "verdict": wire.reason or "exact",
            }
            for wire, (own, _) in zip(self.wires, self.own, strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"exact": self.exact, "healthy": self.healthy}

    def _whole(self) -> list[str]:
        """What holds for the model as a whole, one sentence a line."""
        lines = [f"watched against unwatched run: outputs differ by {self.difference:.1e}"]
        why = f" ({self.padding_reason})" if self.padding_reason else ""
        lines.append(f"padded batch against its texts alone: {self.padding}{why}")
        agree = sum(own == "agrees" for own, _ in self.own)
        others = dict.fromkeys(reason for own, reason in self.own if own != "agrees" and reason)
        lines.append(
            f"own attentions: {agree} of {len(self.own)} blocks agree{''.join(f'; {other}' for other in others)}"
        )
        for scope, word in PARTS.items():
            missed = [wire.path.missing(scope) for wire in self.wires if wire.exact]
            exact = sum(reason is None for reason in missed)
            why = "; ".join(dict.fromkeys(reason for reason in missed if reason))
            lines.append(f"{word}: {exact} of {len(missed)} blocks exact, or none was seen{f' ({why})' if why else ''}")
        if alone := sum(wire.exact and wire.path.alone for wire in self.wires):
            lines.append(
                f"no layer stands behind {alone} of them, such as a pooling head: they count as not exact above"
            )
        if self.stand_in is not None:
            lines.append(f"{self.stand_in} attention stands in for the model's own, which cannot be read; both agree")
        if self.changed:
            more = f" and {len(self.changed) - 3} more" if len(self.changed) > 3 else ""
            lines.append(f"changed by its own run, and put back: {', '.join(self.changed[:3])}{more}")
        return lines


def diagnose(subject: Subject, probe: Mapping[str, Any] | None = None) -> Diagnosis:
    """Examine a model on a made-up input, or on one of the caller's."""
    found = None if probe is not None else find_probe(subject)
    if probe is None and found is None:
        raise NoProbe(
            f"No made-up input was accepted by '{subject.name}'.",
            cause="a model with inputs of its own.",
            do="in Python, normlens.load(model, probe={...}) with inputs it takes.",
        )
    inputs, untapped = (found.inputs, found.untapped) if found is not None else (probe or {}, None)
    examination = examine(subject.model, inputs, untapped=untapped)
    return Diagnosis(
        subject.name,
        wire(subject, examination, inputs),
        tuple((block.own, block.own_reason) for block in examination.blocks),
        examination.difference,
        examination.reason,
        examination.padding,
        examination.padding_reason,
        examination.stand_in,
        examination.changed,
    )


def tiny_subject(name: str, *, revision: str | None = None, trust_remote_code: bool = False) -> Subject:
    """A small random model of the same architecture: a model type, or a name or folder whose configuration is read."""
    if name in probes.model_types():
        built = probes.build(name)
    else:
        built = probes.build_from(configuration(name, revision=revision, trust_remote_code=trust_remote_code))
    return Subject(built.model, None, f"{name} (small, random weights)", "random")
