"""Figures of every type are drawn from plain data, the same every time, whatever their numbers and names."""

import re

import numpy as np
import pytest

from normlens.exhibits import (
    Bar,
    Bars,
    Cloud,
    Edge,
    Graph,
    Grid,
    Grids,
    LinePanel,
    Lines,
    Node,
    Scatter,
    ScatterPanel,
    Series,
    Strip,
    StripPanel,
    Thumbnails,
    draw,
    hatched,
    slug,
    top_of,
)

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
NAN = np.nan
SAID = "caption", "alt"
RISING = np.array([0.1, NAN, 0.3])
FIGURES = {
    "lines": Lines(
        "f", *SAID, (LinePanel("left", (Series("$a", RISING), Series("b", -RISING))), LinePanel("r", (), top=1.0)),
        ticks=("0", "1", "2"), names=("$a", "b", "other"),
    ),
    "lines of one point": Lines("f", *SAID, (LinePanel("", (Series("a", np.array([0.5])),)),)),
    "curves": Lines(
        "f", *SAID, (LinePanel("", tuple(Series(f"L{n}", RISING, place=float(n)) for n in range(20)), y="size"),),
        ramp="layer",
    ),
    "grids": Grids(
        "f", *SAID, tuple(Grid(f"{tone} </svg>", np.array([[0.2, NAN]]), tone, 1.0) for tone in
                          ("weight", "norm", "grey", "error", "signed")), rows=("0",),
    ),
    "one large grid": Grids("f", *SAID, (Grid("g", np.ones((48, 64)), "norm", 1.0),), tuple(map(str, range(48)))),
    "strip": Strip(
        "f", *SAID, tuple(StripPanel(f"p{n}", np.array([[0.1, NAN], [NAN, NAN]]), 0.5, "half") for n in range(5)),
        ticks=("0", "1"), limits=(-1.0, 1.0),
    ),
    "scatter": Scatter(
        "f", *SAID, (ScatterPanel("p", (Cloud("a", RISING, RISING), Cloud("b", RISING, RISING)), y_scale="log"),), "x",
        x_scale="log", labels=("one", "two", "猫"),
    ),
    "shared scatter": Scatter(
        "f", *SAID,
        tuple(ScatterPanel("p", (Cloud("o", RISING, RISING, pale=True), Cloud("a", RISING[:0], RISING[:0])))
              for _ in range(2)),
        "x", x_scale="log", x_limits=(0.01, 1.0), shared=True,
    ),
    "bars": Bars("f", *SAID, (Bar("a", 0.5, 0.4, 0.6, "ours"), Bar("_b", -0.2, group="theirs")), "x"),
    "graph": Graph(
        "f", *SAID, (Node("a", 0.0, 0.0, "a$"), Node("b", 1.0, 1.0)), (Edge("a", "b", 0.3, "H1"), Edge("b", "a", -0.1)),
        y="layer",
    ),
    "thumbnails": Thumbnails(
        "f", *SAID, np.array([[np.eye(4), np.full((4, 4), NAN)], [np.tril(np.ones((4, 4))), np.zeros((4, 4))]]), "norm",
        rows=("0", "3"), groups=(("$odd", ""), ("", "plain")), names=("none", "$odd", "plain"),
    ),
    "thumbnails of one head": Thumbnails("f", *SAID, np.ones((1, 1, 2, 3)), "weight", rows=("7",)),
    "a thousand thumbnails": Thumbnails(
        "f", *SAID, np.zeros((32, 32, 24, 24)), "weight", tuple(map(str, range(32))), groups=(("a",) * 32,) * 32
    ),
    "a graph without edges": Graph("f", *SAID, (Node("a", 0.0, 0.0),), ()),
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_svg_and_png_and_the_same_every_time(name):
    one, other = draw(FIGURES[name]), draw(FIGURES[name])
    assert one == other
    assert one.svg.startswith("<?xml")
    assert one.png.startswith(b"\x89PNG")
    assert "nan" not in re.sub(r"base64,[^\"]*", "", one.svg).lower().replace("sans", "")


def texts(drawing):
    """What is written in a drawing; matplotlib keeps every text as a comment before its letters."""
    return re.findall(r"<!-- (.*?) -->", drawing.svg)


def test_names_are_written_as_they_are():
    """A dollar would begin mathematics, an underscore would hide a name from a legend."""
    assert {"$a", "b"} <= set(texts(draw(FIGURES["lines"])))
    assert "_b" in texts(draw(FIGURES["bars"]))
    assert "a$" in texts(draw(FIGURES["graph"]))


def test_bars_have_their_numbers_and_true_minus_signs():
    assert {"0.500", "−0.200"} <= set(texts(draw(FIGURES["bars"])))


def test_a_grid_shows_its_holes_and_axes():
    assert "url(#" in draw(FIGURES["grids"]).svg  # the hatching
    assert {"layer", "head"} <= set(texts(draw(FIGURES["grids"])))


def test_thumbnails_name_layers_heads_and_the_groups_that_are_there():
    said = texts(draw(FIGURES["thumbnails"]))
    assert {"0", "3", "1", "layer", "head", "$odd", "plain"} <= set(said)
    assert "none" not in said


def test_thumbnails_are_one_image_however_many_they_are():
    drawing = draw(FIGURES["a thousand thumbnails"])
    assert drawing.svg.count("<image") == 1
    assert len(drawing.svg) < 1_500_000


def test_many_curves_get_a_scale_and_few_their_names():
    assert "L3" not in texts(draw(FIGURES["curves"]))
    few = Lines(
        "f", *SAID, (LinePanel("", tuple(Series(f"L{n}", RISING, place=n / 1) for n in range(3))),), ramp="layer"
    )
    assert "L2" in texts(draw(few))


def test_the_end_of_a_scale_and_the_words_for_holes():
    assert top_of(np.array([NAN, 2.0])) == 2.0
    assert top_of(np.array([NAN, -3.0])) == 1.0
    assert hatched(np.array([[1.0]])) == ""
    assert hatched(np.array([[NAN]])) == " Hatched: there is no such head."


@pytest.mark.parametrize(
    ("name", "part"),
    [("[CLS]", "cls"), ("comma & period", "comma-period"), ("猫", ""), ("../up", "up"), ("a" * 60, "a" * 24)],
)
def test_a_name_as_part_of_a_file(name, part):
    assert slug(name) == part
