"""How far the parts are from the whole, whatever the size of the whole."""

import math

import pytest
import torch

from normlens.capture import Attended, relative_error
from normlens.capture.compare import rebuild_error, relative_difference
from normlens.lens.one_pass import pass_error

SIZES = [1e-35, 1e-23, 1e-20, 1.0, 1e20, 1e25, 1e35]


def attended(size, *, off=0.0, dtype=torch.float32):
    """A block whose values have this size, and whose output is off by a share of itself."""
    generator = torch.Generator().manual_seed(0)
    weights = torch.softmax(torch.randn(1, 2, 3, 4, generator=generator), -1).to(dtype)
    values = torch.randn(1, 2, 4, 5, generator=generator).to(dtype) * size
    out_weight = torch.randn(2, 5, 6, generator=generator).to(dtype)
    output = torch.einsum("bhts,bhsd,hdm->btm", weights.double(), values.double(), out_weight.double())
    return Attended(0, "", "out", weights, values, out_weight, None, (output * (1 + off)).to(dtype))


@pytest.mark.parametrize("size", SIZES)
def test_the_error_of_a_pass_is_the_same_at_every_size(size):
    for off in (0.01, 1.0):
        expected = off / (1 + off)
        assert pass_error(attended(size, off=off)) == pytest.approx(expected, rel=1e-4)
        assert rebuild_error(attended(size, off=off)) == pytest.approx(expected, rel=1e-4)
    assert pass_error(attended(size)) < 1e-5
    assert rebuild_error(attended(size)) < 1e-6


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_double_precision_has_a_wider_range_and_keeps_it(size):
    assert pass_error(attended(size, off=1.0, dtype=torch.float64)) == pytest.approx(0.5)
    assert rebuild_error(attended(size, off=1.0, dtype=torch.float64)) == pytest.approx(0.5)
    assert pass_error(attended(size, dtype=torch.float64)) < 1e-12


@pytest.mark.parametrize("size", SIZES)
def test_outputs_that_differ_by_all_of_their_size_are_not_equal(size):
    output = torch.full((3,), size)
    assert relative_difference([output * 2], [output]) == pytest.approx(1.0)
    assert relative_difference([output], [output]) == 0.0


def test_something_beside_nothing_is_infinitely_wrong_and_nothing_beside_nothing_is_right():
    nothing = torch.zeros(3)
    assert relative_error(nothing, nothing) == 0.0
    assert relative_error(torch.full((3,), 1e-30), nothing) == float("inf")


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_what_is_not_finite_is_never_called_right(broken):
    output, other = torch.ones(3), torch.tensor([1.0, broken, 1.0])
    assert math.isnan(relative_error(other, output))
    assert math.isnan(relative_error(output, other))
    assert relative_difference([output, other], [output, output]) == float("inf")
    assert relative_difference([other, output], [output, output]) == float("inf")


def test_no_numbers_are_no_error():
    assert relative_error(torch.zeros(0), torch.zeros(0)) == 0.0
