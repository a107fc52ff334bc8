"""Which parts of a model a run does not reach.

Room: tiny models. Looks with forward hooks, which are gone when it returns.
"""

from collections.abc import Iterator
from typing import Any

from torch import nn
from transformers import PreTrainedModel


def unreached(model: PreTrainedModel, inputs: dict[str, Any] | None) -> Iterator[str]:
    """Paths of the outermost sub-models whose attention stays idle on these inputs (None: not run at all)."""
    seen: set[str] = set()
    watched = [path for path, module in model.named_modules() if _attends(module)]
    handles = [
        model.get_submodule(path).register_forward_hook(lambda *_, path=path: seen.add(path)) for path in watched
    ]
    try:
        if inputs is not None:
            model(**inputs)
    finally:
        for handle in handles:
            handle.remove()
    idle = [path for path in watched if path not in seen]
    given: list[str] = []
    for path, module in model.named_modules():
        if not path or not isinstance(module, PreTrainedModel) or any(path.startswith(f"{up}.") for up in given):
            continue
        if any(inside.startswith(f"{path}.") for inside in idle) and not any(
            inside.startswith(f"{path}.") for inside in seen
        ):
            given.append(path)
            yield path


def _attends(module: nn.Module) -> bool:
    return "Attention" in type(module).__name__
