"""One figure minus another: what has a partner is compared, what has none is named."""

from dataclasses import replace

import numpy as np
import pytest
from view_figures import headline, random_figure, translation

from normlens.views import FigureError, summary
from normlens.views.shown import shown


def test_a_figure_minus_itself_is_zero_everywhere():
    for figure in (random_figure("a", "b", "c"), translation()):
        nothing = figure.minus(figure)
        assert nothing.difference
        assert all((one.values == 0).all() for panel in nothing.panels for one in panel.maps)
        assert nothing.title == figure.title
        assert "left out" not in nothing.note


def test_texts_of_one_length_are_compared_by_position_and_both_tokens_are_written():
    first, second = random_figure("the", "nurse", "he"), random_figure("the", "nurse", "she", seed=1)
    both = first.minus(second)
    assert both.sides[0].tokens == ("the", "nurse", "he│she")
    for name in ("weights", "transformed_norms", "weighted_norms", "summed_norms"):
        values = first.panels[1].values(name) - second.panels[1].values(name)
        np.testing.assert_array_equal(both.panels[1].values(name), values)
    assert both.panels[0].map("weights").label == "Δ α"


def test_texts_of_different_length_are_compared_where_they_share_tokens():
    first, second = random_figure("a", "b", "c"), random_figure("a", "x", "b", "c", seed=1)
    both = first.minus(second)
    assert both.sides[0].tokens == ("a", "b", "c")
    assert "1 token of side 'text' without a partner left out" in both.note
    there = second.panels[0].weights[:, [0, 2, 3]][:, :, [0, 2, 3]]
    np.testing.assert_array_equal(both.panels[0].weights, first.panels[0].weights - there)


def test_models_with_different_heads_are_compared_by_their_means():
    first, second = random_figure("a", "b", heads=2), random_figure("a", "b", heads=5, layers=3)
    both = first.minus(second)
    assert [panel.measures for panel in both.panels] == [("weights", "weighted_norms", "summed_norms")] * 2
    expected = first.panels[0].weights.mean(axis=0) - second.panels[0].weights.mean(axis=0)
    np.testing.assert_allclose(both.panels[0].values("weights"), expected, atol=1e-7)
    assert "heads differ in number (2 and 5), so their means are compared" in both.note
    assert "1 block of only one of the two left out" in both.note
    assert shown(both)[0].values.shape == (2, 2)


def test_nothing_in_common_is_refused():
    with pytest.raises(FigureError, match="no token of side 'text' in common"):
        random_figure("a", "b").minus(random_figure("x", "y", "z"))
    with pytest.raises(FigureError, match="no attention block in common"):
        random_figure("a", "b").minus(random_figure("a", "b", kind="encoder"))


def test_the_largest_changes_are_told_in_words():
    first, second = headline(), random_figure("a", "cat", "[SEP]", layers=1, heads=1)
    text = summary(first.minus(second))
    values = first.panels[0].weights[0] - second.panels[0].weights[0]
    row, column = np.unravel_index(np.abs(values).argmax(), values.shape)
    tokens = ("a", "cat", "[SEP]")
    assert f"{values[row, column]:+.3g}  self L0: query {tokens[row]}, key {tokens[column]}" in text
    assert "Difference: red is more in the first" in text


def test_a_difference_is_never_rescaled():
    """Its rows add up to nothing in particular: differences of weights to 0."""
    first, second = random_figure("[CLS]", "a", "b"), random_figure("[CLS]", "a", "c", seed=1)
    look = {"heads": 0, "layers": 0, "measures": "weights", "hide": "special"}
    plain, asked = (shown(first.minus(second).looking(rescale=rescale, **look))[0] for rescale in (False, True))
    np.testing.assert_array_equal(plain.values, asked.values)
    assert abs(plain.values).max() > 0.01


def test_words_of_a_difference_are_spelled_and_both_are_written_where_they_differ():
    def spelled(*tokens, words, seed=0):
        figure = random_figure(*tokens, seed=seed)
        return replace(figure, sides=(replace(figure.sides[0], spelled=words),))

    first = spelled("un", "##likely", "fox", words=("unlikely", "fox"))
    second = spelled("un", "##likely", "cat", words=("unlikely", "cat"), seed=1)
    (got,) = shown(first.minus(second).looking(unit="words", measures="weights"))
    assert [token.label for token in got.columns] == ["unlikely", "fox│cat"]


def test_a_single_head_of_a_difference_brings_the_contributions_of_that_head():
    both = random_figure("a", "b").minus(random_figure("a", "b", seed=1))
    assert [one.name for one in shown(both.looking(heads=1))] == ["weights", "weighted_norms"]
    assert [one.name for one in shown(both)] == ["weights", "summed_norms"]
