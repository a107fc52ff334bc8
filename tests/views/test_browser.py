"""The page in a real browser, opened from a file with the network cut: it draws, answers, and asks for nothing."""

import re
from itertools import count
from xml.etree import ElementTree

import numpy as np
import pytest
from view_figures import headline, panel, random_figure, side, signed_figure, translation

from normlens.picture import Picture
from normlens.views import Figure, Side, page
from normlens.views.bars import bars
from normlens.views.html import fragment
from normlens.views.shown import shown

TOKENS = ("[CLS]", "the", "cat", "猫", "##s", "</script><b>", ",", "[SEP]")
STAGE = ".stage"
COLOURS_OF_THUMBNAILS = """() => {
  const canvas = document.querySelector("figure canvas");
  return [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data];
}"""


@pytest.fixture
def view(opened, tmp_path):
    """Opens a figure, or ready HTML."""
    numbers = count()

    def open_page(what: Figure | str, **options):
        path = tmp_path / f"view{next(numbers)}.html"
        path.write_text(what if isinstance(what, str) else page(what), encoding="utf-8")
        tab = opened(path, **options)
        if isinstance(what, Figure) and options.get("java_script_enabled", True):
            tab.wait_for_selector("[data-ready]")
        return tab

    return open_page


def large(**options) -> Figure:
    """Too many numbers to be kept exactly."""
    return random_figure("[CLS]", *(f"t{n}" for n in range(88)), "[SEP]", layers=3, heads=16, **options)


def settled(tab):
    """The page after it has drawn what was asked for."""
    tab.wait_for_selector('[aria-busy="false"]')
    return tab


def plain(text: str) -> str:
    return text.replace("\u2068", "").replace("\u2069", "")


def readout(tab) -> str:
    return plain(settled(tab).locator(".readout").inner_text()).replace("\n", " ")


def captions(tab) -> list[str]:
    return [text.strip() for text in settled(tab).locator("figcaption").all_inner_texts()]


def pick(tab, name: str, value: object) -> None:
    tab.locator(f'input[name="{name}"][value="{value}"] + span').click()


def chosen(tab, name: str) -> list[str]:
    return [box.get_attribute("value") for box in tab.locator(f'input[name="{name}"]:checked').all()]


def footer(tab) -> str:
    return settled(tab).locator("footer").inner_text()


def described(tab, number: int = 0) -> str:
    return settled(tab).locator("figure canvas").nth(number).get_attribute("aria-label")


def drawn(tab, number: int = -1) -> str:
    return settled(tab).locator("figure canvas").nth(number).evaluate("canvas => canvas.toDataURL()")


def copied(tab) -> list[list[str]]:
    """The numbers on screen, through the button; where a page may not reach the clipboard they stand in a field."""
    settled(tab).get_by_role("button", name="Copy numbers").click()
    text = tab.locator("dialog textarea").input_value()
    tab.get_by_role("button", name="Close").click()
    return [line.split("\t") for line in text.split("\n\n")[0].splitlines()]


def without_clipboard(tab):
    tab.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    return tab


def test_it_opens_on_all_heads_with_the_sum_on_the_right(view):
    tab = view(random_figure(*TOKENS))
    assert captions(tab) == ["α L0, mean of 3 heads", "‖Σₕ αf(x)‖ L0, all heads summed"]
    assert tab.locator("#fallback").count() == 0
    assert "model:random | v0" in footer(tab)
    assert "2.0e-7" in footer(tab)
    assert "8 rows by 8 columns, from 0 to" in described(tab)


def test_everything_can_be_named_by_a_screen_reader(view):
    tab = view(translation())
    for name in ("heat", "lines", "bars", "grid"):
        pick(tab, "view", name)
        assert all(label for label in (box.get_attribute("aria-label") for box in tab.locator("canvas").all()))
        unnamed = "boxes => boxes.filter(box => !box.ariaLabel && !box.labels?.length && !box.textContent).length"
        assert tab.locator("input, select, button").evaluate_all(unnamed) == 0
    assert tab.locator("[role=status]").count() == 1


