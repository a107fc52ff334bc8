"""Token ids: a batch of two, of different lengths, padded on the right."""

from typing import Any

import torch
from torch import Tensor

from normlens.probes.inputs.forward import Forward

LENGTHS, TARGET_LENGTHS = (9, 6), (7, 5)


def text(forward: Forward) -> dict[str, Any]:
    """`input_ids` and its mask."""
    made: dict[str, Any] = {"input_ids": ids(forward, LENGTHS)}
    if forward.has("attention_mask"):
        made["attention_mask"] = mask(LENGTHS)
    return made


def decoder_text(forward: Forward) -> dict[str, Any]:
    """`decoder_input_ids` and its mask, where forward takes them."""
    if not forward.has("decoder_input_ids"):
        return {}
    made: dict[str, Any] = {"decoder_input_ids": ids(forward, TARGET_LENGTHS, within=("decoder", "text"))}
    if forward.has("decoder_attention_mask"):
        made["decoder_attention_mask"] = mask(TARGET_LENGTHS)
    return made


def ids(forward: Forward, lengths: tuple[int, ...], *, within: tuple[str, ...] = ("text", "encoder")) -> Tensor:
    """Random ordinary tokens, padding after each sequence's own length."""
    vocabulary = vocabulary_size(forward, within=within)
    low, high = (100, 200) if vocabulary >= 256 else (min(5, vocabulary // 2), vocabulary)
    special = special_ids(forward)
    ordinary = torch.tensor([item for item in range(low, min(high, vocabulary)) if item not in special] or [low])
    tokens = ordinary[forward.integers(0, len(ordinary), len(lengths), max(lengths))]
    padding = forward.find("pad_token_id", within=within, default=0)
    padding = padding if isinstance(padding, int) and 0 <= padding < vocabulary else 0
    return tokens.masked_fill(mask(lengths) == 0, padding)


def mask(lengths: tuple[int, ...]) -> Tensor:
    """One where there is a token, zero where there is padding."""
    return (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(-1)).long()


def vocabulary_size(forward: Forward, *, within: tuple[str, ...] = ("text",)) -> int:
    """How many tokens there are; the smallest of what the embedding and the configuration say."""
    said = forward.number("vocab_size", "src_vocab_size", within=within, default=forward.vocabulary or 100)
    return max(2, min(said, forward.vocabulary or said))


def special_ids(forward: Forward) -> set[int]:
    """Ids the configuration gives a meaning to."""
    found: set[int] = set()
    for name in (*dir(type(forward.config)), *vars(forward.config)):
        if name.endswith(("_token_id", "_token_index", "_id")):
            value = getattr(forward.config, name, None)
            found |= {value} if isinstance(value, int) else set()
    return found
