"""Inputs that are recognised by their name alone.

A row is given where forward requires it, or where the row itself says when it is wanted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from normlens.probes.inputs.forward import BATCH, Forward
from normlens.probes.inputs.text import LENGTHS, ids, mask

_STEPS = 6


@dataclass(frozen=True, slots=True)
class Named:
    """How one named input is made."""

    make: Callable[[Forward], Any]
    wanted: Callable[[Forward], bool] = lambda forward: False


def named(forward: Forward) -> dict[str, Any]:
    """Every named input this forward requires or wants."""
    return {
        name: row.make(forward)
        for name, row in _NAMED.items()
        if name in forward.required or (name in forward.names and row.wanted(forward))
    }


def _always(forward: Forward) -> bool:
    return True


def _for(*types: str) -> Callable[[Forward], bool]:
    return lambda forward: forward.config.model_type in types


_CROSS = _for("t5gemma2_decoder")  # cross-attends without a configuration field to say so


def _vectors(*fields: str, steps: int = _STEPS) -> Callable[[Forward], Tensor]:
    return lambda forward: forward.normal(BATCH, steps, forward.number(*fields, "hidden_size", "d_model", default=64))


def _ones(*shape: int) -> Callable[[Forward], Tensor]:
    return lambda forward: torch.ones(shape, dtype=torch.long)


def _boxes(forward: Forward) -> Tensor:
    corners = forward.integers(0, 100, BATCH, max(LENGTHS), 2)
    return torch.cat([corners, corners + 50], dim=-1)


def _mask_order(forward: Forward) -> Tensor:
    """Which patches are hidden, where the model would draw them at random."""
    return forward.normal(
        BATCH, (forward.number("image_size", default=64) // forward.number("patch_size", default=16)) ** 2
    )


def _past(forward: Forward) -> int:
    lags = forward.find("lags_sequence", default=[0])
    return forward.number("context_length", default=8) + max(lags)


def _past_values(forward: Forward) -> Tensor:
    if forward.has("future_time_features"):
        return forward.normal(BATCH, _past(forward)).abs()
    if forward.has("past_values_padding"):
        return forward.normal(BATCH, 4 * forward.number("patch_length", default=32))
    return forward.normal(BATCH, _past(forward), forward.number("num_input_channels", default=1))


def _past_mask(forward: Forward) -> Tensor:
    return torch.ones_like(_past_values(forward))


def _times(forward: Forward, steps: int) -> Tensor:
    return forward.normal(BATCH, steps, forward.number("num_time_features", default=0))


def _future(forward: Forward) -> int:
    return forward.number("prediction_length", default=4)


_NAMED: dict[str, Named] = {
    "input_ids": Named(lambda s: ids(s, LENGTHS)),
    "attention_mask": Named(lambda s: mask(LENGTHS)),
    "bbox": Named(_boxes, _always),
    # vectors in place of tokens
    "inputs_embeds": Named(_vectors("hidden_size")),
    "hidden_states": Named(_vectors("hidden_size", "embed_dim")),
    "query_embeds": Named(_vectors("hidden_size"), _always),
    "encoder_hidden_states": Named(
        _vectors("encoder_hidden_size", steps=5), lambda s: s.has("query_embeds") or _CROSS(s)
    ),
    "inputs": Named(_vectors("d_model")),
    "audio_input_ids": Named(lambda s: s.integers(0, 200, BATCH, _STEPS, s.number("n_mel_bins", default=80))),
    "context": Named(_vectors("hidden_size", "text_hidden_size")),
    "context_hidden_states": Named(_vectors("hidden_size")),
    "noise_embeds": Named(_vectors("hidden_size")),
    "action_embeds": Named(_vectors("hidden_size")),
    "qformer_input_ids": Named(lambda s: ids(s, (6, 4)), _always),
    "qformer_attention_mask": Named(lambda s: mask((6, 4)), _always),
    # pictures as regions
    "visual_feats": Named(_vectors("visual_feat_dim", steps=5), _always),
    "visual_pos": Named(lambda s: s.normal(BATCH, 5, 4).sigmoid(), _always),
    "visual_embeds": Named(_vectors("visual_embedding_dim", steps=5), _for("visual_bert")),
    # other text
    "task_inputs": Named(lambda s: s.integers(0, 100, BATCH, s.number("task_seq_len", default=77))),
    "context_input_ids": Named(lambda s: ids(s, (9, 7, 9, 8)), _always),
    "context_attention_mask": Named(lambda s: mask((9, 7, 9, 8)), _always),
    "doc_scores": Named(lambda s: s.normal(BATCH, 2), _always),
    "n_docs": Named(lambda s: 2, _always),
    # robots
    "states": Named(lambda s: s.normal(BATCH, _STEPS, s.number("state_dim", default=17)), _always),
    "actions": Named(lambda s: s.normal(BATCH, _STEPS, s.number("act_dim", default=4)), _always),
    "rewards": Named(lambda s: s.normal(BATCH, _STEPS, 1), _always),
    "returns_to_go": Named(lambda s: s.normal(BATCH, _STEPS, 1), _always),
    "timesteps": Named(lambda s: torch.arange(_STEPS).expand(BATCH, -1), _always),
    # time series
    "past_values": Named(_past_values),
    "past_observed_mask": Named(_past_mask),
    "past_values_padding": Named(lambda s: torch.zeros_like(_past_values(s)).long()),
    "freq": Named(lambda s: torch.zeros(BATCH, 1, dtype=torch.long)),
    "past_time_features": Named(lambda s: _times(s, _past(s))),
    "future_time_features": Named(lambda s: _times(s, _future(s)), _always),
    "future_values": Named(lambda s: s.normal(BATCH, _future(s)).abs(), lambda s: s.has("future_time_features")),
    # sound on its way out
    "spectrogram": Named(lambda s: s.normal(BATCH, 8, s.number("model_in_dim", default=80))),
    "mel_spectrogram": Named(lambda s: s.normal(BATCH, s.number("mel_dim", default=80), 8)),
    "latents": Named(lambda s: s.normal(BATCH, s.number("hidden_size", default=64), 8)),
    # pictures in pieces
    "noise": Named(_mask_order, _for("vit_mae")),
    "merge_sizes": Named(_ones(BATCH)),
    "aspect_ratio_ids": Named(_ones(BATCH, 1)),
    "aspect_ratio_mask": Named(lambda s: torch.ones(BATCH, 1, s.number("max_num_tiles", default=4)).long()),
}