def test_a_small_figure_tells_exact_numbers(view):
    figure = random_figure(*TOKENS)
    tab = view(figure)
    pick(tab, "heads", 1)
    tab.locator(STAGE).focus()
    for key in ("Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowRight"):
        tab.keyboard.press(key)
    found = re.match(r"query “(.*)”, key “(.*)” α (\S+) ‖αf\(x\)‖ (\S+)$", readout(tab))
    assert found, readout(tab)
    row, column = TOKENS.index(found[1]), TOKENS.index(found[2])
    assert float(found[3]) == pytest.approx(figure.panels[0].weights[1, row, column], rel=1e-4)
    assert float(found[4]) == pytest.approx(figure.panels[0].weighted_norms[1, row, column], rel=1e-4)
    assert "exact to 32 bits" in footer(tab)


def test_a_large_figure_tells_how_far_a_number_may_be_off_and_it_is_not(view):
    figure = large()
    tab = view(figure)
    pick(tab, "heads", 5)
    canvas = tab.locator("figure canvas").first
    box = canvas.bounding_box()
    for part in (0.3, 0.55, 0.8):
        canvas.hover(position={"x": part * box["width"], "y": part * box["height"]})
        found = re.match(r"query “(.*)”, key “(.*)” α (\S+) ± (\S+) ‖αf\(x\)‖ (\S+) ± (\S+)$", readout(tab))
        assert found, readout(tab)
        row, column = (figure.sides[0].tokens.index(found[at]) for at in (1, 2))
        for name, value, off in (("weights", found[3], found[4]), ("weighted_norms", found[5], found[6])):
            true = figure.panels[1].values(name)[5]
            assert float(off) == pytest.approx(true.max() / 255, rel=0.01)
            assert abs(float(value) - true[row, column]) <= float(off) * 1.01 + 0.005 * true[row, column]
    assert "off by at most 1/255 of the largest" in footer(tab)


@pytest.mark.parametrize("axis", ["tgt", "src"])
def test_the_pinned_token_of_a_large_figure_is_exact(view, axis):
    figure = large().looking(pin=(axis, 40), heads=5)
    tab = view(figure)
    tab.locator(STAGE).focus()
    tab.keyboard.press("Shift+ArrowDown" if axis == "src" else "Shift+ArrowRight")
    found = re.match(r"query “(.*)”, key “(.*)” α (\S+) ‖αf\(x\)‖ (\S+)$", readout(tab))
    assert found, readout(tab)
    row, column = (figure.sides[0].tokens.index(found[at]) for at in (1, 2))
    assert (row if axis == "tgt" else column) == 40
    for name, value in (("weights", found[3]), ("weighted_norms", found[4])):
        true = figure.panels[1].values(name)[5, row, column]
        assert float(value) == pytest.approx(true, rel=1e-4)


def test_copied_numbers_of_a_pinned_token_are_exact_too(view):
    figure = large().looking(pin=("tgt", 40), heads=5)
    tab = without_clipboard(view(figure))
    rows = copied(tab)
    for start, name in ((0, "weights"), (91, "weighted_norms")):
        numbers = [float(number) for number in rows[start + 41][1:]]
        np.testing.assert_allclose(numbers, figure.panels[1].values(name)[5, 40], rtol=1e-6)
    pick(tab, "view", "bars")
    shares = [float(row[1]) for row in copied(tab)[1:]]
    np.testing.assert_allclose(shares, figure.panels[1].weights[5, 40], rtol=1e-5)


def test_a_pin_does_not_disturb_the_view_of_all_heads(view):
    tab = view(random_figure(*TOKENS).looking(pin=("tgt", 2)))
    pick(tab, "view", "grid")
    assert readout(tab) == "Point at a thumbnail for its name; click to open it."
    assert "A thumbnail shows the largest cell" in footer(tab)
    assert "For the query" not in settled(tab).locator(".finding").inner_text()
    pick(tab, "view", "heat")
    assert tab.locator('select[name="pin"]').input_value() == "tgt 2"


def test_where_everything_would_be_hidden_nothing_is_and_nothing_is_claimed(view):
    tab = view(random_figure("[CLS]", ",", "[SEP]").looking(hide=("special", "punctuation")))
    assert "3 rows by 3 columns" in described(tab)
    assert "Hidden" not in footer(tab)


