"""A figure whose numbers and tokens do not belong together is refused, with the reason."""

import numpy as np
import pytest
from jaxtyping import TypeCheckError
from view_figures import headline, panel, side, translation

from normlens.errors import NormlensError
from normlens.views import Figure, FigureError, Side, attention
from normlens.views.shares import received


def test_weighted_norms_are_weights_times_transformed_norms():
    block = headline().panels[0]
    np.testing.assert_allclose(block.weighted_norms[0, 0], [0.4, 0.8, 0.08], rtol=1e-6)


def test_every_token_has_a_flag_and_a_word():
    with pytest.raises(FigureError, match="2 tokens, 1 special flags and 2 word indices"):
        Side("text", ("a", "b"), (False,), (0, 1))


def test_norms_must_fit_the_weights():
    weights, summed = np.full((2, 3, 3), 1 / 3, dtype=np.float32), np.ones((3, 3), dtype=np.float32)
    with pytest.raises((FigureError, TypeCheckError), match="transformed_norms"):  # jaxtyping is quicker, in tests
        attention(0, "self", 0, 0, weights, np.ones((2, 4), dtype=np.float32), summed, 0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_undefined_numbers_are_refused_and_padding_is_suspected(bad):
    with pytest.raises(FigureError, match="padding"):
        panel([[[bad, 1.0]]], [[1.0, 1.0]])


def test_panels_must_fit_their_sides():
    block = panel([[[0.5, 0.5], [0.5, 0.5]]], [[1.0, 1.0]])
    with pytest.raises(FigureError, match="tgt has length 2, but side 'text' has 3 tokens"):
        Figure("t", "s", (side("a", "b", "c"),), (block,))
    with pytest.raises(FigureError, match="there are 0 sides"):
        Figure("t", "s", (), (block,))
    with pytest.raises(NormlensError, match="at least one panel"):
        Figure("t", "s", (side("a"),), ())


def test_shares_are_kept_apart_by_kind_and_side():
    """A model may read an image and a text by self-attention, of different length and with different heads."""
    sides = (side("a", "b", "c"), side("p", "q", name="image"))
    blocks = [
        panel(np.full((h, n, n), 1 / n), np.ones((h, n)), tgt=at, src=at)
        for h, n, at in ((1, 3, 0), (2, 3, 0), (4, 2, 1))
    ]
    got = received(Figure("t", "s", sides, tuple(blocks)))
    assert [(one.kind, one.side.name, one.over) for one in got] == [
        ("self", "text", "2 layers x 1 or 2 heads and all queries"),
        ("self", "image", "L0 x 4 heads and all queries"),
    ]
    assert [one.kind for one in received(translation())] == ["encoder", "decoder", "cross"]


def test_shares_add_up_to_one_and_show_the_headline():
    (got,) = received(headline())
    np.testing.assert_allclose(got.weight, [0.1, 0.1, 0.8], rtol=1e-5)
    np.testing.assert_allclose(got.norm.sum(), 1, rtol=1e-6)
    assert got.norm[2] < 0.07


def test_a_block_that_moves_nothing_has_no_shares():
    figure = Figure("t", "s", (side("a", "b"),), (panel([[[0.5, 0.5], [0.5, 0.5]]], [[0.0, 0.0]]),))
    np.testing.assert_array_equal(received(figure)[0].norm, [0, 0])
