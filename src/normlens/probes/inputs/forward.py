"""The forward of a model: its parameters, its configuration, and a source of random numbers to make inputs with."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel

BATCH = 2


@dataclass(frozen=True, slots=True)
class Forward:
    """What is known of a model before it is given inputs."""

    config: PretrainedConfig
    names: frozenset[str]  # every parameter of forward
    required: frozenset[str]  # those without a default
    vocabulary: int | None  # rows of the input embedding, where there is one
    generator: torch.Generator
    first_width: int = 64  # what the first linear or 1-d convolution of the model takes
    sees: bool = False  # whether the first layer of the model is a 2-d convolution

    @staticmethod
    def of(model: PreTrainedModel, *, seed: int) -> "Forward":
        parameters = [
            parameter
            for parameter in inspect.signature(model.forward).parameters.values()
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        ]
        return Forward(
            config=model.config,
            names=frozenset(parameter.name for parameter in parameters),
            required=frozenset(p.name for p in parameters if p.default is p.empty),
            vocabulary=_vocabulary(model),
            generator=torch.Generator().manual_seed(seed),
            first_width=_first_width(model),
            sees=_sees(model),
        )

    def has(self, *names: str) -> bool:
        """Whether forward takes any of these."""
        return any(name in self.names for name in names)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(shape, generator=self.generator)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Integers in [low, high)."""
        return torch.randint(low, max(high, low + 1), shape, generator=self.generator)

    def find(self, *names: str, within: tuple[str, ...] = (), default: Any = None) -> Any:
        """The first of these fields that has a value, in the configuration or in its parts named by `within`."""
        for config in self._parts(within):
            for name in names:
                if (value := getattr(config, name, None)) is not None:
                    return value
        return default

    def number(self, *names: str, within: tuple[str, ...] = (), default: int) -> int:
        """Like `find`, for an integer; of a list its first."""
        value = self.find(*names, within=within, default=default)
        value = value[0] if isinstance(value, list | tuple) and value else value
        return int(value) if isinstance(value, int | float) else default

    def _parts(self, within: tuple[str, ...]) -> Iterator[PretrainedConfig]:
        tree = dict(_tree("", self.config))
        for word in within:
            yield from (config for path, config in tree.items() if word in path)
        yield from tree.values()


def _tree(path: str, config: PretrainedConfig) -> Iterator[tuple[str, PretrainedConfig]]:
    yield path, config
    for name, value in vars(config).items():
        if isinstance(value, PretrainedConfig):
            yield from _tree(f"{path}.{name}", value)


def _first_width(model: PreTrainedModel) -> int:
    for module in model.modules():
        if isinstance(module, nn.Linear):
            return module.in_features
        if isinstance(module, nn.Conv1d):
            return module.in_channels
    return 64


def _sees(model: PreTrainedModel) -> bool:
    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Embedding)
    first = next((module for module in model.modules() if isinstance(module, kinds)), None)
    return isinstance(first, nn.Conv2d)


def _vocabulary(model: PreTrainedModel) -> int | None:
    try:
        embedding = model.get_input_embeddings()
    except Exception:
        return None
    rows = getattr(embedding, "num_embeddings", None)
    return rows if isinstance(rows, int) and rows > 2 else None