LOOKS = [
    {},
    {"layers": (0, 1), "heads": (0, 2)},
    {"heads": 1, "measures": ("weights", "transformed_norms", "weighted_norms", "summed_norms")},
    {"unit": "words", "measures": ("weights", "transformed_norms", "summed_norms")},
    {"hide": "special"},
    {"hide": ("special", "punctuation"), "rescale": True, "unit": "words"},
    {"scale": "shared", "heads": 2, "layers": 1},
]


@pytest.mark.parametrize("look", LOOKS, ids=str)
@pytest.mark.parametrize("make", [lambda: random_figure(*TOKENS), large], ids=["small", "large"])
def test_the_page_shows_what_python_shows(view, make, look):
    """The numbers to copy are those of `shown`, whatever is chosen."""
    figure = make().looking(**look)
    tab = without_clipboard(view(figure))
    rows = copied(tab)
    for one in shown(figure):
        head, *lines = rows[: len(one.rows) + 1]
        rows = rows[len(lines) + 1 :]
        assert head[0] == f"{one.label} {one.where}"
        assert head[1:] == [token.label for token in one.columns]
        assert [line[0] for line in lines] == [token.label for token in one.rows]
        values = np.array([[float(number) for number in line[1:]] for line in lines])
        rounding = 1e-6 if make is not large else 3 / 255  # rescaled rows are as much less certain as they are scaled
        np.testing.assert_allclose(values, one.values, atol=rounding * max(one.top, 1e-9) * 1.01)
    assert rows == []


@pytest.mark.parametrize("look", LOOKS, ids=str)
@pytest.mark.parametrize("count", [4, 90], ids=["small", "large"])
def test_the_page_shows_signed_weights_and_their_norms_as_python_does(view, count, look):
    figure = signed_figure("[CLS]", *(f"t{n}" for n in range(count)), "[SEP]", heads=24).looking(**look)
    tab = without_clipboard(view(figure))
    rows = copied(tab)
    for one in shown(figure):
        lines, rows = rows[1 : len(one.rows) + 1], rows[len(one.rows) + 1 :]
        values = np.array([[float(number) for number in line[1:]] for line in lines])
        rounding = 1e-6 if count == 4 else 3 / 255
        np.testing.assert_allclose(values, one.values, atol=rounding * max(one.top, 1e-9) * 1.01)
        assert (values >= 0).all() or one.name == "weights"
    assert "ifference" not in footer(tab)
    assert "%" not in settled(tab).locator(".finding").inner_text()


def test_norms_of_signed_weights_are_not_below_zero_pinned_or_as_thumbnails(view):
    figure = signed_figure(*(f"t{n}" for n in range(90)), heads=24)
    tab = without_clipboard(view(figure.looking(heads=1, measures="weighted_norms", pin=("tgt", 3))))
    row = [float(number) for number in copied(tab)[4][1:]]
    np.testing.assert_allclose(row, figure.panels[0].weighted_norms[1, 3], rtol=1e-5)
    grid = view(figure.looking(view="grid", measures="weighted_norms"))
    plain = view(
        Figure(
            figure.title,
            figure.signature,
            figure.sides,
            tuple(panel(abs(one.weights), one.transformed_norms, layer=one.layer) for one in figure.panels),
        ).looking(view="grid", measures="weighted_norms")
    )
    assert "from 0 to" in described(grid) or "scale" in footer(grid)
    colours = [tab.evaluate(COLOURS_OF_THUMBNAILS) for tab in (grid, plain)]
    assert np.abs(np.subtract(*colours)).max() <= 8


