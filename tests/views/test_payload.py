"""The packed numbers, unpacked again in Python as assets/data.js does it."""

import base64
import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from view_figures import random_figure, translation

from normlens.views.figure import Figure
from normlens.views.payload import payload, quantise


def unpack(packed: dict):
    raw = zlib.decompress(base64.b64decode(packed["data"]))
    assert len(raw) == packed["size"]
    floats = np.frombuffer(raw, dtype="<f4", count=packed["floats"])
    codes, blocks = np.frombuffer(raw, dtype=np.uint8, offset=4 * packed["floats"]), []
    for panel in packed["panels"]:
        heads = panel["heads"]
        tgt, src = (len(packed["sides"][panel[axis]]["tokens"]) for axis in ("tgt", "src"))
        scales, floats = floats[: heads + 1], floats[heads + 1 :]
        norms, floats = floats[: heads * src].reshape(heads, src), floats[heads * src :]
        blocks.append([tgt, src, heads, scales, norms])
    for block in blocks:
        tgt, src, heads, scales, _ = block
        cells, codes = codes[: heads * tgt * src].reshape(heads, tgt, src), codes[heads * tgt * src :]
        total, codes = codes[: tgt * src].reshape(tgt, src), codes[tgt * src :]
        block += [scales[:-1, None, None] * (cells / 255) ** 2, scales[-1] * (total / 255) ** 2]
    assert not len(floats)
    assert not len(codes)
    return blocks


def assert_comes_back(figure: Figure):
    for panel, (_, _, _, _, norms, weights, summed) in zip(figure.panels, unpack(payload(figure)), strict=True):
        np.testing.assert_array_equal(norms, panel.transformed_norms)
        assert (abs(weights - panel.weights) <= panel.weights.max(axis=(1, 2), keepdims=True) / 255).all()
        assert (abs(summed - panel.summed_norms) <= panel.summed_norms.max() / 255).all()


def test_all_panels_come_back():
    assert_comes_back(translation())
    assert_comes_back(random_figure(*"abcdefg", layers=3, heads=5))


@given(st.lists(st.floats(0, 1e6, width=32), min_size=1, max_size=40))
def test_no_cell_is_off_by_more_than_a_255th_of_the_largest(values):
    values = np.asarray(values, dtype=np.float32).reshape(1, 1, -1)
    codes, scales = quantise(values)
    restored = scales.astype(np.float64)[:, None, None] * (codes / 255) ** 2
    assert (abs(restored - values) <= values.max() / 255 * (1 + 1e-6)).all()


def test_a_small_weight_beside_a_large_one_is_kept():
    """Why the square root: equal steps would store 0.001 as 0."""
    codes, scales = quantise(np.asarray([[[0.95, 0.001]]], dtype=np.float32))
    assert abs(scales[0] * (codes[0, 0, 1] / 255) ** 2 - 0.001) < 1.5e-4
