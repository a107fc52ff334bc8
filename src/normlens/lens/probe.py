"""A small made-up input that a model accepts, to prove it on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from normlens.capture import Untapped, run_untapped
from normlens.models import NotPutBack, Subject
from normlens.probes import candidates


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """A made-up input, and what the model returned for it when nobody watched."""

    inputs: dict[str, Any]
    untapped: Untapped


def find_probe(subject: Subject) -> Probe | None:
    """Padded batch, source and target of different lengths; None when no made-up input is accepted."""
    base = _base(subject.model)
    for inputs in () if base is None else candidates(base, seed=0):
        moved = {name: _to(value, subject) for name, value in inputs.items()}
        try:
            return Probe(moved, run_untapped(subject.model, moved))
        except NotPutBack:
            raise
        except Exception:  # whatever a model raises for inputs it does not take: the next candidate is tried
            continue
    return None


def probe_inputs(subject: Subject) -> dict[str, Any] | None:
    """The inputs of the probe alone."""
    probe = find_probe(subject)
    return None if probe is None else probe.inputs


def _base(model: nn.Module) -> PreTrainedModel | None:
    """The transformers model itself, or the outermost one in a wrapper; its forward says what both take."""
    return next((part for part in model.modules() if isinstance(part, PreTrainedModel)), None)


def _to(value: Any, subject: Subject) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    dtype = next(subject.model.parameters()).dtype
    return value.to(subject.device, dtype if value.is_floating_point() else None)