@pytest.mark.parametrize(
    "look",
    [
        {},
        {"hide": "special", "unit": "words"},
        {"pin": ("tgt", 2), "hide": "special", "rescale": True},
        {"pin": ("src", 0)},
    ],
    ids=str,
)
def test_the_bars_of_the_page_are_those_of_python(view, look):
    measures = ("weights", "transformed_norms", "summed_norms")
    figure = random_figure(*TOKENS).looking(view="bars", measures=measures, order="text", **look)
    if look.get("pin") == ("src", 0):
        figure = figure.looking(measures=("weights", "summed_norms"))  # ‖f(x)‖ has no queries
    rows = copied(without_clipboard(view(figure)))
    expected = bars(figure)
    assert [row[0] for row in rows[1:]] == [token.label for token in expected[0].tokens]
    for place, one in enumerate(expected):
        np.testing.assert_allclose([float(row[place + 1]) for row in rows[1:]], one.values, rtol=1e-4, atol=1e-7)


def test_a_shared_scale_is_that_of_all_layers_and_heads(view):
    figure = random_figure(*TOKENS).looking(heads=1, scale="shared", measures="weights")
    tab = view(figure)
    largest = max(float(block.weights.max()) for block in figure.panels)
    assert f"{largest:.3g}" in settled(tab).locator(".scale").inner_text()
    assert "shared scale" in settled(tab).locator(".scale").inner_text()
    pick(tab, "scale", "own")
    assert f"{figure.panels[0].weights[1].max():.3g}" in settled(tab).locator(".scale").inner_text()


def test_layer_head_and_measures_by_mouse(view):
    tab = view(random_figure(*TOKENS))
    before = drawn(tab)
    pick(tab, "layers", 1)
    assert captions(tab)[0] == "α L1, mean of 3 heads"
    assert drawn(tab) != before
    pick(tab, "heads", 2)
    assert captions(tab) == ["α L1H2", "‖αf(x)‖ L1H2"]
    pick(tab, "measures", "transformed_norms")
    assert captions(tab) == ["α L1H2", "‖f(x)‖ L1H2", "‖αf(x)‖ L1H2"]
    pick(tab, "heads", "all")
    assert captions(tab)[1:] == ["‖f(x)‖ L1, each head", "‖Σₕ αf(x)‖ L1, all heads summed"]
    for name in ("weights", "transformed_norms", "summed_norms"):
        pick(tab, "measures", name)
    assert captions(tab) == ["‖Σₕ αf(x)‖ L1, all heads summed"]  # the last one stays


def test_several_layers_and_heads_are_averaged(view):
    tab = view(random_figure(*TOKENS))
    tab.get_by_label("several").check()
    pick(tab, "layers", 1)
    pick(tab, "heads", 1)
    assert captions(tab)[0] == "α mean of L0 and L1, mean of 2 heads"
    tab.get_by_label("several").uncheck()
    assert captions(tab)[0] == "α L0, mean of 3 heads"


def test_layer_head_cell_and_pin_by_keyboard_alone(view):
    tab = view(random_figure(*TOKENS))
    for _ in range(40):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.className") == "stage":
            break
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowDown")
    assert captions(tab) == ["α L1H0", "‖αf(x)‖ L1H0"]
    assert chosen(tab, "heads") == ["0"]
    assert tab.locator(STAGE).evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
    for key in ("Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowDown"):
        tab.keyboard.press(key)
    assert readout(tab).startswith("query “the”, key “the”")
    tab.keyboard.press("Enter")
    assert tab.locator('select[name="pin"]').input_value() == "tgt 1"
    tab.keyboard.press("Escape")
    assert tab.locator('select[name="pin"]').input_value() == ""
    tab.locator('input[name="layers"]:checked').focus()
    tab.keyboard.press("ArrowLeft")
    assert captions(tab)[0] == "α L0H0"
    assert tab.evaluate("document.activeElement.name") == "layers"
    tab.locator('input[name="view"]:checked').focus()
    tab.keyboard.press("ArrowRight")
    assert chosen(tab, "view") == ["lines"]


def test_a_click_pins_a_row_and_a_second_click_lets_go(view):
    tab = view(random_figure(*TOKENS))
    canvas, pinned = tab.locator("figure canvas").first, tab.locator('select[name="pin"]')
    box = canvas.bounding_box()
    spot = {"x": 0.6 * box["width"], "y": 0.6 * box["height"]}
    canvas.click(position=spot)
    assert pinned.input_value().startswith("tgt")
    tab.mouse.move(1, 1)
    assert re.search(r"query “.*” α: largest key “.*”, \d+ %", readout(tab))
    canvas.click(position=spot)
    assert pinned.input_value() == ""
    canvas.click(position={"x": 0.6 * box["width"], "y": 20})  # a label above the map: its column
    assert pinned.input_value().startswith("src")


