"""What a drawing shows, asked of the drawing itself."""

import io
import sys
from dataclasses import replace

import numpy as np
import pytest
from view_figures import headline, random_figure, side, translation

from normlens.picture import Picture
from normlens.views import Figure
from normlens.views.plots import DrawingMissing, draw, drawing
from normlens.views.plots.cells import VECTOR
from normlens.views.plots.paint import NORM, SIGNED, WEIGHT, ramp
from normlens.views.plots.style import house_style, written

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from matplotlib.collections import LineCollection, PathCollection  # noqa: E402
from matplotlib.image import AxesImage, imsave  # noqa: E402
from matplotlib.text import Text  # noqa: E402

HOSTILE = (
    "a\nb",
    "$x_1^{$",
    "猫が",
    "👩‍👩‍👧",
    "\ud800",
    "",
    "\u202eabc",
    "́",
    "</script>",
    "%s{}",
    "[<｜begin▁of▁sentence｜>",
)
TEXT_VIEWS = ("heat", "lines", "grid", "bars")


def drawn(figure: Figure, **look):
    """The drawing, laid out."""
    with house_style("test"):
        made = drawing(figure.looking(**look))
        made.draw_without_rendering()
        return made


def texts(made):
    return [text.get_text() for text in made.findobj(Text) if text.get_text()]


def pictured(rows: int = 2, columns: int = 3) -> Figure:
    """An image of few patches behind a [CLS] that receives half of the attention and contributes nothing."""
    patches = rows * columns
    tokens = ("[CLS]", *(f"r{row}c{column}" for row in range(rows) for column in range(columns)))
    figure = random_figure(*tokens, layers=1, heads=1)
    weights = np.full((1, patches + 1, patches + 1), 0.5 / patches, np.float32)
    weights[:, :, 0] = 0.5
    norms = np.ones((1, patches + 1), np.float32)
    norms[:, 0] = 0
    values = {"weights": weights, "transformed_norms": norms}
    maps = tuple(
        replace(one, values=values.get(one.name)) for one in figure.panels[0].maps if one.name != "summed_norms"
    )
    png = io.BytesIO()
    imsave(png, np.random.default_rng(0).random((8 * rows, 8 * columns, 3)), format="png")
    seen = replace(figure.sides[0], picture=Picture(png.getvalue(), rows, columns, 1))
    return replace(figure, sides=(seen,), panels=(replace(figure.panels[0], maps=maps),))


@pytest.mark.parametrize("view", TEXT_VIEWS)
@pytest.mark.parametrize("tokens", [HOSTILE, ("x" * 60, "y"), ("only",), tuple(f"token{n}" for n in range(90))])
def test_any_tokens_are_drawn_readably_and_inside_the_sheet(view, tokens):
    made = drawn(random_figure(*tokens, layers=2, heads=2), view=view, measures=("weights", "transformed_norms"))
    across, up = made.bbox.width, made.bbox.height
    for text in made.findobj(Text):
        if text.get_text():
            box = text.get_window_extent()
            assert text.get_fontsize() >= 7
            assert -1 <= box.x0 <= box.x1 <= across + 1, text.get_text()
            assert -1 <= box.y0 <= box.y1 <= up + 1, text.get_text()


@pytest.mark.parametrize("view", TEXT_VIEWS)
@pytest.mark.parametrize("look", [{"pin": ("src", 1)}, {"hide": "special", "pin": ("tgt", 3)}])
def test_every_view_names_its_measures_and_carries_the_signature(view, look):
    made = drawn(translation(), view=view, scale="shared", **look)
    found = texts(made)
    assert any(text.startswith("α") for text in found)
    assert any("model:hand" in text for text in found)
    assert ("</s>" in found) == ("hide" not in look and view != "grid")


@pytest.mark.parametrize("view", TEXT_VIEWS)
def test_a_difference_is_drawn_with_its_note(view):
    here, there = (random_figure("a", "b", "[SEP]", seed=seed) for seed in (1, 2))
    figure = replace(here.minus(there), note="one minus the other")
    assert "one minus the other" in texts(drawn(figure, view=view, pin=("tgt", 0)))


def cell_colours(made, rows, columns):
    """Of the first map: the colour of each cell, by the path that holds its middle."""
    (mesh, *_) = made.findobj(PathCollection)
    found = np.full((rows, columns, 4), np.nan)
    for path, colour in zip(mesh.get_paths(), mesh.get_facecolors(), strict=True):
        for rectangle in path.vertices.reshape(-1, 5, 2):
            (left, top), (right, bottom) = np.round(rectangle.min(axis=0)), np.round(rectangle.max(axis=0))
            found[int(top) : int(bottom), int(left) : int(right)] = colour
    return found


def test_a_heat_map_colours_every_cell_by_its_number():
    made = drawn(headline(), view="heat", measures="weights")
    expected = ramp(WEIGHT)(np.round(255 * headline().panels[0].weights[0]) / 255)
    np.testing.assert_allclose(cell_colours(made, 3, 3), expected, atol=1e-6)


def test_zero_is_the_middle_of_a_difference():
    made = drawn(headline().minus(headline()), view="heat", measures="weights")
    np.testing.assert_allclose(cell_colours(made, 3, 3)[1, 1], ramp(SIGNED)(0.5), atol=0.01)


def test_cells_overlap_so_that_no_seam_shows():
    (mesh, *_) = drawn(headline(), view="heat").findobj(PathCollection)
    np.testing.assert_array_equal(mesh.get_facecolors(), mesh.get_edgecolors())
    assert min(mesh.get_linewidths()) > 0


