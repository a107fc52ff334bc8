"""Inputs that no signature and no configuration tells, one recipe per family, each with its reason."""

from collections.abc import Callable
from typing import Any

import torch

from normlens.probes.inputs.forward import BATCH, Forward
from normlens.probes.inputs.text import LENGTHS, TARGET_LENGTHS, ids, mask


def recipe(forward: Forward) -> dict[str, Any] | None:
    """The inputs of this model type, where they have to be known."""
    made = _RECIPES.get(forward.config.model_type)
    return made(forward) if made is not None else None


def _coded(forward: Forward) -> dict[str, Any]:
    """Musicgen folds its codebooks into the batch axis."""
    books = forward.number("num_codebooks", default=4)
    codes = forward.integers(0, 200, BATCH * books, max(LENGTHS))
    return {"input_ids": codes, "attention_mask": mask(LENGTHS)}


def _sung(forward: Forward) -> dict[str, Any]:
    """As `_coded`, on the decoder's side."""
    books = forward.number("num_codebooks", within=("decoder",), default=4)
    codes = forward.integers(0, 200, BATCH * books, max(TARGET_LENGTHS))
    words = {"input_ids": ids(forward, LENGTHS), "attention_mask": mask(LENGTHS)}
    return words | {"decoder_input_ids": codes, "decoder_attention_mask": mask(TARGET_LENGTHS)}


def _heard(forward: Forward) -> dict[str, Any]:
    """Kyutai reads a text token and every codebook at each step."""
    books = forward.number("num_codebooks", default=32)
    return {"input_ids": forward.integers(0, 200, BATCH, max(LENGTHS), books + 1), "attention_mask": mask(LENGTHS)}


def _deep(forward: Forward) -> dict[str, Any]:
    """Moshi's depth decoder steps over codebooks, starting from the last state of the big decoder."""
    steps = forward.number("num_codebooks", default=8)
    state = forward.normal(BATCH, 1, forward.number("input_size", default=64))
    return {"input_ids": forward.integers(0, 200, BATCH, steps), "last_hidden_state": state}


def _pointed(forward: Forward) -> dict[str, Any]:
    """Kosmos is told by a mask, not by a token, where the picture's queries stand."""
    queries = forward.number("latent_query_num", default=64)
    lengths = (queries + 9, queries + 6)
    places = torch.zeros(BATCH, max(lengths), dtype=torch.long)
    places[:, 2 : 2 + queries] = 1
    size = forward.number("image_size", within=("vision",), default=56)
    return {
        "pixel_values": forward.normal(BATCH, 3, size, size),
        "input_ids": ids(forward, lengths),
        "attention_mask": mask(lengths),
        "image_embeds_position_mask": places,
    }


def _gated(forward: Forward) -> dict[str, Any]:
    """Idefics is told by a mask which picture each token may look at."""
    size = forward.number("image_size", within=("vision",), default=56)
    return {
        "input_ids": ids(forward, LENGTHS),
        "attention_mask": mask(LENGTHS),
        "pixel_values": forward.normal(BATCH, 2, 3, size, size),
        "image_attention_mask": torch.ones(BATCH, max(LENGTHS), 2, dtype=torch.long),
    }


def _zoomed(forward: Forward) -> dict[str, Any]:
    """Depth Pro scales the picture down, and the smallest copy must still be one patch."""
    side = int(forward.number("patch_size", default=384) / min(forward.find("scaled_images_ratios")))
    return {"pixel_values": forward.normal(1, 3, side, side)}


def _uncached(forward: Forward) -> dict[str, Any]:
    """BLT's cache asks its configuration for a layer count it does not have."""
    return {"input_ids": ids(forward, LENGTHS), "attention_mask": mask(LENGTHS), "use_cache": False}


def _drafted(forward: Forward) -> dict[str, Any]:
    """The draft model reads several layers of the big one, one after the other."""
    width, layers = forward.number("hidden_size", default=64), len(forward.find("target_layer_ids", default=[0]))
    return {
        "noise_embeds": forward.normal(BATCH, 4, width),
        "context_hidden_states": forward.normal(BATCH, 6, width * layers),
    }


def _asked(forward: Forward) -> dict[str, Any]:
    """OmDet reads class names, flat over the batch, and one task sentence per picture."""
    size = forward.number("image_size", default=64)
    return {
        "pixel_values": forward.normal(BATCH, 3, size, size),
        "classes_input_ids": ids(forward, (9, 6, 7, 5)),
        "classes_attention_mask": mask((9, 6, 7, 5)),
        "tasks_input_ids": ids(forward, LENGTHS),
        "tasks_attention_mask": mask(LENGTHS),
        "classes_structure": torch.tensor([2, 2]),
    }