def test_a_finger_pins_too(view):
    tab = view(random_figure(*TOKENS), has_touch=True, viewport={"width": 420, "height": 800})
    tab.locator("figure canvas").first.tap(position={"x": 200, "y": 200})
    assert tab.locator('select[name="pin"]').input_value().startswith("tgt")


def test_what_is_hidden_is_said_and_rescaled_only_when_asked(view):
    figure = random_figure(*TOKENS)
    tab = view(figure)
    finding = settled(tab).locator(".finding").inner_text()
    tab.get_by_label("hide special tokens").check()
    assert settled(tab).locator(".finding").inner_text() == finding
    assert "Hidden: special tokens. The remaining numbers are as they were" in footer(tab)
    assert "5 rows by 5 columns" in described(tab)  # two in brackets, and one that looks like an end
    tab.get_by_label("hide punctuation").check()
    assert "4 rows by 4 columns" in described(tab)
    tab.get_by_label("rescale the rest").check()
    assert "rescaled to the row's sum before" in footer(tab)
    rows = copied(without_clipboard(tab))
    assert sum(float(number) for number in rows[1][1:]) == pytest.approx(1, abs=1e-5)


def test_words_join_their_pieces(view):
    tab = view(random_figure(*TOKENS))
    pick(tab, "unit", "words")
    assert "7 rows by 7 columns" in described(tab)
    assert "pieces of a key add up" in footer(tab)


def test_the_headline_is_a_sentence(view):
    """0.8 of the attention; (0.08 + 0.06 + 0.1) of 3.84 of the contributions."""
    text = view(headline()).locator(".finding").inner_text()
    found = re.fullmatch(r"\[SEP\] receives 80 % of the attention and makes (\S+) % of the contributions", text)
    assert found, text
    assert float(found[1]) == pytest.approx(6.25, abs=0.06)


def test_bars_are_the_keys_of_a_pinned_query_and_the_queries_of_a_pinned_key(view):
    tab = view(headline().looking(view="bars"))
    assert captions(tab)[0] == "α L0H0, share of each key, all queries"
    rows = copied(without_clipboard(tab))
    assert [float(row[1]) for row in rows[1:]] == pytest.approx([0.1, 0.1, 0.8], rel=1e-5)
    tab.locator('select[name="pin"]').select_option("tgt 1")
    assert "of each key, query “cat”" in captions(tab)[0]
    assert [float(row[1]) for row in copied(tab)[1:]] == pytest.approx([0.2, 0.2, 0.6], rel=1e-5)
    tab.locator('select[name="pin"]').select_option("src 2")
    assert "of each query, key “[SEP]”" in captions(tab)[0]
    assert [float(row[1]) for row in copied(tab)[1:]] == pytest.approx([0.8 / 2.4, 0.6 / 2.4, 1 / 2.4], rel=1e-5)
    pick(tab, "order", "size")
    assert "[SEP]" in described(tab)


def test_lines_follow_the_token_under_the_cursor(view):
    tab = view(random_figure(*TOKENS).looking(view="lines"))
    before = drawn(tab, 0)
    box = tab.locator("figure canvas").first.bounding_box()
    tab.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2)
    assert re.match(r"query “.*” α: largest key", readout(tab))
    assert drawn(tab, 0) != before
    tab.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] / 2)
    assert readout(tab).startswith("key “")


def test_a_thumbnail_opens_its_head(view):
    tab = view(random_figure(*TOKENS).looking(view="grid"))
    assert captions(tab) == ["α 2 layers × 3 heads", "‖αf(x)‖ 2 layers × 3 heads"]
    pick(tab, "heads", 0)
    assert captions(tab)[0] == "α 2 layers × 2 heads"
    pick(tab, "heads", 0)
    tab.locator(STAGE).focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        tab.keyboard.press(key)
    assert readout(tab) == "L1H1: click to open it"
    tab.keyboard.press("Enter")
    assert chosen(tab, "view") == ["heat"]
    assert captions(tab)[0] == "α L1H1"


