"""Follow every position of the inputs through a forward pass: whose row is this, whose column is that?

Each position of each input gets a serial number. A tensor is accompanied by a small tensor of such numbers, of size 1
along every axis that does not tell positions apart, and whatever the model does with the one is done with the other:
moved, joined, sorted, multiplied. What arrives at an attention block says which token each query and each key is.
Layers are alike, so each step is worked out once a pass and then looked up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

AUXILIARY = frozenset("mask masks type types position positions segment lang langs language label labels".split())
NOWHERE = frozenset[str]()
TEXT = ("input_ids", "inputs_embeds")
VIRTUAL = "parameter"  # positions that come from the weights alone: prompts, class tokens, latent queries
UNKNOWN = -1  # a cell that no position owns, such as padding a model adds by itself


def is_auxiliary(name: str) -> bool:
    """Whether an input only says something about the positions of another one, as a mask does."""
    return bool(AUXILIARY & set(name.lower().split("_")))


@dataclass(frozen=True, slots=True)
class Stream:
    """Positions that belong together: those of one input, or of vectors the model adds by itself."""

    name: str  # of the input; "parameter" for vectors that come from the weights
    start: int  # its first serial number
    batch: int  # sequences; 1 where all share them
    count: int  # positions of a sequence
    given: bool  # the positions are those of the input itself, not made from them
    sizes: tuple[int, ...] = ()  # of every axis of the input that might hold positions


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Serial numbers of positions, of size 1 along the axes on which they do not depend."""

    codes: Int[Tensor, "*axes"]
    rank: int  # 0: all positions of an input in their order; 1: some, or in another order; 2: of the weights
    written: bool = False  # put together by assignments


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """What is known of one tensor. A product of two tensors has the rows of the first and the columns of the second."""

    rows: Field | None
    origins: frozenset[str]  # the inputs that had a part in it
    columns: Field | None = None
    sides: tuple[frozenset[str], frozenset[str]] | None = None  # origins of rows and columns of a product
    version: int = 0


