"""The names of the positions on the axes of attention blocks: tokens, patches, cached and added positions.

Nothing is cut to fit. An axis that holds just the tokens of the text has the side of the text; any other has a side of
its own, with a name for each position by the input it comes from, and a number where nobody has a name for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from normlens import models
from normlens.capture import Axis, Stream
from normlens.lens.block import Block
from normlens.lens.trace import Trace
from normlens.lens.wiring import Roles
from normlens.models import Encoded, Side, Subject

if TYPE_CHECKING:
    from normlens.lens.lens import Lens

ADDED_NAMES = {"virtual": "[+{}]", "cached": "[c{}]"}


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """An axis with the name of its side, and which of its positions are real."""

    side: str
    kept: Bool[Tensor, "batch position"] | None  # None when all are


@dataclass(slots=True)
class Namer:
    """Names the axes of one pass."""

    subject: Subject
    encoded: Encoded
    roles: Roles
    sides: dict[str, tuple[Side, ...]] = field(default_factory=dict)  # those that are not the text's or the target's
    known: dict[int, tuple[Axis, Named]] = field(default_factory=dict)

    def name(self, axis: Axis) -> Named:
        """The side of an axis; axes are alike from layer to layer, so each is worked out once."""
        if id(axis) not in self.known:
            self.known[id(axis)] = (axis, self._named(axis))
        return self.known[id(axis)][1]

    def _named(self, axis: Axis) -> Named:
        whole = _whole(axis)
        if whole is not None and whole.given:
            side = self.roles.side(whole.name)
            texts, kept = self._written(side)
            written = self._texts(texts) or (not texts and side in ("text", "source", "target"))
            if whole.count == self._count(whole.name) and written:
                return Named(side, kept)
        name = self._joined_name(axis)
        if axis.codes is None or not self._is_by_sequence(axis):
            return Named(self._new(name, (models.positions(name, axis.count),) * self._sequences()), None)
        return self._read(name, axis)

    def _is_by_sequence(self, axis: Axis) -> bool:
        """Whether each row of the batch is one sequence of an input, and not a window of one."""
        assert axis.codes is not None
        streams = {_stream_of(axis, code) for code in axis.codes.flatten().tolist()} - {None}
        return len(axis.codes) == self._sequences() or any(
            s is not None and s.batch == len(axis.codes) for s in streams
        )

    def _read(self, name: str, axis: Axis) -> Named:
        """Position by position."""
        assert axis.codes is not None
        codes = axis.codes.cpu()
        kept = torch.ones_like(codes, dtype=torch.bool)
        sides = []
        for row, sequence in enumerate(codes.tolist()):
            read = [self._position(axis, code) for code in sequence]
            kept[row] = torch.tensor([real for _, _, real in read])
            tokens = [(token, special) for token, special, real in read if real]
            sides.append(_side(name, tokens))
        place = _patches(axis)
        if place is not None:
            drawn = [
                models.patches(self.subject, self.encoded.inputs, row, name, first=place, count=axis.count - place)
                for row in range(len(sides))
            ]
            sides = [patched or side for patched, side in zip(drawn, sides, strict=True)]
        every = None if bool(kept.all()) else kept.to(axis.codes.device)
        return Named(self._new(name, tuple(sides)), every)

    def _position(self, axis: Axis, code: int) -> tuple[str, bool, bool]:
        """Name of a position, whether it is special, whether it is real and not padding."""
        stream = _stream_of(axis, code)
        if stream is None:
            return "[?]", True, True
        sequence, index = divmod(code - stream.start, stream.count)
        side = self.roles.side(stream.name.split("+")[0])
        if side in ADDED_NAMES:
            return ADDED_NAMES[side].format(index), True, True
        texts, kept = self._written(side)
        if not stream.given or stream.count != self._count(stream.name) or not self._texts(texts):
            return f"[{index}]", False, True
        if kept is not None:
            if not bool(kept[sequence, index]):
                return "", False, False
            index = int(kept[sequence, :index].sum())
        return texts[sequence].tokens[index], texts[sequence].special[index], True

    def _written(self, side: str) -> tuple[tuple[Side, ...], Tensor | None]:
        """The tokens of a side, and which of its positions hold one."""
        if side == "target":
            return self.encoded.targets, self.encoded.targets_kept
        return (self.encoded.sides, self.encoded.kept) if side in ("text", "source") else ((), None)

    def _texts(self, sides: Sequence[Side]) -> bool:
        return bool(sides) and all(side.tokens for side in sides)

    def _sequences(self) -> int:
        tensors = (value for value in self.encoded.inputs.values() if isinstance(value, Tensor) and value.ndim)
        return len(self.encoded.sides) or len(next(tensors, (0,)))

    def _count(self, name: str) -> int:
        value = self.encoded.inputs.get(name)
        return value.shape[1] if isinstance(value, Tensor) and value.ndim > 1 else -1

    def _joined_name(self, axis: Axis) -> str:
        sides = list(self.roles.sides(axis.names))
        if "virtual" in sides and len(sides) > 1 and not {"text", "source", "target"} & set(sides):
            sides.remove("virtual")
        return "+".join(sides) or "positions"

    def _new(self, name: str, sides: tuple[Side, ...]) -> str:
        """A side under a name that no other side of the pass has."""
        taken = {"text", "target"} & {side.name for side in (*self.encoded.sides, *self.encoded.targets) if side.tokens}
        taken |= {"source"} & {side.name for side in self.encoded.sides if side.tokens}
        number, free = 1, name
        while free in taken or (free in self.sides and not _same(self.sides[free], sides)):
            number += 1
            free = f"{name} {number}"
        self.sides[free] = tuple(replace(side, name=free) for side in sides)
        return free


def finished(lens: Lens, encoded: Encoded, namer: Namer, blocks: Sequence[Block]) -> Trace:
    """The trace of a pass. A sequence that is no text has the positions that its first block has."""
    sides, others = encoded.sides, dict(namer.sides)
    if sides and not any(side.tokens for side in sides):
        own = next((b.tgt for b in blocks if b.tgt in others and len(others[b.tgt]) == len(sides)), None)
        sides = sides if own is None else others.pop(own)
    return Trace(tuple(blocks), lens.wires, sides, encoded.targets, lens.signature, others)


def together(traces: Sequence[Trace]) -> Trace:
    """Texts that were traced one by one, as one batch: as wide as the longest, 0 beyond the end of a shorter one."""
    first = traces[0]
    blocks = tuple(
        replace(
            same[0],
            error=max(block.error for block in same),
            sizes=tuple(size for block in same for size in block.sizes),
            kept={name: _stacked([block.kept[name] for block in same]) for name in same[0].kept},
        )
        for same in zip(*(trace.blocks for trace in traces), strict=True)
    )
    return replace(
        first,
        blocks=blocks,
        sides=tuple(side for trace in traces for side in trace.sides),
        targets=tuple(side for trace in traces for side in trace.targets),
        others={name: tuple(side for trace in traces for side in trace.others.get(name, ())) for name in first.others},
    )


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    sizes = [max(tensor.shape[axis] for tensor in tensors) for axis in range(1, tensors[0].ndim)]
    whole = tensors[0].new_zeros(len(tensors), *sizes)
    for row, tensor in enumerate(tensors):
        whole[(row, *(slice(size) for size in tensor.shape[1:]))] = tensor[0]
    return whole


def _whole(axis: Axis) -> Stream | None:
    """The one stream whose positions these are, all of them and in their order."""
    codes: Int[Tensor, "batch position"] | None = axis.codes
    if codes is None or not codes.numel():
        return None
    first = int(codes[0, 0])
    stream = next((s for s in axis.streams if s.start == first), None)
    if stream is None or (stream.batch, stream.count) != tuple(codes.shape):
        return None
    counted = torch.arange(first, first + codes.numel(), device=codes.device)
    return stream if torch.equal(codes.flatten(), counted) else None


def _patches(axis: Axis) -> int | None:
    """How many positions of the model's own stand before those made of one input, which follow in their order."""
    assert axis.codes is not None
    codes = axis.codes[0].tolist()
    streams = [_stream_of(axis, code) for code in codes]
    first = next((at for at, stream in enumerate(streams) if stream and stream.name != "parameter"), None)
    if first is None or streams[first] is None:
        return None
    start = streams[first].start  # pyright: ignore[reportOptionalMemberAccess]
    return first if codes[first:] == list(range(start, start + len(codes) - first)) else None


def _stream_of(axis: Axis, code: int) -> Stream | None:
    return next((s for s in reversed(axis.streams) if s.start <= code < s.start + s.batch * s.count), None)


def _side(name: str, tokens: Sequence[tuple[str, bool]]) -> Side:
    words = []
    for _, special in tokens:
        words.append(None if special else len([word for word in words if word is not None]))
    return Side(
        name,
        tuple(range(len(tokens))),
        tuple(token for token, _ in tokens),
        tuple(special for _, special in tokens),
        tuple(words),
    )


def _same(left: Sequence[Side], right: Sequence[Side]) -> bool:
    return [side.tokens for side in left] == [side.tokens for side in right]