def test_kinds_of_attention(view):
    tab = view(translation())
    assert chosen(tab, "kind") == ["cross"]  # what a translation model is looked at for
    assert "4 rows by 3 columns" in described(tab)
    assert "Rows are queries (target), columns are keys (source)." in footer(tab)
    tab.locator('input[name="kind"]:checked').focus()
    tab.keyboard.press("ArrowLeft")
    assert chosen(tab, "kind") == ["decoder"]
    assert tab.evaluate("document.activeElement.name") == "kind"


def test_a_pinned_row_is_let_go_where_another_side_is_shown(view):
    """Also within one kind of attention: an image and a text, of different length and heads."""
    sides = (side("a", "b", "c", "d"), side("p", "q", name="image"))
    blocks = [panel(np.full((h, n, n), 1 / n), np.ones((h, n)), tgt=at, src=at) for h, n, at in ((1, 4, 0), (3, 2, 1))]
    tab = view(Figure("t", "s", sides, tuple(blocks)))
    tab.locator('select[name="pin"]').select_option("tgt 3")
    pick(tab, "kind", "self (image)")
    assert tab.locator('select[name="pin"]').input_value() == ""
    assert "50 % of the attention" in settled(tab).locator(".finding").inner_text()
    assert tab.locator('input[name="heads"]').count() == 4


def test_a_difference_is_signed_and_says_what_was_left_out(view):
    first, second = random_figure("a", "b", "c"), random_figure("a", "x", "y", "c", seed=1)
    tab = view(first.minus(second))
    assert captions(tab)[0] == "Δ α L0, mean of 3 heads"
    assert "3 tokens of side 'text' without a partner left out" in settled(tab).locator(".finding").inner_text()
    assert tab.locator("figure").first.get_attribute("class") == "signed"
    for name in ("lines", "bars", "grid"):
        pick(tab, "view", name)
        assert "shares" not in footer(tab).lower()
    rows = copied(without_clipboard(view(first.minus(second).looking(heads=0, measures="weights"))))
    expected = first.panels[0].weights[0][np.ix_([0, 2], [0, 2])] - second.panels[0].weights[0][np.ix_([0, 3], [0, 3])]
    np.testing.assert_allclose([[float(n) for n in row[1:]] for row in rows[1:]], expected, atol=1e-6)


def grid_of_patches() -> Figure:
    import matplotlib.image as images

    noise, path = np.random.default_rng(0), __import__("io").BytesIO()
    images.imsave(path, noise.random((40, 60, 3)))
    tokens = ("[CLS]", *(f"r{row}c{column}" for row in range(2) for column in range(3)))
    special = (True, *(False,) * 6)
    patches = Side(
        "text",
        tokens,
        special,
        tuple(None if s else n for n, s in enumerate(special)),
        picture=Picture(path.getvalue(), 2, 3, 1),
    )
    return Figure("noise", "s", (patches,), random_figure(*tokens).panels)


def test_patches_are_drawn_on_the_picture_and_can_be_pinned(view):
    tab = view(grid_of_patches().looking(view="picture"))
    before = drawn(tab, 0)
    box = tab.locator("figure canvas").first.bounding_box()
    tab.locator("figure canvas").first.click(position={"x": box["width"] - 10, "y": 10})
    assert tab.locator('select[name="pin"]').input_value() == "tgt 3"  # the last patch of the first row
    assert "of each key, query “r0c2”" in captions(tab)[0]
    assert drawn(tab, 0) != before
    tab.locator(STAGE).focus()
    tab.keyboard.press("Shift+ArrowRight")
    assert "r1c0" in readout(tab)


def download(tab, name: str) -> bytes:
    with tab.expect_download() as waiting:
        tab.locator(f'button[name="{name}"]').click()
    return waiting.value.path().read_bytes()


