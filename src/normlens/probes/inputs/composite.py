"""Text with pictures and sounds standing in it, for models that mark their places with a token.

Asks the model itself how many places a picture or a sound takes (`get_image_features`,
`get_audio_features`), so no family's arithmetic is repeated here.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from normlens.probes.inputs.forward import BATCH, Forward
from normlens.probes.inputs.media import Media
from normlens.probes.inputs.text import ids, mask

_IMAGE_TOKENS = ("image_token_id", "image_token_index", "image_patch_id", "im_patch_id", "image_pad_token_id")
_AUDIO_TOKENS = ("audio_token_id", "audio_token_index", "speech_token_index")


def interleaved(model: PreTrainedModel, forward: Forward, image: Media, audio: Media) -> dict[str, Any] | None:
    """Text in which the tokens of these media stand, or None when the model cannot say how many there are."""
    places: list[tuple[int, tuple[int, int]]] = []
    for media, names, method in (
        (image, _IMAGE_TOKENS, "get_image_features"),
        (audio, _AUDIO_TOKENS, "get_audio_features"),
    ):
        if media:
            token = forward.find(*names)
            counts = _queries(model) or _counts(getattr(model, method, None), media)
            if not isinstance(token, int) or counts is None:
                return None
            places.append((token, counts))
    extra = [sum(counts[row] for _, counts in places) for row in range(BATCH)]
    lengths = (extra[0] + 9, extra[1] + 6)
    tokens, filled, kinds = ids(forward, lengths), mask(lengths), torch.zeros(BATCH, max(lengths), dtype=torch.long)
    for row in range(BATCH):
        start = 2
        for kind, (token, counts) in enumerate(places, start=1):
            tokens[row, start : start + counts[row]] = token
            kinds[row, start : start + counts[row]] = kind
            start += counts[row] + 1
    made: dict[str, Any] = {"input_ids": tokens} | image | audio
    if forward.has("attention_mask"):
        made["attention_mask"] = filled
    for name in ("mm_token_type_ids", "token_type_ids"):
        if forward.has(name):
            made[name] = kinds
    return made


def _queries(model: PreTrainedModel) -> tuple[int, int] | None:
    """A model that asks about a picture with learned queries takes one place for each."""
    queries = getattr(model, "query_tokens", None)
    return (queries.shape[1], queries.shape[1]) if isinstance(queries, Tensor) and queries.ndim == 3 else None


@torch.no_grad()
def _counts(features: Callable[..., Any] | None, media: Media) -> tuple[int, int] | None:
    if features is None:
        return None
    names = inspect.signature(features).parameters
    try:
        found = features(**{name: value for name, value in media.items() if name in names})
    except Exception:
        return None
    return _rows(getattr(found, "pooler_output", found))


def _rows(found: Any) -> tuple[int, int] | None:
    if isinstance(found, Tensor):
        rows = found.numel() // found.shape[-1]
        return rows // BATCH, rows - rows // BATCH
    if isinstance(found, list | tuple) and found and all(isinstance(item, Tensor) for item in found):
        if len(found) == BATCH:
            first, second = (item.numel() // item.shape[-1] for item in found)
            return first, second
        return _rows(found[0])
    return None
