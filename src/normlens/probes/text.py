"""Token ids: a batch of two, of different lengths, padded on the right.

Room: tiny models.
"""

from typing import Any

import torch
from torch import Tensor

from normlens.probes.setting import BATCH, Setting

LENGTHS, TARGET_LENGTHS = (9, 6), (7, 5)


def text(setting: Setting) -> dict[str, Any]:
    """`input_ids` and its mask."""
    made: dict[str, Any] = {"input_ids": ids(setting, LENGTHS)}
    if setting.has("attention_mask"):
        made["attention_mask"] = mask(LENGTHS)
    return made


def decoder_text(setting: Setting) -> dict[str, Any]:
    """`decoder_input_ids` and its mask, where forward takes them."""
    if not setting.has("decoder_input_ids"):
        return {}
    made: dict[str, Any] = {"decoder_input_ids": ids(setting, TARGET_LENGTHS, within=("decoder", "text"))}
    if setting.has("decoder_attention_mask"):
        made["decoder_attention_mask"] = mask(TARGET_LENGTHS)
    return made


def ids(setting: Setting, lengths: tuple[int, ...], *, within: tuple[str, ...] = ("text", "encoder")) -> Tensor:
    """Random ordinary tokens, padding after each sequence's own length."""
    vocabulary = vocabulary_size(setting, within=within)
    low, high = (100, 200) if vocabulary >= 256 else (min(5, vocabulary // 2), vocabulary)
    special = special_ids(setting)
    ordinary = torch.tensor([item for item in range(low, min(high, vocabulary)) if item not in special] or [low])
    tokens = ordinary[setting.integers(0, len(ordinary), len(lengths), max(lengths))]
    padding = setting.find("pad_token_id", within=within, default=0)
    padding = padding if isinstance(padding, int) and 0 <= padding < vocabulary else 0
    return tokens.masked_fill(mask(lengths) == 0, padding)


def mask(lengths: tuple[int, ...]) -> Tensor:
    """One where there is a token, zero where there is padding."""
    return (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(-1)).long()


def vocabulary_size(setting: Setting, *, within: tuple[str, ...] = ("text",)) -> int:
    """How many tokens there are; the smallest of what the embedding and the configuration say."""
    said = setting.number("vocab_size", "src_vocab_size", within=within, default=setting.vocabulary or 100)
    return max(2, min(said, setting.vocabulary or said))


def special_ids(setting: Setting) -> set[int]:
    """Ids the configuration gives a meaning to."""
    found: set[int] = set()
    for name in (*dir(type(setting.config)), *vars(setting.config)):
        if name.endswith(("_token_id", "_token_index", "_id")):
            value = getattr(setting.config, name, None)
            found |= {value} if isinstance(value, int) else set()
    return found


__all__ = ["BATCH", "decoder_text", "ids", "mask", "special_ids", "text", "vocabulary_size"]
