"""The numbers of a figure as few bytes, for a page that carries its own data or fetches it piece by piece.

The reader of these bytes is assets/data.js. A figure becomes a header, which is JSON, and one chunk of zlib-compressed
bytes per panel, so that a page unpacks only what it shows. The header describes each measure once: symbol, sentence,
role, sign. In a chunk the stored maps follow each other; the header says where each begins and how it is coded:

    float32    the numbers themselves: maps that are no matrix, and everything when the figure is small
    root8      one byte per cell: code = round(255·√(value / scale)), value ≈ scale·(code / 255)²
    linear16   two bytes per cell of a signed map: value ≈ scale·code / 32767

The scale of a map is its largest value, sign left out. The square root spends the steps on small values, where a head
that puts nearly all its weight on [SEP] keeps everything else: a value is off by about √(value·scale)/255, and never by
more than scale/255.
‖αf(x)‖ is a product, |α|·‖f(x)‖, and must be as true against its own scale M as α against its scale A, also where α is
largest on a token whose ‖f(x)‖ is small; so column j of α has the scale min(A, M / ‖f(x_j)‖), which no α there exceeds.
A pinned token has a chunk of its own, with its exact rows or columns.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Shaped

from normlens.views.figure import Figure, Side
from normlens.views.glyphs import visible
from normlens.views.look import Axis
from normlens.views.maps import Map, Panel

STEPS = 255
EXACT = 1_500_000  # bytes: a figure whose numbers take less is not rounded at all
Coding = Literal["float32", "root8", "linear16"]
ORDER: tuple[Coding, ...] = ("float32", "linear16", "root8")  # in a chunk: four-byte numbers first, so all are aligned


@dataclass(frozen=True, slots=True)
class Packed:
    """A figure ready to travel."""

    header: dict[str, Any]
    chunks: tuple[bytes, ...]  # one per panel, then one for each pinned token


def packed(figure: Figure) -> Packed:
    """Header and chunks; tokens are made visible, numbers packed."""
    stored = [one.values for panel in figure.panels for one in panel.maps if one.values is not None]
    whole = sum(4 * values.size for values in stored) <= EXACT
    look = figure.look.resolved(figure)
    panels, chunks = [], []
    for panel in figure.panels:
        entries, raw = _panel(panel, whole)
        panels.append(
            {
                "layer": panel.layer,
                "kind": panel.kind,
                "tgt": panel.tgt,
                "src": panel.src,
                "heads": list(panel.heads),
                "error": panel.error,
                "maps": entries,
            }
        )
        chunks.append(_squeezed(raw))
    pins = [] if whole or look.pin is None else [look.pin]
    for axis, at in pins:
        rows = b"".join(exact(figure, index, axis, at) for index in figure.groups[str(look.kind)])
        chunks.append(_squeezed(rows))
    header = {
        "title": figure.title,
        "signature": figure.signature,
        "note": figure.note,
        "difference": figure.difference,
        "exact": whole,
        "pins": [{"kind": look.kind, "axis": axis, "at": at} for axis, at in pins],
        "groups": {name: list(indexes) for name, indexes in figure.groups.items()},
        "look": look.as_json(),
        "sides": [_side(side) for side in figure.sides],
        "measures": _measures(figure),
        "panels": panels,
    }
    return Packed(header, tuple(chunks))


def exact(figure: Figure, panel: int, axis: Axis, at: int) -> bytes:
    """Row (tgt) or column (src) `at` of every stored matrix, as float32, in the order of the maps."""
    return _lines(figure.panels[panel], axis, slice(at, at + 1)).tobytes()


def exact_lines(figure: Figure, panel: int, axis: Axis) -> Float[np.ndarray, "at cell"]:
    """What `exact` takes, for every row or every column at once."""
    return _lines(figure.panels[panel], axis, slice(None))


def _lines(panel: Panel, axis: Axis, at: slice) -> Float[np.ndarray, "at cell"]:
    matrices = [one.values for one in panel.maps if one.is_matrix and one.values is not None]
    cut = [np.moveaxis(values, -2 if axis == "tgt" else -1, 0)[at] for values in matrices]
    return np.concatenate([lines.reshape(len(lines), -1).astype("<f4") for lines in cut], axis=1)


def quantise(
    values: Float[np.ndarray, "map tgt src"], scales: Float[np.ndarray, "map _"], coding: Coding
) -> Shaped[np.ndarray, "map tgt src"]:
    """The codes of some maps, each against its own scale, or that of each column."""
    if coding == "float32":
        return values.astype("<f4")
    parts = values / np.where(scales > 0, scales, 1)[:, None, :]
    if coding == "linear16":
        return np.rint(np.clip(parts, -1, 1) * 32767).astype("<i2")
    return np.rint(STEPS * np.sqrt(np.clip(parts, 0, 1))).astype(np.uint8)


def _measures(figure: Figure) -> dict[str, dict[str, Any]]:
    """What a reader is told of each measure, and whether it is signed."""
    maps = {name: panel.map(name) for panel in reversed(figure.panels) for name in panel.measures}
    return {
        name: {"label": one.label, "says": one.says, "role": one.role, "signed": one.signed}
        for name, one in maps.items()
    }


def _panel(panel: Panel, whole: bool) -> tuple[list[dict[str, Any]], bytes]:
    """What the header says of each map of a panel, and the bytes of those that are stored."""
    stored: dict[str, tuple[int, bytes]] = {}
    offset = 0
    maps = [one for one in panel.maps if one.values is not None]
    for one in sorted(maps, key=lambda one: ORDER.index(_coding(one, whole))):
        values = _stacked(one, panel.values(one.name))
        raw = quantise(values, column_scales(panel, one), _coding(one, whole)).tobytes()
        stored[one.name] = (offset, raw)
        offset += len(raw)
    entries = []
    for name in panel.measures:
        one, values = panel.map(name), _stacked(panel.map(name), panel.values(name))
        entry: dict[str, Any] = {"name": name, "axes": " ".join(one.axes), "scales": _scales(values).tolist()}
        entry["mean"] = float(np.abs(values.mean(axis=0)).max(initial=0.0))
        if name in stored:
            entry |= {"coding": _coding(one, whole), "at": stored[name][0]}
        else:
            entry |= {"coding": "product", "of": one.product}
        entries.append(entry)
    return entries, b"".join(raw for _, raw in stored.values())


def column_scales(panel: Panel, one: Map) -> Float[np.ndarray, "map _"]:
    """What the codes of a map are measured against: α column by column, so that α·‖f(x)‖ is as true as α."""
    values = _stacked(one, panel.values(one.name))
    scales = _scales(values)[:, None]
    products = (panel.map(name).product for name in panel.measures)
    second = next((product[1] for product in products if product is not None and product[0] == one.name), None)
    if second is None:
        return scales
    norms = panel.values(second)
    sizes = np.abs(values) if one.signed else values
    largest = (norms * sizes.max(axis=1, initial=0.0)).max(axis=1, initial=0.0)[:, None]  # that of the product
    return np.where(norms * scales > largest, largest / np.where(norms > 0, norms, 1), scales)


def _squeezed(raw: bytes) -> bytes:
    """zlib, set for bytes that are noisy numbers and no text: a few percent smaller."""
    press = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, 9, zlib.Z_FILTERED)
    return press.compress(raw) + press.flush()


def _coding(one: Map, whole: bool) -> Coding:
    if whole or not one.is_matrix:
        return "float32"
    return "linear16" if one.signed else "root8"


def _stacked(one: Map, values: Float[np.ndarray, "*axes"]) -> Float[np.ndarray, "map row column"]:
    """Any map as a stack: of heads, or of one."""
    if one.is_matrix:
        return values if one.has_heads else values[None]
    return values[:, None, :] if values.ndim == 2 else values[None, None]


def _scales(maps: Float[np.ndarray, "map row column"]) -> Float[np.ndarray, " map"]:
    return np.abs(maps).max(axis=(1, 2), initial=0.0).astype(np.float32)


def _side(side: Side) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": side.name,
        "tokens": [visible(token) for token in side.tokens],
        "special": list(side.special),
        "punctuation": list(side.punctuation) or [False] * len(side.tokens),
        "words": list(side.words),
        "spelled": [visible(word) for word in side.spelled],
    }
    if side.picture:
        image = "data:image/png;base64," + base64.b64encode(side.picture.png).decode("ascii")
        facts["picture"] = {"src": image} | {name: getattr(side.picture, name) for name in ("rows", "columns", "first")}
    return facts
