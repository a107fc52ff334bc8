"""The numbers of a figure as few bytes, for a page that carries its own data.

Room: figure to bytes. No HTML; the reader of these bytes is assets/data.js.

Each head's weights, and each block's summed norms, become one byte per cell against their own largest value `scale`:

    code = round(255·√(value / scale))        value ≈ scale·(code / 255)²

The square root spends the steps on small values, where a head that spends nearly all its weight on [SEP] keeps
everything else; no cell is off by more than scale/255. Scales and ‖f(x)‖ stay 32-bit floats, ‖αf(x)‖ is derived.
The stream is, little-endian: for each panel its scales (one per head, one for the sum) and ‖f(x)‖; then for each
panel the codes of the weights and of the summed norms; all of it zlib-compressed.
"""

import base64
import zlib

import numpy as np
from jaxtyping import Float, Float32, UInt8

from normlens.views.figure import Figure
from normlens.views.glyphs import visible

STEPS = 255


def payload(figure: Figure) -> dict[str, object]:
    """The figure as JSON-ready data; tokens are made visible, numbers packed."""
    floats, codes = [], []
    for panel in figure.panels:
        weights, scales = quantise(panel.weights)
        summed, scale = quantise(panel.summed_norms[None])
        floats += [scales, scale, panel.transformed_norms.astype("<f4").ravel()]
        codes += [weights.ravel(), summed.ravel()]
    numbers = np.concatenate(floats).astype("<f4")
    raw = numbers.tobytes() + np.concatenate(codes).tobytes()
    return {
        "signature": figure.signature,
        "sides": [
            {"name": side.name, "tokens": [visible(token) for token in side.tokens], "special": list(side.special)}
            for side in figure.sides
        ],
        "panels": [
            {
                "name": panel.name,
                "kind": panel.kind,
                "tgt": panel.tgt,
                "src": panel.src,
                "heads": panel.heads,
                "error": float(panel.error),
            }
            for panel in figure.panels
        ],
        "floats": len(numbers),
        "size": len(raw),
        "data": base64.b64encode(zlib.compress(raw, 6)).decode("ascii"),
    }


def quantise(
    values: Float[np.ndarray, "map tgt src"],
) -> tuple[UInt8[np.ndarray, "map tgt src"], Float32[np.ndarray, " map"]]:
    """One byte per cell and one scale per map."""
    scales = values.max(axis=(1, 2), initial=0.0).astype(np.float32)
    parts = values / np.where(scales > 0, scales, 1)[:, None, None]
    return np.rint(STEPS * np.sqrt(np.clip(parts, 0, 1))).astype(np.uint8), scales
