"""A block whose weights may be below 0 (a filter on attention, a difference of two softmaxes) is drawn as it is."""

import numpy as np
import pytest
from view_figures import random_figure, signed_figure

from normlens.views import Figure, FigureError, attention, heatmap, packed, received, summary
from normlens.views.bars import bars
from normlens.views.shown import shown

TOKENS = ("[CLS]", "a", "cat", "[SEP]")


def test_weights_below_zero_are_signed_and_no_norm_is():
    for block in signed_figure(*TOKENS).panels:
        assert {one.name for one in block.maps if one.signed} == {"weights"}
        assert (block.weights < 0).any()
        assert not block.map("weighted_norms").signed
        np.testing.assert_array_equal(
            block.weighted_norms, abs(block.weights) * block.values("transformed_norms")[:, None]
        )


def test_norms_below_zero_are_still_refused():
    weights, norms = np.ones((1, 2, 2), np.float32), np.ones((1, 2), np.float32)
    with pytest.raises(FigureError, match="transformed_norms"):
        attention(0, "self", 0, 0, weights, -norms, weights[0], 0.0)


def test_weights_that_are_signed_in_one_block_are_signed_in_all():
    signed, plain = signed_figure(*TOKENS, layers=1), random_figure(*TOKENS)
    for panels in ((signed.panels[0], plain.panels[1]), (plain.panels[0], plain.panels[1])):
        figure = Figure("t", "s", plain.sides, panels)
        assert len({panel.map("weights").signed for panel in figure.panels}) == 1
    mean = shown(Figure("t", "s", plain.sides, (plain.panels[1], signed.panels[0])).looking(layers=(0, 1)))
    assert [one.signed for one in mean] == [True, False]


def test_it_is_not_called_a_difference():
    figure = signed_figure(*TOKENS)
    assert not figure.difference
    assert figure.minus(random_figure(*TOKENS)).difference
    assert packed(figure).header["difference"] is False
    assert "norm ‖f(x)‖" in summary(figure)


def test_shares_of_norms_count_sizes_and_weights_keep_their_signs():
    figure = signed_figure(*TOKENS, layers=1)
    (block,), (got,) = figure.panels, received(figure)
    np.testing.assert_allclose(got.weight, block.weights.mean(axis=(0, 1)), rtol=1e-6)
    np.testing.assert_allclose(got.norm, block.weighted_norms.sum(axis=(0, 1)) / block.weighted_norms.sum(), rtol=1e-5)
    assert (got.norm >= 0).all()
    assert "of the attention" not in summary(figure)  # there is no whole to have a share of
    weights, norms = bars(figure.looking(view="bars"))
    assert (weights.unit, norms.unit) == ("value", "share")


def test_the_terminal_marks_cells_below_zero():
    weights = np.array([[[1.0, -1.0], [0.5, -0.5]]], np.float32)
    block = attention(0, "self", 0, 0, weights, np.ones((1, 2), np.float32), abs(weights[0]), 0.0)
    figure = Figure("t", "s", (random_figure("a", "b").sides[0],), (block,))
    text = heatmap(figure, panel=0, head=0, measure="weights", color=False, width=80)
    assert "a ██-█" in text
    assert "b ▒▒-▒" in text
    assert "below 0" in text
    assert "below 0" not in heatmap(figure, panel=0, head=0, measure="weighted_norms", color=False, width=80)
    lines = heatmap(figure, panel=0, head=0, measure="weights", color=True, width=80).splitlines()
    cells = next(line for line in lines if line.startswith("a ")).split("\x1b[48;5;")[1:]
    assert len({cell.split("m")[0] for cell in cells}) == 2


def test_the_table_has_no_bar_for_a_mean_below_zero():
    weights = np.array([[[1.0, -1.0], [1.0, -1.0]]], np.float32)
    block = attention(0, "self", 0, 0, weights, np.ones((1, 2), np.float32), abs(weights[0]), 0.0)
    text = summary(Figure("t", "s", (random_figure("a", "b").sides[0],), (block,)))
    row = next(line for line in text.splitlines() if line.startswith("b "))
    assert row.split("-100.0%")[1].split()[0] == "1"


@pytest.mark.parametrize("look", ["heat", "lines", "grid", "bars"])
def test_every_view_draws_it(look, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    figure = signed_figure(*TOKENS).looking(view=look, measures=("weights", "weighted_norms", "summed_norms"))
    assert figure.looking(hide="special", rescale=True).save(tmp_path / "signed.svg").stat().st_size
    assert figure.save(tmp_path / "signed.html").stat().st_size
