"""Maps of any axes, and of no layer, in every view: in numbers, as drawings, and in the page as Python shows them."""

from dataclasses import replace

import numpy as np
import pytest
from view_figures import random_figure, translation

from normlens.views import Figure, FigureError, Map, Panel, packed, summary
from normlens.views.bars import bars
from normlens.views.maps import AXES
from normlens.views.shown import cells, shown

TOKENS = ("[CLS]", "un", "##like", "##ly", "tale", ".", "[SEP]")
VIEWS = ("heat", "lines", "bars", "grid")


def with_all_axes(figure: Figure, *, signed: bool = False) -> Figure:
    """The figure with one more map for each set of axes, under the name of the axes."""
    random = np.random.default_rng(5)
    panels = []
    for panel in figure.panels:
        lengths = {"head": len(panel.heads), "tgt": panel.size[0], "src": panel.size[1]}
        more = []
        for axes in AXES:
            values = random.normal(size=[lengths[axis] for axis in axes]).astype(np.float32)
            name = "_".join(axes)
            more.append(Map(name, name, axes, values if signed else abs(values), f"By {name}.", signed=signed))
        panels.append(replace(panel, maps=(*panel.maps, *more)))
    return replace(figure, panels=tuple(panels))


NAMES = tuple("_".join(axes) for axes in AXES)


def rollout(*, beside: bool) -> Figure:
    figure = random_figure(*TOKENS)
    values = np.random.default_rng(7).dirichlet(np.ones(len(TOKENS)), size=len(TOKENS)).astype(np.float32)
    one = Map("rollout", "R(α)", ("tgt", "src"), values, "Attention over all layers.")
    panel = Panel(None, "rollout", 0, 0, (), (len(TOKENS), len(TOKENS)), (one,))
    return replace(figure, panels=(*figure.panels, panel) if beside else (panel,))


def test_a_map_without_queries_and_keys_is_a_strip_of_tokens_or_heads():
    figure = with_all_axes(random_figure(*TOKENS))
    panel = figure.panels[1]
    got = {one.name: one for one in shown(figure.looking(layers=1, measures=NAMES))}
    np.testing.assert_allclose(got["head_tgt_src"].values, panel.values("head_tgt_src").mean(axis=0), rtol=1e-5)
    for name in ("head_src", "head_tgt"):
        np.testing.assert_allclose(got[name].values, panel.values(name), rtol=1e-6)
        assert [row.label for row in got[name].rows] == ["H0", "H1", "H2"]
        assert [column.label for column in got[name].columns] == list(TOKENS)
    for name in ("tgt", "src", "head"):
        np.testing.assert_allclose(got[name].values, panel.values(name)[None], rtol=1e-6)
        assert got[name].strip
    assert [column.label for column in got["head"].columns] == ["H0", "H1", "H2"]
    assert [one.where for one in got.values()] == [
        "L1, mean of 3 heads", "L1", "L1, each head", "L1, each head", "L1", "L1", "L1, each head",
    ]  # fmt: skip


def test_words_of_a_strip_are_means_and_hidden_tokens_are_left_out():
    figure = with_all_axes(random_figure(*TOKENS))
    (one,) = shown(figure.looking(layers=0, heads=2, measures="head_tgt", unit="words", hide="special"))
    values = figure.panels[0].values("head_tgt")[2]
    np.testing.assert_allclose(one.values[0], [values[1:4].mean(), values[4], values[5]], rtol=1e-6)


