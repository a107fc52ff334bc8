"""The tokenizer of a model: inside its processor, and whether it belongs to the model."""

from __future__ import annotations

from typing import Any

from torch import nn

SPECIAL = ("bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id")


def text_tokenizer(processor: Any) -> Any:
    """The tokenizer inside a processor of text and other media; a tokenizer is its own."""
    return getattr(processor, "tokenizer", processor)


def mismatch(model: nn.Module, tokenizer: Any | None) -> str | None:
    """What shows that they do not belong together, or None.

    A vocabulary may be smaller than the model's table, which is often padded; larger it may not be, and every special
    id the model knows must be a token.
    """
    tokenizer = text_tokenizer(tokenizer)
    if tokenizer is None:
        return None
    size, rows = getattr(tokenizer, "vocab_size", None), _rows(model)
    if not isinstance(size, int) or rows is None:
        return None
    if size > rows:
        return f"it has {size} tokens, the model's table has {rows}"
    config: Any = getattr(model, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    for name in SPECIAL:
        number = getattr(config, name, None)
        if isinstance(number, int) and number >= len(tokenizer):
            return f"the model's {name} is {number}, but it has only {len(tokenizer)} tokens"
    return None


def _rows(model: nn.Module) -> int | None:
    try:
        table = model.get_input_embeddings()  # pyright: ignore
    except (AttributeError, NotImplementedError):
        return None
    return table.num_embeddings if isinstance(table, nn.Embedding) else None
