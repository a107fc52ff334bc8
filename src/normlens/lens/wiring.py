"""Which attention blocks a model has, found and proved on a probe input.

Room: names and numbers of blocks. Measures nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from normlens.capture import Examination
from normlens.models import Subject

Kind = Literal["self", "encoder", "decoder", "cross"]


@dataclass(frozen=True, slots=True)
class Wire:
    """One attention block of a model: where it is, what it connects, and whether it is exact."""

    kind: Kind
    layer: int  # its number among the blocks of its kind, from 0, in the order they run
    attention: str  # module path of the attention
    out: str  # name of its output matrix
    use: int  # how often that matrix was used before in the same pass: layers may share it
    error: float  # how exactly its parts rebuilt it on the probe, relative
    reason: str | None  # why it is refused; None when exact

    @property
    def exact(self) -> bool:
        return self.reason is None


def wire(subject: Subject, examination: Examination) -> tuple[Wire, ...]:
    """Name the blocks of an examination. Source and target of a probe differ in length, which tells cross-attention."""
    encoder = _encoder_path(subject)
    uses: Counter[str] = Counter()
    layers: Counter[str] = Counter()
    wires = []
    for block in examination.blocks:
        kind = _kind(subject, block.out or block.name, encoder, block.tgt, block.src)
        wires.append(Wire(kind, layers[kind], block.name, block.out, uses[block.out], block.error, block.reason))
        layers[kind] += 1
        uses[block.out] += 1
    return tuple(wires)


def _kind(subject: Subject, path: str, encoder: str | None, tgt: int, src: int) -> Kind:
    if not subject.is_seq2seq:
        return "self" if tgt == src else "cross"
    if encoder is not None and path.startswith(encoder + "."):
        return "encoder"
    return "decoder" if tgt == src else "cross"


def _encoder_path(subject: Subject) -> str | None:
    find = getattr(subject.model, "get_encoder", None)
    encoder = find() if find is not None and subject.is_seq2seq else None
    return next((name for name, module in subject.model.named_modules() if module is encoder and name), None)