@pytest.mark.parametrize("name", ["heat", "lines", "bars", "grid"])
def test_what_is_on_screen_can_be_saved_as_svg_and_png(view, name):
    figure = random_figure(*TOKENS).looking(view=name)
    tab = view(figure, color_scheme="dark")
    svg = download(tab, "svg").decode()
    root = ElementTree.fromstring(svg)
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"α", "model:random | v0"} <= set(texts)
    assert any("The parts rebuild" in text for text in texts)
    if name == "lines":
        assert "Lines below 4 % of the scale" in " ".join(texts)
    if name == "grid":
        assert {"L0", "L1", "H2"} <= set(texts)
        assert svg.count("<image") == 12
    else:
        assert set(TOKENS) <= set(texts)
    if name == "heat":
        assert svg.count("<rect") > 2 * len(TOKENS) ** 2 * 0.7  # neighbours of one colour are one rectangle
    assert root.find("{http://www.w3.org/2000/svg}rect").get("fill") == "#ffffff"  # paper, also from a dark screen
    png = download(tab, "png")
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") > 800


def test_the_numbers_are_there_as_a_table(view):
    tab = view(headline())
    tab.locator(".numbers summary").click()
    tab.wait_for_selector(".numbers td")
    cells = tab.locator(".numbers th, .numbers td").all_inner_texts()
    assert cells[:8] == ["α L0H0", "a", "cat", "[SEP]", "a", "0.1", "0.1", "0.8"]


def test_dark_follows_the_system_and_changes_with_it(view):
    from playwright.sync_api import expect

    ground = "getComputedStyle(document.body).backgroundColor"
    tab = view(headline(), color_scheme="dark")
    dark = drawn(tab)
    assert tab.evaluate(ground) == "rgb(20, 22, 29)"
    tab.emulate_media(color_scheme="light")
    # not wait_for_function: it polls with eval, which the page's own security policy refuses
    expect(tab.locator("html")).to_have_attribute("data-theme", "light")
    assert tab.evaluate(ground) == "rgb(255, 255, 255)"
    assert drawn(tab) != dark


@pytest.mark.parametrize("width", [320, 700, 1900])
@pytest.mark.parametrize("name", ["heat", "lines", "bars", "grid"])
def test_no_window_is_too_narrow(view, width, name):
    figure = random_figure(*(f"word{n}" for n in range(40))).looking(view=name)
    tab = view(figure, viewport={"width": width, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [box.bounding_box() for box in tab.locator("figure").all()]
    assert (boxes[0]["y"] == boxes[1]["y"]) == (width > 860)


def test_two_outputs_in_one_notebook_do_not_meet(view):
    body = f'<body style="background:#111">{fragment(headline())}{fragment(translation())}</body>'
    tab = view(f"<!doctype html><meta charset=utf-8>{body}")
    first, second = tab.frame_locator("iframe").first, tab.frame_locator("iframe").last
    second.locator('input[name="kind"][value="encoder"] + span').click()
    assert first.locator(".finding").inner_text().startswith("[SEP]")
    assert second.locator(".finding").inner_text().startswith("</s>")
    assert first.locator("html").get_attribute("data-theme") == "dark"  # the notebook's, not the system's
    tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")  # frames refit
    for frame in tab.locator("iframe").all():
        assert frame.evaluate("frame => frame.contentDocument.documentElement.scrollHeight <= frame.clientHeight")


def test_without_scripts_the_table_is_shown(view):
    tab = view(headline(), java_script_enabled=False)
    assert tab.locator("#fallback").is_visible()
    assert "[SEP] receives 80 % of the attention" in tab.locator("#fallback").inner_text()
    assert not tab.locator("#view").is_visible()


def test_a_layer_that_could_not_be_read_is_said_and_tried_again(view):
    tab = view(random_figure(*(f"t{n}" for n in range(60)), layers=5, heads=16))  # opens on layer 2, unpacks 1 and 3
    chunk = tab.locator("#chunk-0")
    text = chunk.text_content()
    chunk.evaluate("script => { script.textContent = btoa('no zlib'); }")
    pick(tab, "layers", 0)
    settled(tab)
    assert "These numbers could not be read" in readout(tab)
    chunk.evaluate("(script, text) => { script.textContent = text; }", text)
    pick(tab, "layers", 1)
    pick(tab, "layers", 0)
    assert captions(tab)[0] == "α L0, mean of 16 heads"
