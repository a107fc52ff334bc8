"""Pictures, films and sound, in the shapes models take them.

Room: tiny models. The shapes follow the configuration; where it leaves a choice, every choice is offered.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch

from normlens.probes.setting import BATCH, Setting

Media = dict[str, Any]

_VISION = ("vision", "visual", "image", "backbone", "encoder", "vit")
_AUDIO = ("audio", "speech", "encoder", "semantic")
_PICTURES = ("pixel_values", "pixel_values_images", "image_pixel_values", "image")
_GRID = 4  # patches per side, where a model takes patches


def image_variants(setting: Setting) -> Iterator[Media]:
    """Two pictures under every name and shape the signature allows."""
    if setting.has("grid_thw", "image_grid_thw", "image_grid_hw"):
        yield from _gridded(setting)
    if setting.has("spatial_shapes"):
        yield from _shaped(setting)
    if setting.has("flattened_patches"):
        yield _flattened(setting)
    if setting.has("target_sizes"):
        yield _packed(setting)
    if setting.has("pixel_position_ids", "image_position_ids"):
        yield _placed(setting)
    name = next((name for name in _PICTURES if setting.has(name)), None)
    if name is None and "hidden_states" in setting.required and setting.sees:
        name = "hidden_states"
    if name is None:
        return
    channels = setting.number("num_channels", "in_channels", "in_chans", "input_channels", within=_VISION, default=3)
    for height, width in _image_sizes(setting):
        plain = {name: setting.normal(BATCH, channels, height, width)}
        if setting.has("image_sizes"):
            yield plain | {"image_sizes": torch.tensor([[height, width]] * BATCH)}
        if frames := setting.find("num_frames", "frames_per_clip"):
            yield {name: setting.normal(BATCH, int(frames), channels, height, width)}
        yield plain
        crops = {name: setting.normal(BATCH, 2, channels, height, width)}
        if setting.has("image_sizes"):
            yield crops | {"image_sizes": torch.tensor([[height, width]] * BATCH)}
        yield crops
        if setting.has("aspect_ratio_ids"):
            tiles = setting.number("max_num_tiles", within=_VISION, default=4)
            yield {name: setting.normal(BATCH, 1, tiles, channels, height, width)}
        patch = setting.number("patch_size", within=_VISION, default=14)
        yield {name: setting.normal(BATCH, (height // patch) * (width // patch), channels * patch**2)}


def video_variants(setting: Setting) -> Iterator[Media]:
    """Two films."""
    channels = setting.number("num_channels", "in_channels", "in_chans", within=_VISION, default=3)
    frames = setting.number("num_frames", "frames_per_clip", within=("video", *_VISION), default=4)
    for height, width in _image_sizes(setting):
        yield {"pixel_values_videos": setting.normal(BATCH, frames, channels, height, width)}


def audio_variants(setting: Setting) -> Iterator[Media]:
    """Two sounds, as features or as waves, the second one shorter where the model takes a mask."""
    name = next((n for n in ("input_features", "audio_input_features", "audio_mel") if setting.has(n)), None)
    if name is not None:
        bins = setting.number(
            "num_mel_bins",
            "n_mel_bins",
            "feature_projection_input_dim",
            "input_feat_per_channel",
            "input_feat_size",
            "input_dim",
            "mel_bins",
            "feature_size",
            "input_size",
            within=_AUDIO,
            default=80,
        )
        positions = setting.find("max_source_positions", within=_AUDIO)
        lengths = [2 * positions, positions] if isinstance(positions, int) and positions < 400 else []
        for frames, width in dict.fromkeys(product([*lengths, 64, 200], [bins, setting.first_width, 128])):
            for shape in ((BATCH, width, frames), (BATCH, frames, width)):
                sound = {name: setting.normal(*shape)}
                yield from _masked(setting, sound, frames)
                yield sound
        yield {name: setting.normal(BATCH, 1, 64, bins)}
        if setting.has("input_values"):
            for wave, width in product(((BATCH, 1, 4000), (BATCH, 4000)), (setting.first_width, bins)):
                yield {"input_values": setting.normal(*wave), name: setting.normal(BATCH, 13, width)}
    if setting.has("input_values"):
        yield from _waves(setting)


def _waves(setting: Setting) -> Iterator[Media]:
    if (bins := setting.find("num_mel_bins")) is not None and (length := setting.find("max_length")) is not None:
        yield {"input_values": setting.normal(BATCH, int(length), int(bins))}
    for samples in (4000, 16000):
        wave = {"input_values": setting.normal(BATCH, samples)}
        yield from _masked(setting, wave, samples)
        yield wave
        channel = {"input_values": setting.normal(BATCH, setting.number("audio_channels", default=1), samples)}
        yield channel


def _masked(setting: Setting, sound: Media, length: int) -> Iterator[Media]:
    names = ("input_features_mask", "feature_attention_mask", "audio_attention_mask", "audio_mel_mask", "padding_mask")
    name = next((name for name in names if setting.has(name)), None)
    if name is None and setting.has("attention_mask") and not setting.has("input_ids"):
        name = "attention_mask"
    if name is not None:
        kept = torch.tensor([[length], [length * 3 // 4]])
        yield sound | {name: (torch.arange(length) < kept).long()}
        yield sound | {name: torch.arange(length) < kept}


def _image_sizes(setting: Setting) -> Iterator[tuple[int, int]]:
    said = setting.find("image_size", "img_size", "input_size", "max_img_size", "resolution", within=_VISION)
    if isinstance(said, list | tuple):
        said = (int(said[0]), int(said[-1]))
    elif isinstance(said, dict):
        said = (int(said.get("height", 64)), int(said.get("width", 64)))
    elif isinstance(said, int):
        said = (said, said)
    yield from dict.fromkeys(size for size in (said, (64, 64), (224, 224)) if size is not None)


def _patch_numbers(setting: Setting) -> Iterator[int]:
    channels = setting.number("in_channels", "num_channels", "in_chans", within=_VISION, default=3)
    patch = setting.number("patch_size", within=_VISION, default=14)
    temporal = setting.number("temporal_patch_size", "patch_temporal", within=_VISION, default=1)
    yield from dict.fromkeys([channels * temporal * patch**2, channels * patch**2])


def _gridded(setting: Setting) -> Iterator[Media]:
    name = next((name for name in ("pixel_values", "hidden_states") if setting.has(name)), None)
    grid = next(name for name in ("grid_thw", "image_grid_thw", "image_grid_hw") if setting.has(name))
    if name is None:
        return
    sides = [[_GRID, _GRID], [_GRID, _GRID]] if grid == "image_grid_hw" else [[1, _GRID, _GRID], [1, _GRID, _GRID]]
    for numbers in _patch_numbers(setting):
        yield {name: setting.normal(BATCH * _GRID**2, numbers), grid: torch.tensor(sides)}
    patch = setting.number("patch_size", within=_VISION, default=14)
    yield {name: setting.normal(BATCH * _GRID**2, 3, patch, patch), grid: torch.tensor(sides)}
    yield {name: setting.normal(1, BATCH * _GRID**2, 3, patch, patch), grid: torch.tensor(sides)}


def _shaped(setting: Setting) -> Iterator[Media]:
    for numbers in _patch_numbers(setting):
        made: Media = {"pixel_values": setting.normal(BATCH, _GRID**2, numbers)}
        made["spatial_shapes"] = torch.tensor([[_GRID, _GRID]] * BATCH)
        if setting.has("pixel_attention_mask"):
            made["pixel_attention_mask"] = torch.ones(BATCH, _GRID**2, dtype=torch.long)
        yield made


def _packed(setting: Setting) -> Media:
    """All patches of all pictures in one row."""
    patch = setting.number("patch_size", within=_VISION, default=14)
    row = setting.normal(1, 3, patch, BATCH * _GRID**2 * patch)
    return {"pixel_values": row, "target_sizes": torch.tensor([[_GRID, _GRID]] * BATCH, dtype=torch.int32)}


def _placed(setting: Setting) -> Media:
    """Patches, each with its column and row; the side is a multiple of every pooling in use."""
    side, patch = 6, setting.number("patch_size", within=_VISION, default=16)
    name = "pixel_position_ids" if setting.has("pixel_position_ids") else "image_position_ids"
    places = torch.cartesian_prod(torch.arange(side), torch.arange(side)).flip(-1).expand(BATCH, -1, -1)
    return {"pixel_values": setting.normal(BATCH, side**2, 3 * patch**2), name: places}


def _flattened(setting: Setting) -> Media:
    numbers = 3 * setting.number("patch_size", within=_VISION, default=16) ** 2
    rows = torch.arange(1, _GRID + 1).repeat_interleave(_GRID)
    columns = torch.arange(1, _GRID + 1).repeat(_GRID)
    places = torch.stack([rows, columns], dim=-1).float().expand(BATCH, -1, -1)
    return {"flattened_patches": torch.cat([places, setting.normal(BATCH, _GRID**2, numbers)], dim=-1)}
