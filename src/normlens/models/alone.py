"""One text of a padded batch, as if it had been given alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxtyping import Bool
from torch import Tensor

PLAIN = (bool, int, float, str, type(None))


def alone(
    inputs: Mapping[str, Any],
    row: int,
    kept: Bool[Tensor, "batch src"] | None,
    targets_kept: Bool[Tensor, "batch tgt"] | None = None,
) -> dict[str, Any] | str:
    """The inputs of one row, cut to its real positions; a reason when the inputs are not one row per text."""
    ids = next((inputs[name] for name in ("input_ids", "decoder_input_ids") if name in inputs), None)
    if not isinstance(ids, Tensor) or ids.ndim != 2:
        return "the inputs hold no token ids"
    cut: dict[str, Any] = {}
    for name, value in inputs.items():
        if isinstance(value, PLAIN):
            cut[name] = value
        elif not isinstance(value, Tensor) or value.ndim == 0 or len(value) != len(ids):
            return f"'{name}' is not one row per text"
        else:
            real = targets_kept if name.startswith("decoder_") else kept
            cut[name] = _positions(value[row : row + 1], None if real is None else real[row], table="mask" in name)
    return cut


def _positions(value: Tensor, real: Bool[Tensor, " position"] | None, *, table: bool) -> Tensor:
    """The real positions on the second axis, and on the last two of a mask that is a table."""
    if real is None:
        return value
    axes = list(range(2, value.ndim)) if table and value.ndim > 2 else [1]
    where = real.nonzero().squeeze(1).to(value.device)
    for axis in axes:
        if axis < value.ndim and value.shape[axis] == len(real):
            value = value.index_select(axis, where)
    return value
