"""What a look shows, against loops that do the same slowly; what it cannot show is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from view_figures import headline, panel, random_figure, side, translation

from normlens.views import Figure, FigureError, Look
from normlens.views.shown import cells, shown

TOKENS = ("[CLS]", "un", "##like", "##ly", "tale", ",", "true", ".", "[SEP]")
GROUPS = ([0], [1, 2, 3], [4], [5], [6], [7], [8])


def slowly(figure: Figure, name: str, layers, heads, *, words: bool, keep, rescale: bool) -> list[list[float]]:
    """Row by row and cell by cell, from the definition."""
    groups = GROUPS if words else [[at] for at in range(len(TOKENS))]
    rows = []
    for group in groups:
        row = []
        for source in groups:
            total = 0.0
            for layer in layers:
                for head in heads:
                    block = figure.panels[layer]
                    for i in group:
                        for j in source:
                            value = (
                                block.values(name)[head, i, j] if name != "summed_norms" else block.summed_norms[i, j]
                            )
                            total += float(value) / (len(layers) * len(heads) * len(group))
            row.append(total)
        rows.append(row)
    kept = [place for place, group in enumerate(groups) if keep(group)]
    left = []
    for place in kept:
        row = [rows[place][column] for column in kept]
        factor = sum(rows[place]) / sum(row) if rescale else 1
        left.append([factor * value for value in row])
    return left


@given(
    name=st.sampled_from(["weights", "weighted_norms", "summed_norms"]),
    layers=st.sampled_from([(0,), (1,), (0, 1)]),
    heads=st.sampled_from([(0,), (0, 2), (0, 1, 2)]),
    words=st.booleans(),
    hide=st.sampled_from([(), ("special",), ("punctuation",), ("special", "punctuation")]),
    rescale=st.booleans(),
)
def test_a_look_is_means_then_words_then_what_is_left(name, layers, heads, words, hide, rescale):
    figure = random_figure(*TOKENS)
    gone = {"special": {0, 8}, "punctuation": {5, 7}}
    out = set().union(*(gone[one] for one in hide))
    expected = slowly(
        figure, name, layers, heads, words=words, keep=lambda group: not set(group) <= out, rescale=rescale
    )
    unit = "words" if words else "tokens"
    look = Look().changed(layers=layers, heads=heads, measures=name, unit=unit, hide=hide, rescale=rescale)
    (got,) = shown(figure, look)
    np.testing.assert_allclose(got.values, expected, rtol=1e-5)
    assert got.top == pytest.approx(np.max(expected), rel=1e-5)
    assert len(got.rows) == len(got.columns) == len(expected)


def test_hiding_everything_hides_nothing():
    figure = random_figure("[CLS]", "[SEP]")
    (got,) = shown(figure, Look(hide=("special",), measures=("weights",)))
    assert [token.label for token in got.rows] == ["[CLS]", "[SEP]"]


def test_the_strip_of_norms_has_a_row_per_head():
    figure = random_figure(*TOKENS)
    (got,) = shown(figure, Look(measures=("transformed_norms",), unit="words"))
    assert got.strip
    assert [token.label for token in got.rows] == ["H0", "H1", "H2"]
    np.testing.assert_allclose(got.values[:, 1], figure.panels[0].transformed_norms[:, 1:4].mean(axis=1), rtol=1e-6)


def test_a_grid_has_every_head_and_for_the_sum_every_layer():
    figure = random_figure(*TOKENS)
    grid = cells(figure, Look(view="grid", measures=("weights", "summed_norms"), heads=(0, 2)))
    assert list(grid["weights"]) == [(0, 0), (0, 2), (1, 0), (1, 2)]
    assert list(grid["summed_norms"]) == [(0, None), (1, None)]
    np.testing.assert_array_equal(grid["weights"][1, 2].values, figure.panels[1].weights[2])


def test_a_shared_scale_is_that_of_the_largest_cell_of_all():
    figure = random_figure(*TOKENS)
    (got,) = shown(figure, Look(heads=(1,), measures=("weights",), scale="shared"))
    assert got.top == max(block.weights.max() for block in figure.panels)
    (mean,) = shown(figure, Look(measures=("weights",), scale="shared"))
    assert mean.top == pytest.approx(max(block.weights.mean(axis=0).max() for block in figure.panels))


def test_what_suits_the_view_is_filled_in():
    figure = random_figure(*TOKENS, layers=3)
    look = Look().resolved(figure)
    assert (look.kind, look.layers, look.measures) == ("self", (1,), ("weights", "summed_norms"))
    assert Look(view="grid").resolved(figure).layers == (0, 1, 2)
    assert Look(heads=(2,)).resolved(figure).measures == ("weights", "weighted_norms")
    assert Look().resolved(translation()).kind == "cross"


@pytest.mark.parametrize(
    ("look", "told"),
    [
        ({"view": "pie"}, "no view 'pie' (use heat, lines, grid, bars, picture)"),
        ({"layers": 7}, "no layer 7: the model has layer 0."),
        ({"heads": (0, 4)}, "no head 4: self attention has head 0"),
        ({"measures": "rollout"}, "no measure 'rollout' (use weights, transformed_norms"),
        ({"hide": "nouns"}, "(use special, punctuation)"),
        ({"kind": "cross"}, "no kind 'cross' (use self)"),
        ({"view": "picture"}, "there is no picture"),
        ({"pin": ("tgt", 3)}, "pin: no token 3: tgt has tokens 0 to 2"),
        ({"pin": "dog"}, "pin: no token 'dog'.\n  Do: use one of a cat"),
        ({"pin": ("tgt", "cat")}, "give a token, its number, or ('tgt' or 'src', its number)"),
        ({"colour": "red"}, "no option 'colour' (use"),
    ],
)
def test_a_look_at_what_is_not_there_is_refused(look, told):
    with pytest.raises(FigureError) as refused:
        headline().looking(**look)
    assert told in str(refused.value)


def test_a_token_can_be_pinned_by_its_name_its_number_or_its_word():
    assert headline().looking(pin="cat").look.pin == ("tgt", 1)
    assert headline().looking(pin=2).look.pin == ("tgt", 2)
    assert headline().looking(pin=["src", np.int64(0)]).look.pin == ("src", 0)
    figure = random_figure(*TOKENS)
    words = replace(figure.sides[0], spelled=("unlikely", "tale", ",", "true", "."))
    assert replace(figure, sides=(words,)).looking(pin="unlikely").look.pin == ("tgt", 1)


def test_whole_numbers_of_other_libraries_are_whole_numbers():
    assert random_figure(*TOKENS).looking(layers=np.int64(1), heads=np.arange(2)).look.heads == (0, 1)


def test_layers_without_the_chosen_head_are_left_out():
    sizes = ((1, 0), (3, 1))
    blocks = tuple(panel(np.full((h, 2, 2), 0.5), np.ones((h, 2)), layer=n) for h, n in sizes)
    figure = Figure("t", "s", (side("a", "b"),), blocks)
    (got,) = shown(figure, Look(layers=(0, 1), heads=(2,), measures=("weights",)))
    assert got.where == "L1H2"
    with pytest.raises(FigureError, match="no head 2 in layer 0"):
        shown(figure, Look(layers=(0,), heads=(2,)))


def test_any_named_map_can_be_shown():
    figure = headline().with_maps({"rollout": [np.eye(3)], "mine": [np.ones((1, 3, 3))]})
    assert figure.panels[0].measures[-2:] == ("rollout", "mine")
    got = shown(figure, Look(measures=("rollout", "mine")))
    np.testing.assert_array_equal(got[0].values, np.eye(3))
    assert got[0].where == "L0"
    with pytest.raises(FigureError, match="map 'rollout': 2 arrays for 1 panels"):
        headline().with_maps({"rollout": [None, None]})
    with pytest.raises(FigureError, match=r"rollout has shape \(2, 2\)"):
        headline().with_maps({"rollout": [np.eye(2)]})
