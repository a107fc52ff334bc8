"""A model is left as it was found: what a run changes about it is put back.

Compared and put back, for every module: its attributes, modules, parameters and buffers by identity, lists, dicts and
sets one level deep, tensors by value; and the attributes of every configuration that can be reached.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from normlens.errors import NormlensError

ONE_AT_A_TIME = threading.RLock()  # held by passes that change a model while they run
COPIED_BYTES = 2**24  # tensors are copied before a run, the smallest first, up to this much together
INSTALLED = "_output_capturing_hooks_installed"  # transformers' own hooks, idle until asked, installed once per model
PARTS = ("_modules", "_parameters", "_buffers")
SPECIAL = frozenset({dict, list, set, Tensor})  # attributes that can change without being replaced

_restless: WeakSet[nn.Module] = WeakSet()  # models that a run has changed before


class NotPutBack(NormlensError):
    """A run changed tensors in place that are too large to be copied before every run."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.reason = f"its run changes {', '.join(names[:4])} in place, which cannot be put back"
        super().__init__(
            f"This model cannot be left as it was found: {self.reason}.",
            cause=f"a forward pass that writes to tensors of more than {COPIED_BYTES >> 20} MB together.",
            do="give normlens a copy of the model: copy.deepcopy(model).",
        )


@dataclass(slots=True, eq=False)
class Changes:
    """What a run changed, known once it is over."""

    names: tuple[str, ...] = ()


@contextmanager
def as_found(model: nn.Module, *, hooks: bool = False) -> Iterator[Changes]:
    """Put back at the end whatever changed about the model; with `hooks`, also remove the hooks that were added."""
    changes = Changes()
    with one_at_a_time(model in _restless):
        snapshot = Snapshot(model, hooks=hooks)
        try:
            yield changes
        finally:
            changes.names = snapshot.put_back()
            if changes.names:
                _restless.add(model)


@contextmanager
def one_at_a_time(needed: bool) -> Iterator[None]:
    """Where a pass changes what other threads see, such passes take turns."""
    if not needed:
        yield
        return
    with ONE_AT_A_TIME:
        yield


@dataclass(slots=True, eq=False)
class Held:
    """The attributes of one object as they were."""

    path: str
    attributes: dict[str, Any]  # the live ones
    before: dict[str, Any]
    containers: list[tuple[Any, Any]]  # each with its copy

    @staticmethod
    def of(path: str, attributes: dict[str, Any]) -> tuple[Held, list[Tensor]]:
        """The record of an object, and the tensors among its attributes."""
        special = [value for value in attributes.values() if type(value) in SPECIAL]
        containers = [(value, value.copy()) for value in special if type(value) is not Tensor]
        return Held(path, attributes, attributes.copy(), containers), [v for v in special if type(v) is Tensor]

    def put_back(self) -> list[str]:
        """Restore what differs, and name it."""
        names = []
        if not _same(self.before, self.attributes):
            keys = [key for key in {**self.before, **self.attributes} if self._differs(key)]
            for key in keys:
                if key in self.before:
                    self.attributes[key] = self.before[key]
                else:
                    del self.attributes[key]
            names += keys
        for container, copy in self.containers:
            if not _same(container, copy):
                name = next(key for key, value in self.before.items() if value is container)
                names += _changed_parts(container, copy) if name in PARTS else [name]
                _refill(container, copy)
        return [f"{self.path}.{name}".lstrip(".") for name in names]

    def _differs(self, key: str) -> bool:
        if key == INSTALLED:
            return False
        here, there = key in self.before, key in self.attributes
        return here != there or not _same([self.before[key]], [self.attributes[key]])


class Snapshot:
    """Everything about a model that a run could change."""

    def __init__(self, model: nn.Module, *, hooks: bool = False) -> None:
        self.held: list[Held] = []
        self.hooks: list[tuple[Any, Any]] = []
        self.tensors: list[Tensor] = []
        configs: dict[int, tuple[str, Any]] = {}
        for path, module in _walk(model):
            attributes = vars(module)
            held, tensors = Held.of(path, attributes)
            self.held.append(held)
            self.tensors += tensors
            self.tensors += [tensor for tensor in module._parameters.values() if tensor is not None]
            self.tensors += [tensor for tensor in module._buffers.values() if tensor is not None]
            if hooks:
                self.hooks += [(live, live.copy()) for live in (module._forward_hooks, module._forward_pre_hooks)]
            if "config" in attributes:
                configs.setdefault(id(attributes["config"]), (f"{path}.config", attributes["config"]))
        self.held += [Held.of(path, vars(config))[0] for path, config in _with_parts(list(configs.values()))]
        self.versions = [_version(tensor) for tensor in self.tensors]
        self.copies = _copies([tensor for tensor in self.tensors if not isinstance(tensor, nn.Parameter)])

    def put_back(self) -> tuple[str, ...]:
        """Restore what changed, and name it."""
        names = [name for held in self.held for name in held.put_back()]
        for live, copy in self.hooks:
            if live.keys() != copy.keys():
                _refill(live, copy)
        if self.hooks:
            for held in self.held:
                if INSTALLED not in held.before:
                    held.attributes.pop(INSTALLED, None)
        changed = [
            tensor for tensor, version in zip(self.tensors, self.versions, strict=True) if version != _version(tensor)
        ]
        for tensor in changed:
            if id(tensor) in self.copies:
                with torch.no_grad():
                    tensor.copy_(self.copies[id(tensor)])
        lost = [self._name(tensor) for tensor in changed if id(tensor) not in self.copies]
        if lost:
            raise NotPutBack(tuple(lost))
        return tuple(dict.fromkeys(names + [self._name(tensor) for tensor in changed]))

    def _name(self, tensor: Tensor) -> str:
        for held in self.held:
            for group in (held.before, held.before.get("_parameters", {}), held.before.get("_buffers", {})):
                for name, value in group.items():
                    if value is tensor:
                        return f"{held.path}.{name}".lstrip(".")
        return "?"


def _walk(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Every module once, with its path."""
    seen: set[int] = set()
    waiting = [("", model)]
    while waiting:
        path, module = waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield path, module
        waiting += [(f"{path}.{name}", part) for name, part in module._modules.items() if part is not None]


def _with_parts(configs: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Configurations, and the configurations they consist of."""
    waiting, seen = list(configs), set[int]()
    while waiting:
        path, config = waiting.pop()
        if id(config) in seen or not hasattr(config, "__dict__"):
            continue
        seen.add(id(config))
        yield path, config
        waiting += [
            (f"{path}.{name}", part) for name, part in vars(config).items() if isinstance(part, PretrainedConfig)
        ]


def _copies(tensors: list[Tensor]) -> dict[int, Tensor]:
    copies, room = dict[int, Tensor](), COPIED_BYTES
    for tensor in sorted(tensors, key=Tensor.numel):
        room -= tensor.numel() * tensor.element_size()
        if room < 0:
            break
        copies[id(tensor)] = tensor.detach().clone()
    return copies


def _version(tensor: Tensor) -> int:
    """Counts the changes in place; tensors made under `torch.inference_mode` have no count."""
    try:
        return tensor._version
    except RuntimeError:
        return 0


def _same(left: Any, right: Any) -> bool:
    """Equal, comparing by identity first; what cannot be compared is not the same."""
    try:
        return bool(left == right)
    except Exception:
        return False


def _changed_parts(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    return [name for name in {**before, **now} if now.get(name) is not before.get(name)]


def _refill(container: Any, content: Any) -> None:
    container.clear()
    container.extend(content) if isinstance(container, list) else container.update(content)
