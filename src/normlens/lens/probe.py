"""A small made-up input that a model accepts, to prove it on.

Room: trying candidates until one runs.
"""

from __future__ import annotations

from typing import Any

import torch

from normlens.models import Subject
from normlens.tiny.inputs import candidates


def probe_inputs(subject: Subject) -> dict[str, Any] | None:
    """Padded batch, source and target of different lengths; None when no made-up input is accepted."""
    for inputs in candidates(subject.model, seed=0):  # pyright: ignore[reportArgumentType]
        moved = {name: _to(value, subject) for name, value in inputs.items()}
        try:
            with torch.no_grad():
                subject.model(**moved)
        except Exception:  # whatever a model raises for inputs it does not take: the next candidate is tried
            continue
        return moved
    return None


def _to(value: Any, subject: Subject) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    dtype = next(subject.model.parameters()).dtype
    return value.to(subject.device, dtype if value.is_floating_point() else None)
