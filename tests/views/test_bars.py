"""One number per token: shares of attention and contributions, and values where there is no total."""

from dataclasses import replace

import numpy as np
import pytest
from view_figures import headline, random_figure

from normlens.views.bars import bars

BOTH = ("weights", "weighted_norms")


def test_a_token_can_receive_the_attention_and_contribute_nothing():
    weight, moved = bars(headline().looking(view="bars", measures=BOTH))
    np.testing.assert_allclose(weight.values, [0.1, 0.1, 0.8], rtol=1e-6)
    np.testing.assert_allclose(moved.values, [0.3125, 0.625, 0.0625], rtol=1e-6)
    assert weight.top == moved.top == pytest.approx(0.8)


def test_a_pinned_query_has_shares_of_keys_and_a_pinned_key_of_queries():
    (taken,) = bars(headline().looking(view="bars", measures="weights", pin=("tgt", 1)))
    assert taken.what == "keys of the pin"
    np.testing.assert_allclose(taken.values, [0.2, 0.2, 0.6], rtol=1e-6)
    (takers,) = bars(headline().looking(view="bars", measures="weights", pin=("src", 0)))
    assert takers.what == "queries of the pin"
    np.testing.assert_allclose(takers.values, [1 / 3, 2 / 3, 0], atol=1e-6)


def test_hiding_a_token_changes_no_share_unless_rows_are_rescaled():
    look = {"view": "bars", "measures": "weights", "hide": "special"}
    (left,) = bars(headline().looking(**look))
    np.testing.assert_allclose(left.values, [0.15, 0.15], rtol=1e-6)  # rows of special tokens are out of sight too
    (rescaled,) = bars(headline().looking(**look, rescale=True))
    np.testing.assert_allclose(rescaled.values, [0.5, 0.5], rtol=1e-6)


def test_lengths_are_means_over_heads_whatever_is_pinned():
    figure = random_figure("a", "b", "[SEP]")
    for pin in (None, ("tgt", 1), ("src", 1)):
        (one,) = bars(figure.looking(view="bars", layers=1, measures="transformed_norms", pin=pin))
        np.testing.assert_allclose(one.values, figure.panels[1].transformed_norms.mean(axis=0), rtol=1e-6)
        assert one.unit == "value"


def test_the_first_measure_decides_the_order():
    weight, moved = bars(headline().looking(view="bars", measures=BOTH, order="size"))
    assert [token.label for token in weight.tokens] == [token.label for token in moved.tokens] == ["[SEP]", "a", "cat"]
    assert list(weight.values) == sorted(weight.values, reverse=True)


def test_a_difference_keeps_its_sign():
    here, there = (random_figure("a", "b", "c", seed=seed) for seed in (1, 2))
    (one,) = bars(here.minus(there).looking(view="bars", measures="weights", layers=0))
    expected = (here.panels[0].weights - there.panels[0].weights).mean(axis=(0, 1))
    np.testing.assert_allclose(one.values, expected, atol=1e-6)
    assert one.top == pytest.approx(np.abs(expected).max(), rel=1e-4)


def test_a_block_that_contributes_nothing_has_no_shares():
    figure = headline()
    still = replace(figure.panels[0].maps[1], values=np.zeros((1, 3), np.float32))
    panel = replace(figure.panels[0], maps=(figure.panels[0].maps[0], still, figure.panels[0].map("weighted_norms")))
    (one,) = bars(replace(figure, panels=(panel,)).looking(view="bars", measures="weighted_norms"))
    assert list(one.values) == [0, 0, 0]
