"""Logarithmic axes are labelled whatever they span."""

import pytest

from normlens.exhibits.plots.paint import logarithmic

Figure = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed").Figure


def labels(low, high, which="y"):
    """What a logarithmic axis from low to high is labelled with."""
    figure = Figure()
    axes = figure.subplots()
    (axes.set_ylim if which == "y" else axes.set_xlim)(low, high)
    logarithmic(axes, which)
    figure.draw_without_rendering()
    axis = axes.yaxis if which == "y" else axes.xaxis
    inside = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [tick.label1.get_text() for tick in inside]


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.004, 0.09), (0.009, 0.03), (0.011, 0.013), (1e-5, 1.2e-5), (2e-7, 3e-6), (1e-9, 1), (1, 20_000), (0.9, 1.1)],
)
def test_an_axis_has_a_few_labels_whatever_it_spans(low, high):
    found = labels(low, high)
    assert 3 <= len(found) <= 8
    assert len(set(found)) == len(found)
    assert "" not in found


def test_an_axis_of_two_powers_of_ten_has_more_than_two_labels():
    assert labels(0.0017, 0.33) == ["0.003", "0.01", "0.03", "0.1", "0.3"]


def test_wide_axes_are_labelled_at_powers_of_ten_alone():
    assert labels(1, 20_000, "x") == ["1", "10", "100", "1,000", "10,000"]
