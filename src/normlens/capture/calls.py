"""One call of torch with what is known of its operands, and the plainest step: cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from normlens.capture.positions import NOWHERE, VIRTUAL, Field, Positions, Track
from normlens.capture.vocabulary import COPIES


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call of torch, with what is known of its operands."""

    name: str
    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    operands: list[Tensor]
    tracks: list[Track | None]
    origins: frozenset[str]


def aligned(here: Positions, call: Call) -> None:
    """Cell by cell: positions of the inputs stand above those of the weights, ordered ones above moved ones."""
    if not isinstance(call.result, Tensor):
        return
    only = call.tracks[0] if call.name in COPIES or call.name.startswith("masked_scatter") else None
    if only is not None and call.operands[0].shape == call.result.shape:
        here.set(call.result, only)
        return
    ndim, known = call.result.ndim, [track for track in call.tracks if track is not None]
    if len(known) == 1 and known[0].rows is not None and known[0].rows.codes.ndim == ndim:
        here.set(call.result, known[0])
        return
    rows = strongest(here, [track.rows for track in known], ndim)
    columns = strongest(here, [track.columns for track in known], ndim)
    sides = next((track.sides for track in known if track.sides is not None), None)
    here.set(call.result, Track(rows, call.origins, columns, sides))


def strongest(here: Positions, fields: Sequence[Field | None], ndim: int) -> Field | None:
    best: Field | None = None
    for found in fields:
        if found is None or found.codes.ndim > ndim:
            continue
        wide = found if found.codes.ndim == ndim else widened(here, found, ndim)
        if best is None or wide.rank < best.rank:
            best = wide
        elif wide.rank == best.rank == 1 and not here.same(best, wide):
            return _mixed(here, best, wide)
    return best


def _mixed(here: Positions, left: Field, right: Field) -> Field | None:
    """Two positions in one cell make a new position."""
    if left.codes.shape != right.codes.shape:
        return None

    def new() -> Field:
        names = dict.fromkeys((*here.names(left, NOWHERE), *here.names(right, NOWHERE)))
        axes = [axis for axis, size in enumerate(left.codes.shape) if size > 1]
        return here.new("+".join(names), left.codes.shape, axes, left.codes.device, rank=1)

    return here.remembered(("mixed", left, right), new)


def widened(here: Positions, found: Field, ndim: int) -> Field:
    codes = found.codes
    return here.remembered(
        ("widened", found, ndim), lambda: Field(codes.view(*(1,) * (ndim - codes.ndim), *codes.shape), found.rank)
    )


def set_moved(here: Positions, call: Call, result: Any, work: Callable[[Field | None], Field | None]) -> None:
    track = call.tracks[0]
    if isinstance(result, Tensor) and track is not None:
        here.set(result, Track(work(track.rows), track.origins, work(track.columns), track.sides))


def joint_name(origins: frozenset[str]) -> str:
    return "+".join(sorted(origins)) if origins else VIRTUAL


def called(func: Any) -> str:
    """The name of what is called: of an attribute that is read, its own."""
    name = getattr(func, "__name__", "")
    return getattr(func.__self__, "__name__", "") if name == "__get__" else name


def tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(part)