def _packed_sound(forward: Forward) -> dict[str, Any]:
    """The omni audio towers take all sounds in one row of frames, and their lengths."""
    bins = forward.number("num_mel_bins", default=128)
    return {"input_features": forward.normal(bins, 112), "feature_lens": torch.tensor([64, 48])}


def _resampled(forward: Forward) -> dict[str, Any]:
    """The perceiver's mask covers the context only."""
    width = forward.number("hidden_size", default=64)
    return {"context": forward.normal(BATCH, 9, width), "attention_mask": mask(LENGTHS)}


def _prompted(forward: Forward) -> dict[str, Any]:
    """SegGPT sees a prompt picture and its mask beside the picture."""
    height, width = forward.find("image_size")
    shape = (BATCH, 3, height // 2, width)
    return {name: forward.normal(*shape) for name in ("pixel_values", "prompt_pixel_values", "prompt_masks")}


def _spoken(forward: Forward) -> dict[str, Any]:
    """SpeechT5 is text in, spectrogram out."""
    words = {"input_ids": ids(forward, LENGTHS), "attention_mask": mask(LENGTHS)}
    return words | {"decoder_input_values": forward.normal(BATCH, 10, forward.number("num_mel_bins", default=80))}


def _masked_sound(forward: Forward) -> dict[str, Any]:
    """Phi-4's audio tower calls its frames hidden states and requires a mask."""
    frames = forward.normal(BATCH, 64, forward.number("input_size", default=80))
    return {"hidden_states": frames, "mask": mask((64, 48)).bool()}


def _in_step(forward: Forward) -> dict[str, Any]:
    """Voxtral adds one frame of sound to each token, so there are as many."""
    bins = forward.number("num_mel_bins", within=("audio",), default=128)
    return {"input_ids": ids(forward, (8, 8)), "input_features": forward.normal(BATCH, bins, 64)}


def _in_time(forward: Forward) -> dict[str, Any]:
    """Voxtral's text tower scales its states by what the whole model makes of the delay."""
    words = {"input_ids": ids(forward, LENGTHS), "attention_mask": mask(LENGTHS)}
    return words | {"t_cond": forward.normal(1, 1, forward.number("hidden_size", default=64))}


def _filmed(forward: Forward) -> dict[str, Any]:
    """X-CLIP's tower finds the frames of a film in the batch axis."""
    size = forward.number("image_size", default=128)
    return {"pixel_values": forward.normal(BATCH * forward.number("num_frames", default=8), 3, size, size)}


def _denoised(forward: Forward) -> dict[str, Any]:
    """The flow-matching decoder takes a noisy spectrogram, a speaker, codes at half the rate, and a time."""
    bins = forward.number("mel_dim", default=80)
    return {
        "hidden_states": forward.normal(BATCH, 8, bins),
        "condition_vector": forward.normal(BATCH, 8, bins),
        "speaker_embedding": forward.normal(BATCH, 8, forward.number("enc_emb_dim", default=192)),
        "quantized_code": forward.integers(0, 200, BATCH, 4),
        "time_step": torch.tensor(0.5),
        "apply_cfg": False,
    }


_RECIPES: dict[str, Callable[[Forward], dict[str, Any]]] = {
    "musicgen_decoder": _coded,
    "musicgen_melody_decoder": _coded,
    "musicgen": _sung,
    "musicgen_melody": _sung,
    "kyutai_speech_to_text": _heard,
    "moshi_depth": _deep,
    "kosmos-2": _pointed,
    "idefics": _gated,
    "depth_pro": _zoomed,
    "blt": _uncached,
    "muse_glimmer_assistant": _drafted,
    "omdet-turbo": _asked,
    "qwen2_5_omni_audio_encoder": _packed_sound,
    "qwen3_omni_moe_audio_encoder": _packed_sound,
    "idefics2_perceiver": _resampled,
    "seggpt": _prompted,
    "speecht5": _spoken,
    "phi4_multimodal_audio": _masked_sound,
    "voxtral_realtime": _in_step,
    "voxtral_realtime_text": _in_time,
    "xclip_vision_model": _filmed,
    "qwen2_5_omni_dit": _denoised,
}
