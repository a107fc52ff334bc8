"""Steps that sum over an axis: matrices, products, convolutions, pooling. Positions stay on the axes that stay."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from normlens.capture.calls import Call, aligned, joint_name, set_moved, tensors_in, widened
from normlens.capture.operations import einsum_letters, einsum_parts
from normlens.capture.positions import NOWHERE, Field, Positions, Track


def linear(here: Positions, call: Call) -> None:
    track = call.tracks[0]
    if track is not None:
        columns = here.across(track.columns)
        here.set(call.result, Track(here.across(track.rows), track.origins, columns, track.sides))


def addmm(here: Positions, call: Call) -> None:
    """bias + rows · matrix: the rows are those of the product, or of a residual given as the bias."""
    track = here.track(call.args[1])
    rows = None if track is None else here.across(track.rows)
    here.set(call.result, Track(rows, call.origins))


def product(here: Positions, call: Call) -> None:
    if len(call.operands) != 2 or not isinstance(call.result, Tensor):
        here.set(call.result, Track(None, call.origins))
        return
    left, right = call.tracks
    if call.name == "einsum":
        rows, columns = _einsum(here, call, left, right)
    else:
        rows = None if left is None else here.across(left.rows)
        columns = None if right is None else _standing(right.rows)
        rows, columns = (
            f if f is None or f.codes.ndim <= call.result.ndim else None for f in (rows, columns)
        )  # a vector as operand takes an axis away
        rows, columns = (None if f is None else widened(here, f, call.result.ndim) for f in (rows, columns))
    if rows is None:
        rows, columns = columns, None
    sides = tuple(NOWHERE if t is None else t.origins for t in (left, right))
    here.set(call.result, Track(rows, call.origins, columns, sides))  # pyright: ignore


def _standing(found: Field | None) -> Field | None:
    """The field of a second factor, which a product sums over its last axis but one."""
    return found if found is not None and found.codes.ndim > 1 and found.codes.shape[-2] == 1 else None


def _einsum(here: Positions, call: Call, left: Track | None, right: Track | None) -> tuple[Field | None, Field | None]:
    equation, _ = einsum_parts(call.args)
    letters = einsum_letters(equation)
    if letters is None:
        return None, None

    def placed(found: Field | None, word: str) -> Field | None:
        if found is None or found.codes.ndim != len(word):
            return None
        if any(size > 1 and letter not in letters[2] for letter, size in zip(word, found.codes.shape, strict=True)):
            return None

        def work() -> Tensor:
            kept = [letter for letter in letters[2] if letter in word]
            gone = [letter for letter in word if letter not in letters[2]]
            turned = found.codes.permute([word.index(x) for x in kept + gone]).flatten(len(kept)).squeeze(-1)
            turned = turned if gone else found.codes.permute([word.index(x) for x in kept])
            return turned[tuple(slice(None) if letter in word else None for letter in letters[2])]

        return here.moved(("einsum", equation, word), found, work)

    return tuple(  # pyright: ignore
        placed(None if track is None else track.rows, word) for track, word in zip((left, right), letters, strict=False)
    )


def summed(here: Positions, call: Call) -> None:
    """A sum over axes on which the positions do not depend, or of two tensors cell by cell (`max`, `min`)."""
    rest = call.args[2 if call.name == "norm" else 1 :]
    if rest and isinstance(rest[0], Tensor):
        return aligned(here, call)
    dims = call.kwargs.get("dim", call.kwargs.get("axis", rest[0] if rest else None))
    dims = [dims] if isinstance(dims, int) else dims
    track, result = call.tracks[0], call.result if isinstance(call.result, Tensor) else call.result[0]
    if track is None:
        return None
    rows, source = track.rows, call.operands[0]
    if rows is None or not dims or any(rows.codes.shape[dim] > 1 for dim in dims):
        for part in tensors_in(call.result):
            here.set(part, Track(None, track.origins))
        return None
    gone = {dim % source.ndim for dim in dims} if result.ndim < source.ndim else set()
    kept = here.moved(
        ("summed", tuple(sorted(gone))),
        rows,
        lambda: rows.codes[tuple(0 if axis in gone else slice(None) for axis in range(source.ndim))],
    )
    return here.set(result, Track(kept, track.origins))


def halved(here: Positions, call: Call) -> None:
    """`glu` halves an axis."""
    dim = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else -1)
    set_moved(here, call, call.result, lambda found: found if found and found.codes.shape[dim] == 1 else None)


def added_product(here: Positions, call: Call) -> None:
    """bias + product, as in `baddbmm`."""
    pair = [here.track(operand) for operand in call.operands[1:3]]
    product(here, replace(call, name="bmm", operands=call.operands[1:3], tracks=pair))


def pooled(here: Positions, call: Call) -> None:
    """A convolution or pooling: the same positions if there are as many, else new ones on every further axis."""
    source, result = call.operands[0], call.result
    result = result[0] if isinstance(result, tuple) else result
    track = call.tracks[0]
    if not isinstance(result, Tensor) or track is None:
        return
    rows = track.rows
    spatial = result.shape[2:]
    if rows is not None and rows.codes.ndim == result.ndim and spatial == source.shape[2:] and rows.codes.shape[1] == 1:
        here.set(result, Track(rows, track.origins))
    elif result.ndim > 2 and track.origins:
        along = range(2, result.ndim)
        if rows is not None and rows.codes.ndim == result.ndim and any(rows.codes.shape[axis] > 1 for axis in along):
            along = [axis for axis in along if rows.codes.shape[axis] > 1]
        axes = (0, *along)
        fresh = here.new(joint_name(track.origins), result.shape, axes, result.device, rank=0)
        here.set(result, Track(fresh, track.origins))