@dataclass(slots=True)
class Positions:
    """The serial numbers of one forward pass."""

    streams: list[Stream] = field(default_factory=list)
    given: int = 0
    known: dict[Any, Any] = field(default_factory=dict)  # steps that were worked out
    token: object = field(default_factory=object)  # tells the tensors of this pass from those of others
    harmless: Counter[int] = field(default_factory=Counter)  # writes that moved nothing, by address of the memory
    text_given: bool = False

    def begin(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The same inputs as tensors of our own, with the positions of each known."""
        self.text_given = any(inputs.get(name) is not None for name in TEXT)
        return {name: self._input(name, value) for name, value in inputs.items()}

    def track(self, tensor: Any, *, written: bool = False) -> Track | None:
        """What is known of a tensor; only its origins when it was written to since, unless by the call in question."""
        found = getattr(tensor, "_normlens_track", None)
        if found is None or found[0] is not self.token:
            return None
        missed = self._version(tensor) - found[1].version
        return found[1] if missed == 0 or (written and missed == 1) else Track(None, found[1].origins)

    def set(self, tensor: Any, track: Track | None) -> None:
        if track is not None and isinstance(tensor, Tensor) and not isinstance(tensor, nn.Parameter):
            version = self._version(tensor)
            if version != track.version:
                track = Track(track.rows, track.origins, track.columns, track.sides, version)
            tensor._normlens_track = (self.token, track)  # pyright: ignore

    def left_alone(self, tensor: Tensor, track: Track) -> None:
        """A call that may have written numbers and no positions: all tensors that share the memory stay known."""
        if self._version(tensor) == track.version + 1:
            self.harmless[tensor.untyped_storage().data_ptr()] += 1

    def _version(self, tensor: Tensor) -> int:
        """How often the memory of a tensor was written to, harmless writes aside."""
        if tensor.is_inference():
            return 0
        return tensor._version - (self.harmless[tensor.untyped_storage().data_ptr()] if self.harmless else 0)

    def along(self, tensor: Tensor, shape: Sequence[int]) -> Field | None:
        """The rows of queries or values (…, head, position, head_dim), for attention weights of this shape."""
        track = self.track(tensor)
        rows = None if track is None else self.across(track.rows)
        if rows is None or (rows.codes.shape[-2] == 1 and tensor.shape[-2] > 1):
            return None
        if rows.codes.ndim > 2 and rows.codes.shape[-3] not in (1, shape[-3]):
            times = shape[-3] // rows.codes.shape[-3]
            return self.moved(("groups", times), rows, lambda: rows.codes.repeat_interleave(times, -3))
        return rows

    def sequences(self, tensor: Tensor, size: int) -> Int[Tensor, "batch position"] | None:
        """The positions of a tensor (position, batch, model), sequence by sequence."""
        track = self.track(tensor)
        rows = None if track is None else self.across(track.rows)
        if rows is None or rows.codes.shape[0] != size:
            return None
        return rows.codes[..., 0].expand(tensor.shape[:2]).mT

    def new(
        self,
        name: str,
        shape: Sequence[int],
        axes: Sequence[int],
        device: torch.device,
        rank: int,
        *,
        given: bool = False,
    ) -> Field:
        """Serial numbers for positions nobody has counted yet, along some axes of a tensor of this shape."""
        sizes = [size if axis in axes else 1 for axis, size in enumerate(shape)]
        total = 1
        for size in sizes:
            total *= size
        batch = sizes[0] if len(shape) > 2 and 0 in axes else 1
        self.streams.append(Stream(name, self.given, batch, total // max(1, batch), given))
        codes = torch.arange(self.given, self.given + total, device=device).view(sizes)
        self.given += total
        made = Field(codes, rank)
        self.known["field", codes.shape, codes.cpu().numpy().tobytes()] = made
        return made

    def remembered(self, key: Any, work: Callable[[], Any]) -> Any:
        """Work that is done once a pass; whatever the key is made of is kept, so that no identity is used twice."""
        if key not in self.known:
            self.known[key] = work()
        return self.known[key]

    def same(self, left: Field, right: Field) -> bool:
        """Whether two fields hold the same numbers."""
        if left is right:
            return True
        return self.remembered(
            ("same", left, right),
            lambda: left.codes.shape == right.codes.shape and torch.equal(left.codes, right.codes),
        )

    def moved(self, key: Any, old: Field | None, work: Callable[[], Tensor | None]) -> Field | None:
        """A field after a move, cut down to the axes on which it depends."""
        if old is None:
            return None

        def moved() -> Field | None:
            codes = work()
            return None if codes is None else self.ranked(cut(codes), old)

        return moved() if key is None else self.remembered((key, old), moved)

    def stream_of(self, code: int) -> Stream | None:
        """The stream a serial number belongs to."""
        at = bisect_right(self.streams, code, key=lambda stream: stream.start) - 1
        return self.streams[at] if at >= 0 and code < self.given and code >= 0 else None

    def names(self, found: Field | None, origins: frozenset[str]) -> tuple[str, ...]:
        """The inputs whose positions a field holds, in order; without a field, those that had a part in it."""
        if found is None:
            return tuple(sorted(origins)) or (VIRTUAL,)
        return self.remembered(("names", found), lambda: self._names(found))

    def order(self, codes: Int[Tensor, "*lead position"]) -> Int[Tensor, "*lead position"] | None:
        """Where each position of a stream stands, if all are there once and not in their order; None otherwise."""
        if codes.shape[-1] < 2 or bool((codes[..., 1:] > codes[..., :-1]).all()):
            return None
        ranked = codes.sort(dim=-1)
        first = [self.stream_of(code) for code in ranked.values[..., 0].unique().tolist()]
        last = [self.stream_of(code) for code in ranked.values[..., -1].unique().tolist()]
        once = bool((ranked.values[..., 1:] > ranked.values[..., :-1]).all())
        whole = set(first) == set(last) and len(set(first)) == 1 and first[0] and first[0].count == codes.shape[-1]
        return ranked.indices if once and whole else None

    def _names(self, found: Field) -> tuple[str, ...]:
        starts = torch.tensor([stream.start for stream in self.streams], device=found.codes.device)
        at = torch.searchsorted(starts, found.codes.flatten(), right=True) - 1
        return tuple(dict.fromkeys(self.streams[i].name for i in at.unique_consecutive().tolist() if i >= 0))

    def ranked(self, codes: Tensor, old: Field) -> Field:
        """A field that is equal to an earlier one is that one, so that layers find each other's steps worked out."""
        return self.remembered(
            ("field", codes.shape, codes.cpu().numpy().tobytes()), lambda: Field(codes, self._rank(codes, old))
        )

    def _rank(self, codes: Tensor, old: Field) -> int:
        if old.rank == 2:
            return 2
        flat = codes.squeeze()
        found = self.stream_of(int(codes.flatten()[0])) if codes.numel() else None
        if found is None or flat.numel() != found.batch * found.count:
            return 1
        whole = torch.arange(found.start, found.start + flat.numel(), device=flat.device)
        turned = flat.ndim == 2 and torch.equal(flat.mT.flatten(), whole)
        return 0 if turned or torch.equal(flat.flatten(), whole) else 1

    def across(self, rows: Field | None) -> Field | None:
        """A field without its last axis, over which a product sums; None if it depends on that."""
        return rows if rows is not None and rows.codes.ndim and rows.codes.shape[-1] == 1 else None

    def union(self, tracks: Sequence[Track | None]) -> frozenset[str]:
        found: frozenset[str] = NOWHERE
        for track in tracks:
            if track is not None and track.origins is not found and track.origins:
                found = track.origins if not found else self._joint(found, track.origins)
        return found

    def _joint(self, left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
        return self.remembered(("joint", left, right), lambda: left | right)

    def _input(self, name: str, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._labelled(name, value)
        if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
            return type(value)(self._input(name, part) for part in value)
        for tensor in _held(value):
            self.set(tensor, Track(self._positions(name, tensor), frozenset({name})))
        return value

    def _labelled(self, name: str, value: Tensor) -> Tensor:
        if is_auxiliary(name) or value.is_nested:
            return value
        alias = value.view_as(value)
        self.set(alias, Track(self._positions(name, value), frozenset({name})))
        return alias

    def _positions(self, name: str, value: Tensor) -> Field | None:
        if value.is_floating_point():
            if not 2 <= value.ndim <= 4 or (value.ndim == 4 and name != "past_key_values"):
                return None
            packed = value.ndim == 2 and {"pixel", "image", "patches"} & set(name.split("_"))  # one row per patch
            axes = (0, value.ndim - 2) if value.ndim > 2 else (0,) if packed else (0, 1)
        elif self.text_given and name not in TEXT and not name.startswith("decoder_"):
            return None
        elif value.ndim in (2, 3) and value.dtype != torch.bool:
            ids = self.new(name, (*value.shape[:2], 1), (0, 1), value.device, rank=0, given=True)
            return Field(ids.codes[..., 0], 0) if value.ndim == 2 else ids
        else:
            return None
        if name == "past_key_values":  # the same positions in every layer, as keys and as values
            return self.remembered(("cached", value.shape), lambda: self.new(name, value.shape, axes, value.device, 0))
        made = self.new(name, value.shape, axes, value.device, rank=0, given=True)
        self.streams[-1] = replace(self.streams[-1], sizes=tuple(value.shape[1:]))
        return made

    def parameter(self, tensor: Tensor) -> Track | None:
        """Rows of a parameter are positions too, where the model uses them as such."""
        if not isinstance(tensor, nn.Parameter) or tensor.ndim < 2:
            return None
        return self.remembered(
            ("parameter", tensor.data_ptr(), tensor.shape),
            lambda: Track(self.new(VIRTUAL, tensor.shape, range(tensor.ndim - 1), tensor.device, 2), NOWHERE),
        )


def cut(codes: Tensor) -> Tensor:
    """The same numbers, of size 1 along every axis on which they do not depend."""
    for axis in range(codes.ndim):
        if codes.shape[axis] > 1 and (codes.stride(axis) == 0 or bool((codes == codes.narrow(axis, 0, 1)).all())):
            codes = codes.narrow(axis, 0, 1)
    return codes.contiguous()


def _held(value: Any, depth: int = 8) -> Iterator[Tensor]:
    """The tensors that an object given as an input holds, such as a cache."""
    if isinstance(value, Tensor):
        yield value
    elif depth and isinstance(value, Mapping):
        for part in value.values():
            yield from _held(part, depth - 1)
    elif depth and isinstance(value, (tuple, list)):
        for part in value:
            yield from _held(part, depth - 1)
    elif depth and hasattr(value, "__dict__"):
        yield from _held(vars(value), depth - 1)
