"""Pictures, films and sound, in the shapes models take them.

The shapes follow the configuration; where it leaves a choice, every choice is offered.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch

from normlens.probes.inputs.forward import BATCH, Forward

Media = dict[str, Any]

_VISION = ("vision", "visual", "image", "backbone", "encoder", "vit")
_AUDIO = ("audio", "speech", "encoder", "semantic")
_PICTURES = ("pixel_values", "pixel_values_images", "image_pixel_values", "image")
_GRID = 4  # patches per side, where a model takes patches


def image_variants(forward: Forward) -> Iterator[Media]:
    """Two pictures under every name and shape the signature allows."""
    if forward.has("grid_thw", "image_grid_thw", "image_grid_hw"):
        yield from _gridded(forward)
    if forward.has("spatial_shapes"):
        yield from _shaped(forward)
    if forward.has("flattened_patches"):
        yield _flattened(forward)
    if forward.has("target_sizes"):
        yield _packed(forward)
    if forward.has("pixel_position_ids", "image_position_ids"):
        yield _placed(forward)
    name = next((name for name in _PICTURES if forward.has(name)), None)
    if name is None and "hidden_states" in forward.required and forward.sees:
        name = "hidden_states"
    if name is None:
        return
    channels = forward.number("num_channels", "in_channels", "in_chans", "input_channels", within=_VISION, default=3)
    for height, width in _image_sizes(forward):
        plain = {name: forward.normal(BATCH, channels, height, width)}
        if forward.has("image_sizes"):
            yield plain | {"image_sizes": torch.tensor([[height, width]] * BATCH)}
        if frames := forward.find("num_frames", "frames_per_clip"):
            yield {name: forward.normal(BATCH, int(frames), channels, height, width)}
        yield plain
        crops = {name: forward.normal(BATCH, 2, channels, height, width)}
        if forward.has("image_sizes"):
            yield crops | {"image_sizes": torch.tensor([[height, width]] * BATCH)}
        yield crops
        if forward.has("aspect_ratio_ids"):
            tiles = forward.number("max_num_tiles", within=_VISION, default=4)
            yield {name: forward.normal(BATCH, 1, tiles, channels, height, width)}
        patch = forward.number("patch_size", within=_VISION, default=14)
        yield {name: forward.normal(BATCH, (height // patch) * (width // patch), channels * patch**2)}


def video_variants(forward: Forward) -> Iterator[Media]:
    """Two films."""
    channels = forward.number("num_channels", "in_channels", "in_chans", within=_VISION, default=3)
    frames = forward.number("num_frames", "frames_per_clip", within=("video", *_VISION), default=4)
    for height, width in _image_sizes(forward):
        yield {"pixel_values_videos": forward.normal(BATCH, frames, channels, height, width)}


def audio_variants(forward: Forward) -> Iterator[Media]:
    """Two sounds, as features or as waves, the second one shorter where the model takes a mask."""
    name = next((n for n in ("input_features", "audio_input_features", "audio_mel") if forward.has(n)), None)
    if name is not None:
        bins = forward.number(
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
        positions = forward.find("max_source_positions", within=_AUDIO)
        lengths = [2 * positions, positions] if isinstance(positions, int) and positions < 400 else []
        for frames, width in dict.fromkeys(product([*lengths, 64, 200], [bins, forward.first_width, 128])):
            for shape in ((BATCH, width, frames), (BATCH, frames, width)):
                sound = {name: forward.normal(*shape)}
                yield from _masked(forward, sound, frames)
                yield sound
        yield {name: forward.normal(BATCH, 1, 64, bins)}
        if forward.has("input_values"):
            for wave, width in product(((BATCH, 1, 4000), (BATCH, 4000)), (forward.first_width, bins)):
                yield {"input_values": forward.normal(*wave), name: forward.normal(BATCH, 13, width)}
    if forward.has("input_values"):
        yield from _waves(forward)


def _waves(forward: Forward) -> Iterator[Media]:
    if (bins := forward.find("num_mel_bins")) is not None and (length := forward.find("max_length")) is not None:
        yield {"input_values": forward.normal(BATCH, int(length), int(bins))}
    for samples in (4000, 16000):
        wave = {"input_values": forward.normal(BATCH, samples)}
        yield from _masked(forward, wave, samples)
        yield wave
        channel = {"input_values": forward.normal(BATCH, forward.number("audio_channels", default=1), samples)}
        yield channel


def _masked(forward: Forward, sound: Media, length: int) -> Iterator[Media]:
    names = ("input_features_mask", "feature_attention_mask", "audio_attention_mask", "audio_mel_mask", "padding_mask")
    name = next((name for name in names if forward.has(name)), None)
    if name is None and forward.has("attention_mask") and not forward.has("input_ids"):
        name = "attention_mask"
    if name is not None:
        kept = torch.tensor([[length], [length * 3 // 4]])
        yield sound | {name: (torch.arange(length) < kept).long()}
        yield sound | {name: torch.arange(length) < kept}


def _image_sizes(forward: Forward) -> Iterator[tuple[int, int]]:
    said = forward.find("image_size", "img_size", "input_size", "max_img_size", "resolution", within=_VISION)
    if isinstance(said, list | tuple):
        said = (int(said[0]), int(said[-1]))
    elif isinstance(said, dict):
        said = (int(said.get("height", 64)), int(said.get("width", 64)))
    elif isinstance(said, int):
        said = (said, said)
    yield from dict.fromkeys(size for size in (said, (64, 64), (224, 224)) if size is not None)


def _patch_numbers(forward: Forward) -> Iterator[int]:
    channels = forward.number("in_channels", "num_channels", "in_chans", within=_VISION, default=3)
    patch = forward.number("patch_size", within=_VISION, default=14)
    temporal = forward.number("temporal_patch_size", "patch_temporal", within=_VISION, default=1)
    yield from dict.fromkeys([channels * temporal * patch**2, channels * patch**2])


def _gridded(forward: Forward) -> Iterator[Media]:
    name = next((name for name in ("pixel_values", "hidden_states") if forward.has(name)), None)
    grid = next(name for name in ("grid_thw", "image_grid_thw", "image_grid_hw") if forward.has(name))
    if name is None:
        return
    sides = [[_GRID, _GRID], [_GRID, _GRID]] if grid == "image_grid_hw" else [[1, _GRID, _GRID], [1, _GRID, _GRID]]
    for numbers in _patch_numbers(forward):
        yield {name: forward.normal(BATCH * _GRID**2, numbers), grid: torch.tensor(sides)}
    patch = forward.number("patch_size", within=_VISION, default=14)
    yield {name: forward.normal(BATCH * _GRID**2, 3, patch, patch), grid: torch.tensor(sides)}
    yield {name: forward.normal(1, BATCH * _GRID**2, 3, patch, patch), grid: torch.tensor(sides)}


def _shaped(forward: Forward) -> Iterator[Media]:
    for numbers in _patch_numbers(forward):
        made: Media = {"pixel_values": forward.normal(BATCH, _GRID**2, numbers)}
        made["spatial_shapes"] = torch.tensor([[_GRID, _GRID]] * BATCH)
        if forward.has("pixel_attention_mask"):
            made["pixel_attention_mask"] = torch.ones(BATCH, _GRID**2, dtype=torch.long)
        yield made


def _packed(forward: Forward) -> Media:
    """All patches of all pictures in one row."""
    patch = forward.number("patch_size", within=_VISION, default=14)
    row = forward.normal(1, 3, patch, BATCH * _GRID**2 * patch)
    return {"pixel_values": row, "target_sizes": torch.tensor([[_GRID, _GRID]] * BATCH, dtype=torch.int32)}


def _placed(forward: Forward) -> Media:
    """Patches, each with its column and row; the side is a multiple of every pooling in use."""
    side, patch = 6, forward.number("patch_size", within=_VISION, default=16)
    name = "pixel_position_ids" if forward.has("pixel_position_ids") else "image_position_ids"
    places = torch.cartesian_prod(torch.arange(side), torch.arange(side)).flip(-1).expand(BATCH, -1, -1)
    return {"pixel_values": forward.normal(BATCH, side**2, 3 * patch**2), name: places}


def _flattened(forward: Forward) -> Media:
    numbers = 3 * forward.number("patch_size", within=_VISION, default=16) ** 2
    rows = torch.arange(1, _GRID + 1).repeat_interleave(_GRID)
    columns = torch.arange(1, _GRID + 1).repeat(_GRID)
    places = torch.stack([rows, columns], dim=-1).float().expand(BATCH, -1, -1)
    return {"flattened_patches": torch.cat([places, forward.normal(BATCH, _GRID**2, numbers)], dim=-1)}
