"""Follow positions through one call of torch: which step each function of torch is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from normlens.capture import moves, sums
from normlens.capture.calls import Call, aligned, tensors_in
from normlens.capture.positions import Positions, Track
from normlens.capture.vocabulary import ALIGNED, JOINS, LIKE, PICKS, POOLS, RESHAPES, TURNS


def follow(here: Positions, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    """One call of torch: what was known of its operands makes known what it returned."""
    operands = [a for a in args if isinstance(a, Tensor)] if not kwargs else list(tensors_in((args, kwargs)))
    if not operands:
        operands = list(tensors_in(args))
    operands = operands[:1] if name in LIKE else operands
    tracks = [here.track(operand, written=operand is result) for operand in operands]
    rule = RULES.get(name)
    if rule is None:
        _lost(here, result, here.union(tracks))
        return
    if rule in OF_PARAMETERS and not any(track is not None and track.rows is not None for track in tracks):
        first = operands[:1] if rule is sums.linear else operands
        tracks[: len(first)] = [track or here.parameter(operand) for operand, track in zip(first, tracks, strict=False)]
    if any(tracks) or rule is moves.written:
        call = Call(name, func, args, kwargs, result, operands, tracks, here.union(tracks))
        if result is operands[0] and rule is aligned and tracks[0] is not None and _is_harmless(tracks):
            here.left_alone(operands[0], tracks[0])
        try:
            rule(here, call)
        except (RuntimeError, IndexError, TypeError, ValueError):  # a form nobody foresaw: lost, not wrong
            _lost(here, result, call.origins)


def _is_harmless(tracks: list[Track | None]) -> bool:
    """Whether what is written into a tensor brings no positions of its own, or the same ones."""
    first, *others = tracks
    return first is not None and all(other is None or not other.origins or other.rows is first.rows for other in others)


def _lost(here: Positions, result: Any, origins: frozenset[str]) -> None:
    """What comes of a call that cannot be followed: only the inputs that had a part in it are known."""
    if origins:
        for part in tensors_in(result):
            here.set(part, Track(None, origins))


RULES: dict[str, Callable[[Positions, Call], None]] = (
    dict.fromkeys(ALIGNED, aligned)
    | dict.fromkeys(POOLS, sums.pooled)
    | dict.fromkeys(PICKS, moves.picked)
    | dict.fromkeys(RESHAPES, moves.reshaped)
    | dict.fromkeys(TURNS, moves.turned)
    | dict.fromkeys(JOINS, moves.joined)
    | dict.fromkeys(("sum", "mean", "max", "min", "amax", "amin", "norm", "var", "std", "logsumexp"), sums.summed)
    | dict.fromkeys(("matmul", "__matmul__", "bmm", "einsum", "mm", "__rmatmul__"), sums.product)
    | {
        "expand": moves.expanded,
        "expand_as": moves.expanded,
        "broadcast_to": moves.expanded,
        "linear": sums.linear,
        "addmm": sums.addmm,
        "embedding": moves.embedded,
        "one_hot": moves.embedded,
        "pad": moves.padded,
        "__setitem__": moves.written,
        "index_copy_": moves.written,
        "where": moves.chosen,
        "masked_scatter": moves.chosen,
        "masked_scatter_": moves.chosen,
        "baddbmm": sums.added_product,
        "glu": sums.halved,
        "view_as_complex": moves.as_complex,
        "view_as_real": moves.as_real,
    }
)
MOVES = (moves.chosen, moves.picked, moves.reshaped, moves.turned, moves.expanded, moves.joined)
OF_PARAMETERS = frozenset({aligned, sums.linear, *MOVES})  # steps in which vectors of the weights may be positions
