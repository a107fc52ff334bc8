"""How many tokens a model has positions for."""

from __future__ import annotations

from typing import Any

from torch import nn

POSITIONS = {"position", "positions", "wpe"}  # how tables of absolute positions are called


def longest(model: nn.Module, vocabulary: int | None) -> int | None:
    """The number of positions in the smallest table beside a token embedding; None when there is no such table.

    A table elsewhere, such as that of a vision tower, numbers other things than tokens.
    """
    inputs = _input_embeddings(model)
    limits = []
    for parent in model.modules():
        parts = dict(parent.named_children())
        tables = [table for name, table in parts.items() if _is_position_table(name, table)]
        if tables and any(_reads_tokens(part, inputs, vocabulary) for part in parts.values() if part not in tables):
            limits += [_rows(table) for table in tables]
    return min(limits, default=None)


def _is_position_table(name: str, module: nn.Module) -> bool:
    return isinstance(module, nn.Embedding) and bool(POSITIONS & set(name.lower().split("_")))


def _reads_tokens(module: nn.Module, inputs: nn.Module | None, vocabulary: int | None) -> bool:
    return module is inputs or (isinstance(module, nn.Embedding) and module.num_embeddings == vocabulary)


def _rows(table: Any) -> int:
    padding = 0 if table.padding_idx is None else table.padding_idx + 1
    return table.num_embeddings - getattr(table, "offset", 0) - padding


def _input_embeddings(model: nn.Module) -> nn.Module | None:
    try:
        return model.get_input_embeddings()  # pyright: ignore
    except (AttributeError, NotImplementedError):
        return None
