"""Which attention blocks a model has: what each connects, known by where its queries and its keys come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from normlens.capture import NO_PATH, Examination, Path, Seen, is_auxiliary
from normlens.models import Subject

Kind = str  # "self", "encoder", "decoder", "cross"; beside a text the name of another input, such as "image"
SIDES: dict[Kind, tuple[str, str]] = {
    "self": ("text", "text"),
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "cross": ("target", "source"),
}
TEXT = ("input_ids", "inputs_embeds")
ADDED = {"parameter": "virtual", "past_key_values": "cached"}  # positions beside those of the input itself
UNREAD = "unread"  # attention that was noticed, but shows no queries and keys


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
    path: Path = NO_PATH  # the points of its layer that are exact too, and why others are not

    @property
    def exact(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Roles:
    """What the inputs of one pass are to a reader: text, source, target, image ..."""

    is_seq2seq: bool
    is_text: bool  # token ids or their embeddings are among the inputs
    main: str  # the side all is about, the decoder's aside

    @classmethod
    def of(cls, subject: Subject, inputs: Mapping[str, Any]) -> Roles:
        given = [name for name, value in inputs.items() if value is not None]
        is_text = any(name in TEXT for name in given)
        if subject.is_seq2seq or is_text:
            return cls(subject.is_seq2seq, is_text, "source" if subject.is_seq2seq else "text")
        main = next((name for name in given if not is_auxiliary(name) and not name.startswith("past_")), "text")
        return cls(False, False, _medium(main))

    def side(self, name: str) -> str:
        """The side that the positions of an input belong to."""
        if name in ADDED:
            return ADDED[name]
        if name.startswith("decoder_"):
            return "target"
        if name in TEXT or name == "encoder_outputs" or (self.is_seq2seq and not self.is_text):
            return "source" if self.is_seq2seq else "text"
        return _medium(name)

    def sides(self, names: Iterable[str]) -> tuple[str, ...]:
        """The sides of several inputs, each once."""
        return tuple(dict.fromkeys(self.side(part) for name in names for part in name.split("+")))

    def kind(self, tgt: Sequence[str], src: Sequence[str]) -> Kind:
        """What attention is, by the inputs its queries and its keys come from."""
        if not tgt or not src:
            return UNREAD
        asks, answers = (self._own(names) for names in (tgt, src))
        if self.is_seq2seq and asks == ("virtual",) and answers in (asks, ("source",)):
            return "decoder" if answers == asks else "cross"
        for side, kind in (("target", "decoder"), ("source", "encoder"), ("text", "self"), (self.main, "self")):
            if side in asks:
                return kind if side in answers else "cross"
        shared = next((side for side in asks if side in answers), None)
        return shared or f"{'+'.join(asks)} to {'+'.join(answers)}"

    def _own(self, names: Sequence[str]) -> tuple[str, ...]:
        """Sides without what was added to them; what was added, when there is nothing else."""
        sides = self.sides(names)
        return tuple(side for side in sides if side not in ADDED.values()) or sides


def wire(subject: Subject, examination: Examination, inputs: Mapping[str, Any]) -> tuple[Wire, ...]:
    """Name the blocks of an examination, layer by layer in the order they ran."""
    roles = Roles.of(subject, inputs)
    uses: Counter[str] = Counter()
    layers: Counter[str] = Counter()
    wires = []
    for block in examination.blocks:
        kind = roles.kind(block.asks, block.answers)
        number, use = layers[kind], uses[block.out]
        wires.append(Wire(kind, number, block.name, block.out, use, block.error, block.reason, block.path))
        layers[kind] += 1
        uses[block.out] += 1
    return tuple(wires)


def layer_of(seen: Sequence[Seen], order: int, kind: Kind, roles: Roles) -> int:
    """The number of an attention among those of its kind in a pass, refused ones included."""
    earlier = (one for one in seen if one.order < order and roles.kind(one.tgt, one.src) == kind)
    return len({one.order if one.block is None else one.block for one in earlier} - {order})


def _medium(name: str) -> str:
    """What an input holds, by its name; the name itself where that does not say."""
    words = set(name.lower().split("_"))
    if words & {"video", "videos"}:
        return "video"
    if words & {"pixel", "image", "images", "patches", "pixels"}:
        return "image"
    return "audio" if words & {"audio", "speech", "features", "values", "audios"} else name
