"""How far what was rebuilt is from what the model computed."""

from __future__ import annotations

from torch import Tensor


def relative_error(parts: Tensor, whole: Tensor) -> float:
    """‖parts − whole‖ / ‖whole‖ at every size; infinite where only the whole is 0, NaN where a number is not finite."""
    if not whole.numel():
        return 0.0
    size = max(parts.abs().max(), whole.abs().max())
    if size == 0:
        return 0.0
    parts, whole = parts / size, whole / size
    return float((parts - whole).norm() / whole.norm())
