"""Which modules of a model are in training mode."""

from __future__ import annotations

from torch import nn


def in_training(model: nn.Module) -> tuple[str, ...]:
    """Paths of the modules in training mode, "" for the model itself; a root in eval mode says nothing of its parts."""
    return tuple(name for name, module in model.named_modules() if module.training) if _any(model) else ()


def _any(model: nn.Module) -> bool:
    return any(module.training for module in model.modules())