def test_many_cells_become_an_image():
    tokens = [str(n) for n in range(int(VECTOR**0.5) + 1)]
    made = drawn(random_figure(*tokens, layers=1, heads=1), view="heat", measures="weights")
    assert not made.findobj(PathCollection)
    assert (len(tokens), len(tokens)) in [image.get_array().shape for image in made.findobj(AxesImage)]


def test_special_tokens_are_set_apart():
    styles = {text.get_text(): text.get_fontstyle() for text in drawn(headline(), view="heat").findobj(Text)}
    assert styles["[SEP]"] == "italic"
    assert styles["cat"] == "normal"


def test_lines_are_as_wide_as_their_cells_are_large():
    made = drawn(headline(), view="lines", measures=("weights", "weighted_norms"))
    weights, moved = made.findobj(LineCollection)
    assert len(weights.get_segments()) == 7  # of nine cells two are 0
    widths = dict(zip([round(s[1][1], 2) for s in weights.get_segments()], weights.get_linewidths(), strict=True))
    assert max(widths, key=widths.get) == pytest.approx(0.145 * 2.5, abs=0.01)  # [SEP]
    assert len(moved.get_segments()) == 6  # the contribution of [SEP] is too small to be drawn, but for its own row
    assert any("lines below 4%" in text for text in texts(made))


def test_a_pinned_token_has_its_own_lines_alone():
    (lines,) = drawn(headline(), view="lines", measures="weights", pin=("tgt", 1)).findobj(LineCollection)
    assert len({segment[0][1] for segment in lines.get_segments()}) == 1


def test_a_grid_has_a_thumbnail_for_each_layer_and_head():
    made = drawn(random_figure("a", "b", "c", layers=2, heads=3), view="grid")
    assert len(made.findobj(PathCollection)) == 2 * 2 * 3
    assert {"L0", "L1", "H0", "H1", "H2"} <= set(texts(made))


def test_thin_lines_stay_in_sight_in_thumbnails_of_long_texts():
    figure = random_figure(*(str(n) for n in range(200)), layers=1, heads=1)
    weights = np.zeros((1, 200, 200), np.float32)
    weights[:, :, 77] = 1
    panel = replace(figure.panels[0], maps=(replace(figure.panels[0].maps[0], values=weights),))
    made = drawn(replace(figure, panels=(panel,)), view="grid", measures="weights")
    (mesh, *_) = made.findobj(PathCollection)
    assert ramp(WEIGHT)(1.0) in [tuple(colour) for colour in mesh.get_facecolors()]


def test_bars_say_their_shares():
    found = texts(drawn(headline(), view="bars", measures=("weights", "weighted_norms")))
    assert "80.0%" in found
    assert any("Each key, over all queries: its share of the total." in text for text in found)
    found = texts(drawn(headline(), view="bars", measures="weights", pin=("src", 0)))
    assert any("Each query, for the key “a” (token 0)" in text for text in found)


def test_a_picture_shows_patches_and_what_stands_before_them():
    made = drawn(pictured(), view="picture", measures=("weights", "weighted_norms"), pin=("tgt", 5))
    found = texts(made)
    assert found.count("[CLS]") == 2
    assert "50.0%" in found
    assert "0.0%" in found
    overlays = [image for image in made.findobj(AxesImage) if image.get_array().shape == (2, 3, 4)]
    assert len(overlays) == 2
    np.testing.assert_allclose(overlays[1].get_array()[0, 0, :3], ramp(NORM)(1.0)[:3], atol=1e-6)


def test_a_picture_without_tokens_before_it_and_with_hidden_ones():
    made = drawn(pictured(), view="picture", hide="special")
    assert "[CLS]" not in texts(made)


@pytest.mark.parametrize(
    ("view", "form"), [*((view, "svg") for view in (*TEXT_VIEWS, "picture")), ("picture", "png"), ("picture", "pdf")]
)
def test_the_same_figure_gives_the_same_bytes(view, form, tmp_path):
    figure = pictured().looking(view=view)
    for name in ("a", "b"):
        draw(figure, tmp_path / f"{name}.{form}")
    first, second = ((tmp_path / f"{name}.{form}").read_bytes() for name in ("a", "b"))
    assert first == second
    assert b"matplotlib" not in first.lower() or form == "pdf"
    assert b"CreationDate" not in first


def test_an_svg_holds_its_letters_as_shapes_and_asks_for_nothing(tmp_path):
    draw(headline().looking(), tmp_path / "x.svg")
    svg = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "<!-- [SEP] -->" in svg
    assert "font-family" not in svg
    assert "<script" not in svg


def test_a_very_long_drawing_still_fits_into_a_png():
    from matplotlib.figure import Figure as Drawing

    with house_style("test"):
        assert written(Drawing(figsize=(2, 400)), "png").startswith(b"\x89PNG")


def test_the_readers_settings_come_back():
    before = matplotlib.rcParams["font.size"]
    drawn(headline())
    assert matplotlib.rcParams["font.size"] == before


def test_without_matplotlib_the_error_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(DrawingMissing, match=r"pip install 'normlens\[report\]'"):
        draw(headline(), tmp_path / "x.svg")


def test_a_side_without_special_tokens_can_hide_them():
    figure = random_figure("a", "b")
    assert "a" in texts(drawn(replace(figure, sides=(side("a", "b"),)), view="heat", hide="special", rescale=True))
