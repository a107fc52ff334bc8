"""Steps that move, join, pick or write cells: the very same is done with the numbers of the positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from normlens.capture.calls import Call, aligned, joint_name, set_moved, strongest, tensors_in, widened
from normlens.capture.positions import NOWHERE, UNKNOWN, Field, Positions, Track, cut


def reshaped(here: Positions, call: Call) -> None:
    source, result = call.operands[0], call.result
    if not isinstance(result, Tensor):
        return

    def work(found: Field | None) -> Field | None:
        key = ("shape", source.shape, result.shape)
        return here.moved(
            key, found, lambda: None if found is None else found.codes.expand(source.shape).reshape(result.shape)
        )

    set_moved(here, call, result, work)


def turned(here: Positions, call: Call) -> None:
    rest, kwargs = call.args[1:], call.kwargs

    def work(found: Field | None) -> Field | None:
        key = (call.name, repr(rest), repr(kwargs))
        return here.moved(key, found, lambda: None if found is None else call.func(found.codes, *rest, **kwargs))

    set_moved(here, call, call.result, work)


def expanded(here: Positions, call: Call) -> None:
    def work(found: Field | None) -> Field | None:
        return None if found is None else widened(here, found, call.result.ndim)

    set_moved(here, call, call.result, work)


def picked(here: Positions, call: Call) -> None:
    """The very same move, made with the numbers; many results are taken one by one."""
    source, rest, kwargs = call.operands[0], call.args[1:], call.kwargs
    static = not any(True for _ in tensors_in((rest, kwargs)))
    parts = [call.result] if isinstance(call.result, Tensor) else list(tensors_in(call.result))
    key = (call.name, repr(rest), repr(kwargs), source.shape) if static else None
    for index, part in enumerate(parts):

        def work(found: Field | None, index: int = index, part: Tensor = part) -> Field | None:
            return here.moved(
                None if key is None else (*key, index), found, lambda: _replayed(found, call, source, index, part)
            )

        set_moved(here, call, part, work)


def _replayed(found: Field | None, call: Call, source: Tensor, index: int, part: Tensor) -> Tensor | None:
    if found is None:
        return None
    if call.name in ("gather", "take_along_dim") and len(call.args) > 1:
        dim = int(call.args[1 if call.name == "gather" else 2]) % source.ndim
        if found.codes.shape[dim] == 1 and _but(source.shape, dim) == _but(part.shape, dim):
            return found.codes
    flat = call.name == "roll" and len(call.args) < 3 and "dims" not in call.kwargs
    thin = found.codes.ndim > 1 and found.codes.shape[-1] == 1 and not flat
    for shape, wanted in (
        ((*source.shape[:-1], 1), (*part.shape[:-1], 1)) if thin else (source.shape, part.shape),
        (source.shape, part.shape),
    ):
        try:
            made = call.func(found.codes.expand(shape), *call.args[1:], **call.kwargs)
            made = made if isinstance(made, Tensor) else list(tensors_in(made))[index]
        except (RuntimeError, IndexError, TypeError, ValueError):
            continue
        if tuple(made.shape) == tuple(wanted):
            return made
    return None


def _but(shape: Sequence[int], dim: int) -> tuple[int, ...]:
    return (*shape[:dim], *shape[dim + 1 :])


def joined(here: Positions, call: Call) -> None:
    result, full = call.result, [at for at, part in enumerate(call.operands) if part.numel()]
    parts, tracks = [call.operands[at] for at in full], [call.tracks[at] for at in full]
    if not isinstance(result, Tensor) or not parts:
        return
    dim = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else 0)
    dim = dim % result.ndim
    fields = [None if track is None else track.rows for track in tracks]
    if call.name == "stack":
        parts = [part.unsqueeze(dim) for part in parts]
        fields = [
            None
            if f is None
            else here.remembered(("unsqueeze", f, dim), lambda f=f: Field(f.codes.unsqueeze(dim), f.rank))
            for f in fields
        ]
    known = [f for f in fields if f is not None]
    if not known:
        here.set(result, Track(None, call.origins))
        return
    alike = all(f is not None and here.same(f, known[0]) and f.codes.shape[dim] == 1 for f in fields)
    across = dim == result.ndim - 1 and all(f.codes.shape[dim] == 1 for f in known)
    if alike or across:
        here.set(result, Track(strongest(here, known, result.ndim), call.origins))
        return
    shapes = tuple(part.shape for part in parts)
    names = tuple(NOWHERE if track is None else track.origins for track in tracks)
    key = ("join", dim, shapes, names, tuple(fields))
    here.set(result, Track(here.remembered(key, lambda: _concatenated(here, parts, fields, names, dim)), call.origins))


def _concatenated(
    here: Positions,
    parts: Sequence[Tensor],
    fields: Sequence[Field | None],
    origins: Sequence[frozenset[str]],
    dim: int,
) -> Field | None:
    """Positions side by side; vectors that nobody counted yet are counted now."""
    whole = [
        found or here.new(joint_name(names), part.shape, (dim,), part.device, rank=1 if names else 2)
        for part, found, names in zip(parts, fields, origins, strict=True)
    ]
    sizes = [max(f.codes.shape[axis] for f in whole) for axis in range(parts[0].ndim)]
    codes = [
        found.codes.expand([part.shape[axis] if axis == dim else size for axis, size in enumerate(sizes)])
        for part, found in zip(parts, whole, strict=True)
    ]
    rank = 2 if all(f.rank == 2 for f in whole) else 1
    return whole[0] if len(whole) == 1 else Field(torch.cat(codes, dim=dim), rank)


def padded(here: Positions, call: Call) -> None:
    source, result = call.operands[0], call.result
    pad = call.args[1] if len(call.args) > 1 else call.kwargs.get("pad")

    def work(found: Field | None) -> Field | None:
        key = ("pad", repr(pad), source.shape)
        return here.moved(
            key,
            found,
            lambda: None if found is None else call.func(found.codes.expand(source.shape), pad, "constant", UNKNOWN),
        )

    set_moved(here, call, result, work)


def as_complex(here: Positions, call: Call) -> None:
    set_moved(here, call, call.result, lambda found: _complex(here, found))


def _complex(here: Positions, found: Field | None) -> Field | None:
    if found is None or found.codes.shape[-1] != 1:
        return None
    return here.moved(("complex",), found, lambda: found.codes[..., 0])


def as_real(here: Positions, call: Call) -> None:
    set_moved(
        here,
        call,
        call.result,
        lambda found: None if found is None else here.moved(("real",), found, lambda: found.codes[..., None]),
    )


def embedded(here: Positions, call: Call) -> None:
    track = call.tracks[0]
    if track is None or track.rows is None:
        here.set(call.result, track)
        return
    rows = track.rows
    wide = here.remembered(("embedded", rows), lambda: Field(rows.codes.unsqueeze(-1), rows.rank))
    here.set(call.result, Track(wide, track.origins))


def written(here: Positions, call: Call) -> None:
    """`x[index] = y`: with something from another input x keeps its positions; else each cell has those of its part."""
    target, value = call.args[0], call.args[-1]
    before = here.track(target, written=True)
    given = here.track(value) if isinstance(value, Tensor) else None
    if before is None and given is None:
        return
    origins, old = here.union([before, given]), None if before is None else before.rows
    cached = before is not None and before.origins == {"past_key_values"}  # a place for keys that are still to come
    foreign = given is None or (before is not None and not cached and not given.origins & before.origins)
    if foreign and (old is None or not old.written):
        here.set(target, Track(old, origins))
    elif given is None or given.rows is None:
        here.set(target, Track(None, origins))
    else:
        codes = (
            (torch.full((), UNKNOWN, device=target.device) if old is None else old.codes).expand(target.shape).clone()
        )
        brought = given.rows.codes.expand(value.shape)
        if call.name == "index_copy_":
            codes.index_copy_(call.args[1], call.args[2], brought)
        else:
            codes[call.args[1]] = brought
        here.set(target, Track(_put_together(here, cut(codes), old), origins))


def _put_together(here: Positions, codes: Tensor, old: Field | None) -> Field:
    if old is not None and not old.written:
        return old if torch.equal(codes, old.codes) else here.ranked(codes, old)
    return Field(codes, 1, written=True)


def chosen(here: Positions, call: Call) -> None:
    """`where` and `masked_scatter` take each cell from one of two tensors; positions of one input are told apart."""
    words: Sequence[Any] = call.args
    if len(words) != 3 or not isinstance(call.result, Tensor):
        return aligned(here, call)
    mask, left, right = words if call.name == "where" else (words[1], words[0], words[2])
    first, second = (here.track(part) if isinstance(part, Tensor) else None for part in (left, right))
    if first is None or second is None or not first.origins & second.origins:
        return aligned(here, call)
    rows, others = first.rows, second.rows
    if rows is None or others is None:
        return here.set(call.result, Track(None, call.origins))
    if here.same(rows, others):
        return here.set(call.result, Track(rows, call.origins))
    ours, theirs = rows.codes.expand(left.shape), others.codes.expand(right.shape)
    made = torch.where(mask, ours, theirs) if call.name == "where" else ours.masked_scatter(mask, theirs.contiguous())
    return here.set(call.result, Track(here.ranked(cut(made), rows), call.origins))