def test_bars_of_a_strip_are_the_mean_of_its_rows():
    figure = with_all_axes(random_figure(*TOKENS))
    for one in bars(figure.looking(view="bars", layers=0, measures=("head_tgt", "tgt", "head"))):
        values = figure.panels[0].values(one.map.name)
        np.testing.assert_allclose(one.values, values.mean(axis=0) if values.ndim == 2 else values, rtol=1e-6)
        assert one.unit == "value"


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("make", [lambda: random_figure(*TOKENS), translation], ids=["text", "translation"])
def test_every_view_draws_every_set_of_axes(view, signed, make, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    figure = with_all_axes(make(), signed=signed).looking(view=view, measures=NAMES, pin=("tgt", 1), hide="special")
    svg = figure.save(tmp_path / "all.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {name}" in svg for name in NAMES)


def test_a_map_of_no_layer_is_a_figure_of_its_own():
    figure = rollout(beside=False)
    (one,) = shown(figure)
    assert (one.where, one.label, one.strip) == ("rollout", "R(α)", False)
    np.testing.assert_allclose(one.values, figure.panels[0].values("rollout"), rtol=1e-6)
    assert list(cells(figure.looking(view="grid"))["rollout"]) == [(None, None)]
    assert "R(α) rollout, share" in summary(figure)
    assert packed(figure).header["panels"][0]["layer"] is None
    with pytest.raises(FigureError, match="no layer 2: these maps have no layers"):
        figure.looking(layers=2)
    with pytest.raises(FigureError, match="no head 0: these maps have no heads"):
        figure.looking(heads=0)


@pytest.mark.parametrize("view", VIEWS)
def test_a_map_of_no_layer_stands_beside_layers(view, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    figure = rollout(beside=True)
    weights, whole = shown(figure.looking(layers=1, heads=2, measures=("weights", "rollout")))
    assert (weights.where, whole.where) == ("L1H2", "rollout")
    np.testing.assert_allclose(whole.values, figure.panels[-1].values("rollout"), rtol=1e-6)
    assert list(figure.groups) == ["self", "rollout"]
    assert figure.looking(view=view, measures=("weights", "rollout")).save(tmp_path / "x.svg").stat().st_size


def test_a_map_of_no_layer_can_be_subtracted():
    both = rollout(beside=True).minus(rollout(beside=True))
    assert (both.panels[-1].values("rollout") == 0).all()
    assert both.panels[-1].layer is None


def test_a_map_of_no_layer_needs_a_kind_of_its_own():
    figure = rollout(beside=True)
    for kind in ("self", "rollout"):
        with pytest.raises(FigureError, match=f"'{kind}' is there twice"):
            replace(figure, panels=(*figure.panels, replace(figure.panels[-1], kind=kind)))


@pytest.mark.parametrize("axes", [(), ("src", "tgt"), ("tgt", "head")])
def test_other_axes_are_refused(axes):
    with pytest.raises(FigureError, match="cannot be drawn"):
        Map("mine", "m", axes, np.zeros([1] * len(axes), np.float32))


def test_only_measures_with_a_number_for_each_patch_are_drawn_on_a_picture():
    from test_browser import grid_of_patches

    figure = with_all_axes(grid_of_patches())
    assert figure.looking(view="picture", measures=("weights", "head_tgt", "src")).look.view == "picture"
    with pytest.raises(FigureError, match="head has no number for each patch"):
        figure.looking(view="picture", measures="head")


# the page


def opened_view(opened, path, figure):
    tab = opened(figure.save(path))
    tab.wait_for_selector("[data-ready]")
    tab.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    return tab


def copied(tab) -> list[list[str]]:
    tab.wait_for_selector('[aria-busy="false"]')
    tab.get_by_role("button", name="Copy numbers").click()
    text = tab.locator("dialog textarea").input_value()
    tab.get_by_role("button", name="Close").click()
    return [line.split("\t") for line in text.split("\n\n")[0].splitlines()]


@pytest.mark.parametrize(
    "make",
    [
        lambda: with_all_axes(random_figure(*TOKENS)).looking(measures=NAMES, layers=(0, 1), heads=(0, 2)),
        lambda: with_all_axes(translation(), signed=True).looking(measures=NAMES, unit="words", scale="shared"),
        lambda: with_all_axes(random_figure(*(f"t{n}" for n in range(90)), heads=24)).looking(
            measures=NAMES, hide="special"
        ),
        lambda: rollout(beside=False),
        lambda: rollout(beside=True).looking(measures=("weights", "rollout"), heads=1),
    ],
    ids=["all axes", "signed, two sides", "large", "no layer", "no layer beside layers"],
)
def test_the_page_shows_what_python_shows(opened, tmp_path, make):
    figure = make()
    rows = copied(opened_view(opened, tmp_path / "v.html", figure))
    for one in shown(figure):
        head, *lines = rows[: len(one.rows) + 1]
        rows = rows[len(lines) + 1 :]
        assert head == [f"{one.label} {one.where}", *(token.label for token in one.columns)]
        assert [line[0] for line in lines] == [token.label for token in one.rows]
        values = np.array([[float(number) for number in line[1:]] for line in lines])
        rounding = 1e-6 if packed(figure).header["exact"] or one.strip else 1 / 255
        np.testing.assert_allclose(values, one.values, atol=rounding * max(one.top, 1e-9) * 1.01)
    assert rows == []


def test_the_page_tells_what_a_measure_is_and_answers_in_every_view(opened, tmp_path):
    figure = with_all_axes(random_figure(*TOKENS))
    tab = opened_view(opened, tmp_path / "v.html", figure.looking(measures=NAMES, pin=("tgt", 2)))
    assert tab.locator('fieldset[data-name="measures"] label').nth(-1).get_attribute("title") == "head: By head."
    for view in (*VIEWS, "heat"):
        tab.locator(f'input[name="view"][value="{view}"] + span').click()
        tab.wait_for_selector('[aria-busy="false"]')
        for canvas in tab.locator("figure canvas").all():
            box = canvas.bounding_box()
            canvas.hover(position={"x": 0.7 * box["width"], "y": 0.7 * box["height"]})
            canvas.hover(position={"x": 0.4 * box["width"], "y": 0.5 * box["height"]})
        tab.locator(".stage").focus()
        for key in ("Shift+ArrowRight", "Shift+ArrowDown", "ArrowDown", "ArrowUp"):
            tab.keyboard.press(key)
            tab.wait_for_selector('[aria-busy="false"]')
        assert copied(tab)


def test_the_page_of_a_map_of_no_layer_has_no_layers_and_heads_to_choose(opened, tmp_path):
    tab = opened_view(opened, tmp_path / "v.html", rollout(beside=False))
    assert tab.locator('input[name="layers"], input[name="heads"]').count() == 0
    assert "undefined" not in tab.locator("main").inner_text()
    assert "null" not in tab.locator("main").inner_text()
    tab.locator(".stage").focus()
    for key in ("ArrowRight", "ArrowDown", "Shift+ArrowRight", "Enter"):
        tab.keyboard.press(key)
    for view in VIEWS:
        tab.locator(f'input[name="view"][value="{view}"] + span').click()
        tab.wait_for_selector('[aria-busy="false"]')
        assert "undefined" not in tab.locator("main").inner_text()


def test_two_sides_of_different_length_have_bars_of_their_own_tokens(opened, tmp_path):
    figure = with_all_axes(translation()).looking(view="bars", measures=("weights", "tgt"), order="size")
    rows = copied(opened_view(opened, tmp_path / "v.html", figure))
    assert rows[0][0] == rows[0][2] == "token"
    assert sorted(row[2] for row in rows[1:]) == sorted(figure.sides[1].tokens)
    assert [row[0] for row in rows[1:] if row[0]] == list(figure.sides[0].tokens)
