"""Patches of an image as tokens, and the image they were cut from.

A vision Transformer cuts the image into a grid of patches and puts a few tokens of its own in front. Where its
positions are something else (windows, pooling, dropped patches, video) nothing is claimed.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Num, UInt8
from torch import Tensor

from normlens.models.load import Subject
from normlens.models.sides import Side
from normlens.picture import Picture

LARGEST = 384  # pixels of the stored picture's long side
NAMES = {  # parameters that stand in front of the patches, in the order in which they do
    "cls_token": "[CLS]",
    "class_token": "[CLS]",
    "class_embedding": "[CLS]",
    "distillation_token": "[DIST]",
    "register_tokens": "[REG]",
}


def patches(
    subject: Subject, inputs: Mapping[str, Any], index: int, name: str, *, first: int, count: int
) -> Side | None:
    """The side of image `index`: `first` positions of the model's own, then `count` patches; None if it has others."""
    grid = _grid(subject, inputs)
    if grid is None or count != grid[0] * grid[1]:
        return None
    rows, columns, height, width = grid
    pixels = inputs["pixel_values"][index][:, : rows * height, : columns * width]
    before = _names(subject, first)
    tokens = (*before, *(f"r{row}c{column}" for row in range(rows) for column in range(columns)))
    special = (True,) * first + (False,) * (rows * columns)
    words = (None,) * first + tuple(range(rows * columns))
    return Side(
        name, tuple(range(first + count)), tokens, special, words, Picture(_png(_bytes(pixels)), rows, columns, first)
    )


def _grid(subject: Subject, inputs: Mapping[str, Any]) -> tuple[int, int, int, int] | None:
    """Rows and columns of patches, and the height and width of one."""
    pixels, config = inputs.get("pixel_values"), subject.config
    if not isinstance(pixels, Tensor) or pixels.ndim != 4:
        return None
    parts = (config, *(getattr(config, part, None) for part in ("vision_config", "encoder")))
    size = next((size for part in parts if (size := getattr(part, "patch_size", None)) is not None), None)
    pair = (size, size) if isinstance(size, int) else size
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(n, int) and n > 0 for n in pair):
        return None
    rows, columns = pixels.shape[2] // pair[0], pixels.shape[3] // pair[1]
    return (rows, columns, pair[0], pair[1]) if rows and columns else None


def _names(subject: Subject, first: int) -> tuple[str, ...]:
    """What stands in front of the patches, by the parameters it comes from; else numbers."""
    found: dict[str, int] = {}
    for key, parameter in subject.model.named_parameters():
        ending = key.rpartition(".")[2]
        if ending in NAMES:
            found[ending] = parameter.shape[-2] if ending == "register_tokens" else 1
    named: list[str] = []
    for ending, name in NAMES.items():
        for number in range(found.get(ending, 0)):
            named.append(name if ending != "register_tokens" else f"[REG{number + 1}]")
    return tuple(named) if len(named) == first else tuple(f"[{number}]" for number in range(first))


def _bytes(pixels: Num[Tensor, "channel height width"]) -> UInt8[Tensor, "row column colour"]:
    """Brought back to 0..255 by the smallest and the largest number of the image, at most `LARGEST` pixels long."""
    image = torch.nan_to_num(pixels.detach().float().cpu())
    image = image if len(image) == 3 else image.mean(dim=0, keepdim=True)
    factor = math.ceil(max(image.shape[1:]) / LARGEST)
    if factor > 1:
        image = torch.nn.functional.avg_pool2d(image[None], factor, ceil_mode=True, count_include_pad=False)[0]
    low, high = image.min(), image.max()
    image = (image - low) / (high - low if high > low else 1.0)
    return (image * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous()


def _png(image: UInt8[Tensor, "row column colour"]) -> bytes:
    height, width, colours = image.shape
    rows = b"".join(b"\0" + row.numpy().tobytes() for row in image)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if colours == 3 else 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
