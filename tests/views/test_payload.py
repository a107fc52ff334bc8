"""The packed numbers, unpacked again in Python as assets/data.js does it."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from view_figures import panel, random_figure, side, signed_figure, translation

from normlens.views import Figure, exact, packed
from normlens.views.payload import quantise

TYPES = {"float32": "<f4", "root8": np.uint8, "linear16": "<i2"}


def unpack(figure: Figure) -> list[dict[str, np.ndarray]]:
    """The maps of each panel, ‖αf(x)‖ included."""
    pack = packed(figure)
    blocks = []
    for told, chunk in zip(pack.header["panels"], pack.chunks, strict=False):
        raw = zlib.decompress(chunk)
        lengths = {"head": len(told["heads"])}
        lengths |= {axis: len(pack.header["sides"][told[axis]]["tokens"]) for axis in ("tgt", "src")}
        maps, entries = {}, {entry["name"]: entry for entry in told["maps"]}
        for entry in sorted(entries.values(), key=lambda entry: entry["coding"] != "float32"):
            if entry["coding"] == "product":
                continue
            shape = [lengths[axis] for axis in entry["axes"].split()]
            codes = np.frombuffer(raw, TYPES[entry["coding"]], int(np.prod(shape)), entry["at"]).reshape(shape)
            scales = (
                np.reshape(entry["scales"], [-1] + [1] * (len(shape) - 1)) if len(shape) == 3 else entry["scales"][0]
            )
            derived = entries.get("weighted_norms", {}).get("coding") == "product"
            if entry["name"] == "weights" and entry["coding"] != "float32" and derived:
                product = np.asarray(entries["weighted_norms"]["scales"])[:, None]
                norms = maps["transformed_norms"]
                columns = np.where(norms * scales[:, 0] > product, product / norms, scales[:, 0])
                scales = columns[:, None, :]
            maps[entry["name"]] = {
                "float32": lambda codes, scales: codes,
                "root8": lambda codes, scales: scales * (codes / 255) ** 2,
                "linear16": lambda codes, scales: scales * codes / 32767,
            }[entry["coding"]](codes, scales)
        if "weighted_norms" in entries and "weighted_norms" not in maps:
            maps["weighted_norms"] = abs(maps["weights"]) * maps["transformed_norms"][:, None, :]
        blocks.append(maps)
    return blocks


def large() -> Figure:
    return random_figure(*(f"t{n}" for n in range(90)), layers=4, heads=14)


def parked() -> Figure:
    """As real models do it: the first token receives nearly all the attention, and its ‖f(x)‖ is small."""
    random = np.random.default_rng(3)
    weights = random.dirichlet(np.full(120, 0.3), size=(30, 120)) * 0.05
    weights[..., 0] += 0.95
    norms = random.gamma(4, 1, size=(30, 120))
    norms[:, 0] = 0.02
    return Figure("t", "s", (side(*(f"t{n}" for n in range(120))),), (panel(weights, norms),))


@pytest.mark.parametrize("make", [translation, lambda: random_figure(*"abcdefg", layers=3, heads=5)])
def test_a_small_figure_is_not_rounded(make):
    assert packed(make()).header["exact"]
    for block, maps in zip(make().panels, unpack(make()), strict=True):
        for name in ("weights", "transformed_norms", "summed_norms"):
            np.testing.assert_array_equal(maps[name], block.values(name))


@pytest.mark.parametrize("make", [large, parked])
def test_in_a_large_figure_no_cell_of_any_measure_is_off_by_more_than_a_255th_of_its_panels_largest(make):
    figure = make()
    assert not packed(figure).header["exact"]
    for block, maps in zip(figure.panels, unpack(figure), strict=True):
        np.testing.assert_array_equal(maps["transformed_norms"], block.transformed_norms)
        for name in ("weights", "weighted_norms"):
            values = block.values(name)
            allowed = values.max(axis=(1, 2), keepdims=True) / 255 * (1 + 1e-5)
            assert (abs(maps[name] - values) <= allowed).all(), name
        assert (abs(maps["summed_norms"] - block.summed_norms) <= block.summed_norms.max() / 255 * (1 + 1e-5)).all()


def test_a_pinned_token_has_its_exact_numbers_in_the_figure():
    figure = large().looking(pin=("tgt", 7), layers=2)
    pack = packed(figure)
    assert pack.header["pins"] == [{"kind": "self", "axis": "tgt", "at": 7}]
    numbers = np.frombuffer(zlib.decompress(pack.chunks[-1]), "<f4").reshape(4, -1)
    for index, block in enumerate(figure.panels):
        weights, summed = np.split(numbers[index], [14 * 90])
        np.testing.assert_array_equal(weights.reshape(14, 90), block.weights[:, 7])
        np.testing.assert_array_equal(summed, block.summed_norms[7])
        assert numbers[index].tobytes() == exact(figure, index, "tgt", 7)
    column = np.frombuffer(exact(figure, 1, "src", 3), "<f4")
    np.testing.assert_array_equal(column[: 14 * 90].reshape(14, 90), figure.panels[1].weights[:, :, 3])


def test_a_difference_is_kept_to_sixteen_bits():
    figure = large().minus(random_figure(*(f"t{n}" for n in range(90)), layers=4, heads=14, seed=1))
    for block, maps in zip(figure.panels, unpack(figure), strict=True):
        for name in ("weights", "weighted_norms", "summed_norms"):
            values = block.values(name)
            np.testing.assert_allclose(maps[name], values, atol=float(abs(values).max()) / 30000)
            assert (values < 0).any()


@given(st.lists(st.floats(0, 1e6, width=32), min_size=1, max_size=40))
def test_no_cell_is_off_by_more_than_a_255th_of_the_largest(values):
    values = np.asarray(values, dtype=np.float32).reshape(1, 1, -1)
    scales = values.max(axis=(1, 2)).reshape(1, 1)
    restored = scales.astype(np.float64)[:, None] * (quantise(values, scales, "root8") / 255.0) ** 2
    assert (abs(restored - values) <= values.max() / 255 * (1 + 1e-6)).all()


def test_a_small_weight_beside_a_large_one_is_kept():
    """Why the square root: equal steps would store 0.001 as 0."""
    codes = quantise(np.asarray([[[0.95, 0.001]]], np.float32), np.asarray([[0.95]], np.float32), "root8")
    assert abs(0.95 * (codes[0, 0, 1] / 255) ** 2 - 0.001) < 1.5e-4


def test_signed_weights_and_the_norms_derived_from_them_are_as_true_as_16_bits():
    figure = signed_figure(*(f"t{n}" for n in range(90)), layers=4, heads=14)
    assert not packed(figure).header["exact"]
    for block, maps in zip(figure.panels, unpack(figure), strict=True):
        for name in ("weights", "weighted_norms"):
            true, largest = block.values(name), abs(block.values(name)).max(axis=(1, 2), keepdims=True)
            assert (abs(maps[name] - true) <= largest / 65534 * 1.01).all()
        assert (maps["weighted_norms"] >= 0).all()
