"""Which attention implementation a model is set to, and eager attention in its place for the time of one pass."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import nn
from transformers import AttentionInterface

from normlens.models import one_at_a_time

EAGER = "eager"
NAME, KEPT_IN = "_attn_implementation", "_attn_implementation_internal"
READABLE = ("eager", "sdpa")  # what transformers ships in torch; its other kernels cannot be seen into


_replaced: dict[int, Any] = {}  # what configurations are set to by their owner, while a pass has them changed


def implementations(model: nn.Module) -> tuple[str, ...]:
    """The implementations that the parts of a model are set to, whatever stands in for them at the moment."""
    names = (_implementation(config) for config in _configs(model))
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


def beyond_reading(model: nn.Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those that a user registered, perhaps under a shipped name, and those shipped ones that run outside torch."""
    names = implementations(model)
    users = tuple(name for name in names if not _is_shipped(name))
    return users, tuple(name for name in names if name not in READABLE and name not in users)


@contextmanager
def switched(model: nn.Module, names: Collection[str], settings: dict[str, Any] | None = None) -> Iterator[None]:
    """Eager attention where the model is set to one of these, and what it is set to elsewhere, for one pass.

    Such passes take turns. `settings` are further attributes for every configuration.
    """
    with one_at_a_time(True):
        configs = _configs(model)
        added = [id(config) for config in configs if id(config) not in _replaced]
        _replaced.update({id(config): _implementation(config) for config in configs if id(config) in added})
        before = [(vars(config), vars(config).copy()) for config in configs]
        try:
            for config in configs:
                wanted = _replaced[id(config)]
                _set(vars(config), EAGER if wanted in names else wanted)
                vars(config).update(settings or {})
            yield
        finally:
            for attributes, was in before:
                _restore(attributes, was, {KEPT_IN, NAME, *(settings or {})})
            for key in added:
                del _replaced[key]


def _implementation(config: Any) -> Any:
    return _replaced[id(config)] if id(config) in _replaced else getattr(config, NAME, None)


def _set(attributes: dict[str, Any], implementation: Any) -> None:
    """Set where it is kept: the property would set the parts of a configuration too."""
    if KEPT_IN in attributes:
        attributes[KEPT_IN] = implementation
    elif NAME in attributes:
        attributes[NAME] = implementation


def _restore(attributes: dict[str, Any], was: dict[str, Any], names: set[str]) -> None:
    for name in names:
        if name in was:
            attributes[name] = was[name]
        else:
            attributes.pop(name, None)


def _is_shipped(name: str) -> bool:
    function = AttentionInterface().get(name)
    while isinstance(function, partial):
        function = function.func
    return function is None or getattr(function, "__module__", "").startswith("transformers.")


def _configs(model: nn.Module) -> list[Any]:
    found = {id(config): config for module in model.modules() if (config := vars(module).get("config")) is not None}
    return [config for config in found.values() if hasattr(config, "__dict__")]
