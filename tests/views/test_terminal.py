"""The terminal views, to the letter for tiny cases, and never wider than asked."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from view_figures import headline, panel, random_figure, side, translation

from normlens.measures import DEFAULT
from normlens.views.figure import Figure, FigureError
from normlens.views.glyphs import width
from normlens.views.text import heatmap, summary

# Written by hand: weights 0.1 0.1 0.8 / 0.2 0.2 0.6 / 0 0 1 against the largest, 1, in five shades.
WEIGHTS = """\
self-attention L0H0  α

          [
          S
        c E
        a P
      a t ]
a         ▓▓
cat   ░░░░▒▒
[SEP]     ██

scale 0 [ ░▒▓█] 1 (the largest cell of this map)  rows: queries, columns: keys
"""

# By hand: weights times 4, 8 and 0.1; the largest is 0.2·8 = 1.6.
WEIGHTED = """\
self-attention L0H0  ‖αf(x)‖

          [
          S
        c E
        a P
      a t ]
a     ░░▒▒
cat   ▒▒██
[SEP]

scale 0 [ ░▒▓█] 1.6 (the largest cell of this map)  rows: queries, columns: keys
"""

# By hand: the attention received is the column mean 0.1 0.1 0.8; Σ‖αf‖ is 1.2, 2.4, 0.24 of 3.84.
SUMMARY = """\
a cat

self-attention, mean over L0 x 1 head and all queries
token  attention received       norm ‖f(x)‖              share of contributions ‖αf(x)‖
a       10.0% ██                     4 ████████           31.2% ██████▎
cat     10.0% ██                     8 ████████████████   62.5% ████████████▌
[SEP]   80.0% ████████████████     0.1 ▎                   6.2% █▎
[SEP] receives 80 % of the attention and makes 6.2 % of the contributions.

model:hand | v0
"""


def test_the_weights_as_a_map():
    assert heatmap(headline(), panel=0, head=0, measure="weights", color=False, width=80) == WEIGHTS


def test_the_weighted_norms_as_a_map():
    assert heatmap(headline(), panel=0, head=0, measure="weighted_norms", color=False, width=80) == WEIGHTED


def test_the_summary():
    assert summary(headline()) == SUMMARY


def test_colour_changes_the_cells_and_is_always_switched_off_again():
    drawn = heatmap(headline(), panel=0, head=None, measure="weights", color=True, width=80)
    assert "\x1b[48;5;229m  \x1b[0m" in drawn
    for line in drawn.splitlines():
        assert line.count("\x1b[48") == line.count("\x1b[0m")


def test_transformed_norms_have_a_row_per_head():
    figure = random_figure("a", "b", heads=3)
    drawn = heatmap(figure, panel=1, head=None, measure="transformed_norms", color=False, width=80)
    assert [line[:2] for line in drawn.splitlines() if line.startswith("H")] == ["H0", "H1", "H2"]


def test_a_long_text_is_cut_in_the_middle_and_says_so():
    figure = random_figure("[CLS]", *(f"w{n}" for n in range(300)), "[SEP]", layers=1, heads=1)
    drawn = heatmap(figure, panel=0, head=0, measure="weights", color=False, width=60)
    lines = drawn.splitlines()
    assert max(map(len, lines)) < 90
    assert max(len(line) for line in lines if not re.match("scale|self|[0-9]", line)) <= 60
    assert any(line.startswith("[CLS]") for line in lines)
    assert any(line.startswith("[SEP]") for line in lines)
    assert "276 of 302 columns left out of the middle (width 60)" in drawn
    assert "276 of 302 rows left out of the middle (width 60)" in drawn
    assert "239 tokens left out" in summary(figure)


def test_each_kind_of_attention_has_its_table():
    text = summary(translation())
    assert [kind in text for kind in ("encoder, mean", "decoder, mean", "cross-attention, mean")] == [True] * 3


@given(st.lists(st.text(max_size=10), min_size=1, max_size=6), st.sampled_from(DEFAULT), st.booleans())
def test_columns_line_up_whatever_the_tokens_hold(tokens, measure, color):
    """With all cells equal each row ends at the same place."""
    weights = np.full((1, len(tokens), len(tokens)), 1 / len(tokens))
    figure = Figure("t", "s", (side(*tokens),), (panel(weights, np.ones((1, len(tokens)))),))
    drawn = heatmap(figure, panel=0, head=None, measure=measure, color=color, width=60)
    plain = re.sub("\x1b\\[[0-9;]*m  \x1b\\[0m", "██", drawn)
    rows = [line for line in plain.split("\n") if line.endswith("██" * len(tokens))]
    assert len(rows) == (1 if measure == "transformed_norms" else len(tokens))
    assert len({width(line) for line in rows}) == 1
    headers = plain.split("\n")[2 : plain.split("\n").index(rows[0])]
    assert headers
    assert all(width(line) <= width(rows[0]) for line in headers)
    summary(figure).encode("utf-8")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"panel": 5}, "no panel 5: the figure has panels 0 to 0"),
        ({"head": 9}, "no head 9: self attention has head 0"),
        ({"head": 0, "measure": "summed_norms"}, "Do: head=None"),
    ],
)
def test_what_is_not_there_is_refused(choice, message):
    arguments = {"panel": 0, "head": None, "measure": "weights", "color": False, "width": 80} | choice
    with pytest.raises(FigureError, match=message):
        heatmap(headline(), **arguments)
