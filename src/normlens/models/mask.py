"""Which positions of a batch are real, and which are padding."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def real_positions(ids: Int[Tensor, "batch position"], mask: Any, config: Any) -> Bool[Tensor, "batch position"]:
    """What the attention mask says: one row per sequence, or a table of who attends to whom; without one, all are."""
    count = ids.shape[1]
    if not isinstance(mask, Tensor) or mask.shape[-1] < count or len(mask) not in (1, len(ids)):
        return torch.ones_like(ids, dtype=torch.bool)
    if mask.ndim == 2:
        return mask[:, -count:].bool().expand(len(ids), -1)
    if mask.ndim in (3, 4):
        return _from_table(ids, _attended(mask)[..., -count:].expand(len(ids), -1, -1), config)
    return torch.ones_like(ids, dtype=torch.bool)


def without_a_mask(ids: Int[Tensor, "batch position"], config: Any) -> Bool[Tensor, "batch position"]:
    """For a batch that was given no mask: padding tokens at the end of a sequence."""
    return ~_trailing(ids, _token(config, "pad_token_id"))


def _attended(mask: Tensor) -> Bool[Tensor, "batch tgt src"]:
    """True where a query attends to a key, in any head: a table of truths, of ones and zeros, or of what is added."""
    if mask.is_floating_point() and not bool(((mask == 0) | (mask == 1)).all() and mask.any()):
        mask = mask > torch.finfo(mask.dtype).min / 2
    table = mask.bool()
    return table.any(dim=1) if table.ndim == 4 else table


def _from_table(ids: Tensor, attended: Bool[Tensor, "batch tgt src"], config: Any) -> Bool[Tensor, "batch position"]:
    """A key masked for every query is padding; so is a padding token at the end that only padding attends to."""
    real = attended.any(dim=1)
    if attended.shape[1] != ids.shape[1]:
        return real
    padding, ends = _token(config, "pad_token_id"), _token(config, "eos_token_id")
    trailing = _trailing(ids, padding) & real
    for row, position in trailing.nonzero().flip(0).tolist():
        others = real[row].clone()
        others[position] = False
        is_attended = bool(attended[row, others, position].any())
        is_end = padding == ends and bool(attended[row, position, others].any())  # may be the end of the text itself
        real[row, position] = is_attended or is_end
    return real


def _trailing(ids: Tensor, padding: int | None) -> Bool[Tensor, "batch position"]:
    """Padding tokens after the last token that is none; a row of nothing else has none."""
    if padding is None:
        return torch.zeros_like(ids, dtype=torch.bool)
    other = ids != padding
    after = other.flip(1).cumsum(dim=1).flip(1) == 0
    return after & other.any(dim=1, keepdim=True)


def _token(config: Any, name: str) -> int | None:
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    value = getattr(config, name, None)
    return value if isinstance(value, int) else None
