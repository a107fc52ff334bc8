"""Which module of a model is running now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from normlens.capture.calls import tensors_in


@contextmanager
def lost_outputs(model: nn.Module) -> Iterator[set[str]]:
    """The modules that meanwhile return a tensor no call was seen to make, such as that of a compiled kernel."""
    lost: set[str] = set()

    def leave(name: str, output: Any) -> None:
        if not all(hasattr(tensor, "_normlens_track") for tensor in tensors_in(output)):
            lost.add(name)

    handles = [
        module.register_forward_hook(lambda _, __, output, name=name: leave(name, output))
        for name, module in model.named_modules()
    ]
    try:
        yield lost
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def module_path(model: nn.Module, ran: dict[str, None]) -> Iterator[Callable[[], str]]:
    """Keep track of the module now running in this thread, and of all that `ran`, by hooks that are gone at the end."""
    thread = threading.get_ident()
    stack: list[str] = []

    def enter(name: str) -> None:
        if threading.get_ident() == thread:
            stack.append(name)
            ran[name] = None

    def leave(*_: Any) -> None:
        if threading.get_ident() == thread:
            stack.pop()

    handles = []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(lambda *_, name=name: enter(name)))
        handles.append(module.register_forward_hook(leave, always_call=True))
    try:
        yield lambda: stack[-1] if stack else ""
    finally:
        for handle in handles:
            handle.remove()
