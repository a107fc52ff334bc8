"""What a model takes: the names of its inputs, the ids of its tokens, the number of its positions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from normlens.errors import NormlensError
from normlens.models.load import Subject

POSITIONS = {"position", "positions", "wpe"}  # how tables of absolute positions are called


class InputError(NormlensError):
    """An input that cannot be traced."""


def takes(model: nn.Module, name: str) -> bool:
    """Whether the model's forward takes an input of this name, if only among any others."""
    parameters = inspect.signature(model.forward).parameters
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def takes_by_name(model: nn.Module, name: str) -> bool:
    """Whether the model's forward has a parameter of this name."""
    return name in inspect.signature(model.forward).parameters


def vocabulary(subject: Subject, *, decoder: bool = False) -> int | None:
    """The number of token ids the model reads, or its decoder; None when its configuration does not say."""
    find = getattr(subject.config, "get_text_config", None)
    try:
        config = subject.config if find is None else find()
    except ValueError:  # a text encoder and a decoder of something else, each with ids of its own
        config = getattr(subject.config, "decoder" if decoder else "text_encoder", None)
    size = getattr(config, "vocab_size", None)
    return size if isinstance(size, int) else None


def longest(subject: Subject) -> int | None:
    """The number of positions the model has a vector for; None when positions are relative or rotary."""
    return _positions(subject.model, vocabulary(subject))


def check_ids(subject: Subject, inputs: Mapping[str, Any]) -> None:
    limit = longest(subject)
    for name in ("input_ids", "decoder_input_ids"):
        ids, size = inputs.get(name), vocabulary(subject, decoder=name.startswith("decoder_"))
        if not isinstance(ids, Tensor) or ids.ndim != 2:
            continue
        if size is not None and ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < size:
            raise InputError(
                f"A token id is outside the vocabulary: the model knows ids 0 to {size - 1}.",
                got=f"{name} from {int(ids.min())} to {int(ids.max())}.",
                cause="a tokenizer that does not belong to the model.",
                do="load the tokenizer from the same place as the model.",
            )
        if limit is not None and ids.shape[1] > limit:
            raise InputError(
                f"{ids.shape[1]} tokens are more than the {limit} positions this model has.",
                do="split the text; or cut it, where that is offered: --truncate (truncate=True in Python).",
            )


def _positions(model: nn.Module, vocabulary: int | None) -> int | None:
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
