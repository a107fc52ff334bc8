"""Follow the output of every attention block: through the residual, norms and the feed-forward block, to the next one.

    sum × statistic = norm      sum + what is older = residual      sum + something made of it = what joins next

Every tensor made from a block carries a label. Nothing of the model's code is matched: the calls of torch are followed,
and what cannot be followed is said to be something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from normlens.capture.calls import tensors_in
from normlens.capture.following import MATRICES, Following, over_last
from normlens.capture.joins import DIFFERENCES, SUMS, summed
from normlens.capture.labels import (
    Active,
    Gated,
    Hidden,
    Linear,
    Mean,
    Normed,
    Other,
    Statistic,
)
from normlens.capture.networks import activation, of_experts, through_matrix
from normlens.capture.passing import SPREADS, moved, statistic_of
from normlens.capture.scalings import QUOTIENTS, factored, normed, scaled, units_normed
from normlens.capture.vocabulary import ALIGNED, JOINT, LIKE, MOVES, SAME

FACTORS = frozenset("mul multiply __mul__ __rmul__ __imul__ mul_".split())
NEGATIVE = frozenset("neg negative __neg__".split())
EXTREMES = frozenset("min max".split())  # of two tensors, cell by cell; `activation` looks at the shape
CELLS = frozenset("pow __pow__ square abs".split())
NORMS = frozenset("layer_norm rms_norm".split())
PICKS = frozenset("repeat repeat_interleave index_select".split())  # moves that leave out rows or repeat them
LIMITS = frozenset("clamp clamp_ clamp_min clamp_max clip nan_to_num masked_fill masked_fill_ where".split())


def follow(
    here: Following,
    name: str,
    func: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    result: Any,
    given: tuple[Any, ...],
) -> None:
    """One call of torch; `given` are its arguments as they were before."""
    operands = list(tensors_in(given[:1] if name in LIKE else (given, kwargs)))
    here.trace_root(name, operands, result)
    labels = [label for label in map(here.label, operands) if label is not None]
    if not labels:
        return
    block = max(label.block for label in labels)
    try:
        label = _made(here, block, name, func, given, kwargs, result)
    except (
        RuntimeError,
        IndexError,
        TypeError,
        ValueError,
        AttributeError,
    ):  # a form nobody foresaw: lost, not wrong
        label = None
    if label is not None and not isinstance(label, bool):
        for part in tensors_in(args[0] if name == "__setitem__" else result):
            here.put(part, label)
    elif label is None:
        here.lost(block, name, result, args)
    here.note_use(block, name, given, kwargs, args[0] if name == "__setitem__" else result)
    here.hand_over()


def _made(here: Following, block: int, name: str, func: Any, args: tuple[Any, ...], kwargs: Any, result: Any) -> Any:
    """The label of a result; True: labelled already; None: it is something else."""
    operand = args[0] if args else kwargs.get("input")
    first = here.of(block, operand)
    if name in SAME or name in ("contiguous", "clone"):
        return first
    routed = of_experts(here, block, first, name, args, kwargs, result)
    if routed is not None:
        return routed
    if name in LIMITS and isinstance(first, Linear) and is_same(operand, result):
        return first  # it changed nothing in this pass
    if name in MOVES or (name in PICKS and first is not None):
        return moved(here, first, name, func, operand, args, kwargs, result)
    if isinstance(first, Other) and name not in SUMS | DIFFERENCES:
        return statistic_of(here, first, name, args, kwargs, operand, result)
    if name in SUMS or name in DIFFERENCES:
        return summed(here, block, name, args, kwargs, result)
    if name in FACTORS or name in QUOTIENTS:
        return factored(here, block, name, func, args, kwargs, result)
    if name in NEGATIVE and isinstance(first, Linear):
        return scaled(here, first, -1.0, result)
    if name in NORMS and isinstance(first, Linear):
        return normed(here, first, name, args, kwargs, result)
    if name in ("mean", "sum") and isinstance(first, Linear):
        return Mean(first) if name == "mean" and over_last(args, kwargs, operand, result) else None
    if name in MATRICES:
        return through_matrix(here, block, name, args, kwargs, result)
    if isinstance(first, Statistic) and name in ALIGNED:
        others = [here.of(block, a) for a in tensors_in((args[1:], kwargs))]
        return first if all(other is None or isinstance(other, Statistic) for other in others) else None
    if isinstance(first, (Active, Gated, Normed)):
        if name in NORMS:
            return units_normed(first, name, args, kwargs)
        if name in ("mean", "sum", *SPREADS):
            return Statistic(block) if over_last(args, kwargs, operand, result) else None
        if name in CELLS and not isinstance(first, Active):
            return Other(block, "")
    if isinstance(first, (Hidden, Active)) and (name in ALIGNED - JOINT or (name in EXTREMES and len(args) == 2)):
        return activation(here, first, func, args, kwargs, result)
    if isinstance(first, Linear):
        return statistic_of(here, Other(block, ""), name, args, kwargs, operand, result)
    return None


def is_same(operand: Any, result: Any) -> bool:
    return isinstance(operand, Tensor) and isinstance(result, Tensor) and torch.equal(operand, result)
