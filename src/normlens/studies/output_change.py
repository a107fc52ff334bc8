"""How much the output of a model changes when something is hidden from it: its last hidden state and its prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from normlens.studies.seen import HIDDEN

CHANGES = {
    "change": "relative change of the last hidden state",
    "divergence": "KL divergence of the prediction, in nats",
}


def changed(before: Any, after: Any, kind: str, later: Bool[Tensor, "batch tgt"]) -> dict[str, np.ndarray]:
    """How much each sequence changes: its last hidden state and, where there is one, its prediction."""
    changes = {}
    rows = later.to(torch.float64)
    rows /= rows.sum(dim=1, keepdim=True).clamp_min(1)
    name = HIDDEN["decoder" if kind == "cross" else kind]
    then, now = (getattr(output, name, None) for output in (before, after))
    if then and now:
        gaps = (now[-1].double() - then[-1].double()).norm(dim=-1) / then[-1].double().norm(dim=-1)
        changes["change"] = (torch.where(later, gaps.cpu(), 0.0) * rows).sum(dim=1).numpy()
    then, now = (getattr(output, "logits", None) for output in (before, after))
    if isinstance(then, Tensor) and isinstance(now, Tensor):
        apart = [_divergence(a, b).cpu() for a, b in zip(then, now, strict=True)]  # logits are wide
        of_tokens = apart[0].shape == rows.shape[1:]
        parts = [
            part[row > 0] @ row[row > 0] if of_tokens else part.mean() for part, row in zip(apart, rows, strict=True)
        ]
        changes["divergence"] = torch.stack(parts).numpy()
    return changes


def _divergence(then: Float[Tensor, "*token choice"], now: Float[Tensor, "*token choice"]) -> Float[Tensor, "*token"]:
    p, q = then.double().log_softmax(dim=-1), now.double().log_softmax(dim=-1)
    return (p.exp() * (p - q)).sum(dim=-1).clamp_min(0)
