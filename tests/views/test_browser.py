"""The page in a real browser, opened from a file with the network cut: it draws, answers, and asks for nothing."""

import base64
import re
import zlib
from importlib.resources import files
from itertools import count

import numpy as np
import pytest
from view_figures import headline, panel, random_figure, side, translation

from normlens.views.figure import Figure
from normlens.views.html import fragment, page

TOKENS = ("[CLS]", "the", "cat", "猫", "</script><b>", "[SEP]")


@pytest.fixture
def view(opened, tmp_path):
    """Opens a figure, or ready HTML."""
    numbers = count()

    def open_page(what: Figure | str, **options):
        path = tmp_path / f"view{next(numbers)}.html"
        path.write_text(what if isinstance(what, str) else page(what), encoding="utf-8")
        return opened(path, **options)

    return open_page


def readout(tab) -> str:
    return tab.locator("#readout").inner_text().replace("\u2068", "").replace("\u2069", "")


def captions(tab) -> list[str]:
    return [text.strip() for text in tab.locator("figcaption").all_inner_texts()]


def pick(tab, name: str, value: object) -> None:
    tab.locator(f'input[name="{name}"][value="{value}"] + span').click()


def picture(tab) -> str:
    return tab.locator("figure.norm canvas").evaluate("canvas => canvas.toDataURL()")


def test_it_opens_on_all_heads_with_the_sum_on_the_right(view):
    tab = view(random_figure(*TOKENS))
    assert captions(tab) == ["α L0, mean of 3 heads", "‖Σₕ αf(x)‖ L0, all heads summed"]
    assert tab.locator("#fallback").count() == 0
    assert "stored in 8 bits" in tab.locator("footer").inner_text()
    assert "model:random | v0" in tab.locator("footer").inner_text()
    assert "2.0e-7" in tab.locator("footer").inner_text()
    assert "from 0 to" in tab.locator("figure.weight canvas").get_attribute("aria-label")


def test_pointing_at_a_cell_tells_its_tokens_and_its_true_numbers(view):
    figure = random_figure(*TOKENS)
    tab = view(figure)
    pick(tab, "head", 1)
    box = tab.locator("figure.norm canvas").bounding_box()
    tab.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"])
    found = re.match(r"“(.*)” looks at “(.*)”\s+α (\S+) × ‖f\(x\)‖ (\S+) = ‖αf\(x\)‖ (\S+)", readout(tab))
    assert found, readout(tab)
    row, column = TOKENS.index(found[1]), TOKENS.index(found[2])
    block = figure.panels[0]
    largest = block.weights[1].max()
    assert abs(float(found[3]) - block.weights[1, row, column]) < largest / 255 + 0.005 * largest
    assert abs(float(found[4]) / block.transformed_norms[1, column] - 1) < 0.005
    assert abs(float(found[3]) * float(found[4]) - float(found[5])) < 0.01 * float(found[5])


def test_layer_and_head_by_mouse(view):
    tab = view(random_figure(*TOKENS))
    before = picture(tab)
    pick(tab, "layer", 1)
    assert captions(tab)[0] == "α L1, mean of 3 heads"
    assert picture(tab) != before
    pick(tab, "head", 2)
    assert captions(tab) == ["α L1H2", "‖αf(x)‖ L1H2"]
    pick(tab, "measure", "transformed")
    assert captions(tab)[1] == "‖f(x)‖ L1H2"
    pick(tab, "head", "null")
    assert captions(tab)[1] == "‖f(x)‖ L1, each head"


def test_layer_head_cell_and_pin_by_keyboard(view):
    tab = view(random_figure(*TOKENS))
    tab.locator("#maps").focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowDown")
    assert captions(tab) == ["α L1H0", "‖αf(x)‖ L1H0"]
    assert tab.locator('input[name="head"][value="0"]').is_checked()
    assert tab.locator("#maps").evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
    tab.keyboard.press("Shift+ArrowRight")
    tab.keyboard.press("Shift+ArrowRight")
    tab.keyboard.press("Shift+ArrowDown")
    assert readout(tab).startswith("“the” looks at “the”")
    tab.keyboard.press("Enter")
    assert "in the row of" in tab.locator(".legend").inner_text()
    tab.keyboard.press("Escape")
    assert "over all rows" in tab.locator(".legend").inner_text()
    tab.locator('input[name="layer"]:checked').focus()
    tab.keyboard.press("ArrowLeft")
    assert captions(tab)[0] == "α L0H0"


def test_a_click_pins_a_row_and_a_second_click_lets_go(view):
    tab = view(random_figure(*TOKENS))
    canvas = tab.locator("figure.weight canvas")
    box = canvas.bounding_box()
    spot = {"x": 0.6 * box["width"], "y": 0.6 * box["height"]}
    canvas.click(position=spot)
    assert "received in the row of" in tab.locator(".legend").inner_text()
    tab.mouse.move(1, 1)
    assert "is pinned" in readout(tab)
    canvas.click(position=spot)
    assert "received over all rows" in tab.locator(".legend").inner_text()


def test_hiding_special_tokens_keeps_the_numbers(view):
    tab = view(random_figure(*TOKENS))
    label = tab.locator("figure.weight canvas").get_attribute("aria-label")
    finding = tab.locator("#finding").inner_text()
    assert "6 rows by 6 columns" in label
    tab.get_by_label("hide special tokens").check()
    assert tab.locator("#finding").inner_text() == finding
    assert "numbers and shares are unchanged" in tab.locator("footer").inner_text()
    hidden = sum(token.startswith(("[", "</")) for token in TOKENS)
    shown = f"{6 - hidden} rows by {6 - hidden} columns"
    assert shown in tab.locator("figure.weight canvas").get_attribute("aria-label")


def test_the_headline_is_a_sentence(view):
    assert view(headline()).locator("#finding").inner_text() == "[SEP]: 80 % of the weight, 6.2 % of what is moved"


def test_kinds_of_attention(view):
    tab = view(translation())
    pick(tab, "kind", "cross")
    assert "4 rows by 3 columns" in tab.locator("figure.norm canvas").get_attribute("aria-label")
    assert "Rows (target) look, columns (source)" in tab.locator("footer").inner_text()
    tab.locator('input[name="kind"]:checked').focus()
    tab.keyboard.press("ArrowLeft")
    assert tab.locator('input[name="kind"]:checked').get_attribute("value") == "decoder"
    assert tab.evaluate("document.activeElement.name") == "kind"


def test_a_pinned_row_is_let_go_where_another_side_is_shown(view):
    """Also within one kind of attention: an image and a text, of different length and heads."""
    sides = (side("a", "b", "c", "d"), side("p", "q", name="image"))
    blocks = [panel(np.full((h, n, n), 1 / n), np.ones((h, n)), tgt=at, src=at) for h, n, at in ((1, 4, 0), (3, 2, 1))]
    tab = view(Figure("t", "s", sides, tuple(blocks)))
    tab.locator("#maps").focus()
    for key in ("Shift+ArrowDown", *["Shift+ArrowDown"] * 3, "Enter", "ArrowDown"):
        tab.keyboard.press(key)
    assert "over all rows" in tab.locator(".legend").inner_text()
    assert "50 % of the weight" in tab.locator("#finding").inner_text()
    assert tab.locator('input[name="head"]').count() == 4


def test_dark_follows_the_system_and_changes_with_it(view):
    from playwright.sync_api import expect

    ground = "getComputedStyle(document.body).backgroundColor"
    tab = view(headline(), color_scheme="dark")
    dark = picture(tab)
    assert tab.evaluate(ground) == "rgb(20, 22, 29)"
    tab.emulate_media(color_scheme="light")
    # not wait_for_function: it polls with eval, which the page's own security policy refuses
    expect(tab.locator("html")).to_have_attribute("data-theme", "light")
    assert tab.evaluate(ground) == "rgb(255, 255, 255)"
    assert picture(tab) != dark


@pytest.mark.parametrize("width", [320, 700, 1900])
def test_no_window_is_too_narrow(view, width):
    tab = view(random_figure(*(f"word{n}" for n in range(40))), viewport={"width": width, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [box.bounding_box() for box in tab.locator("figure").all()]
    assert (boxes[0]["y"] == boxes[1]["y"]) == (width > 860)


def test_two_outputs_in_one_notebook_do_not_meet(view):
    body = f'<body style="background:#111">{fragment(headline())}{fragment(translation())}</body>'
    tab = view(f"<!doctype html><meta charset=utf-8>{body}")
    first, second = tab.frame_locator("iframe").first, tab.frame_locator("iframe").last
    second.locator('input[name="kind"][value="cross"] + span').click()
    assert first.locator("#finding").inner_text().startswith("[SEP]")
    assert second.locator("#finding").inner_text().startswith("</s>")
    assert first.locator("html").get_attribute("data-theme") == "dark"  # the notebook's, not the system's
    tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")  # frames refit
    for frame in tab.locator("iframe").all():
        assert frame.evaluate("frame => frame.contentDocument.documentElement.scrollHeight <= frame.clientHeight")


def test_without_scripts_the_table_is_shown(view):
    tab = view(headline(), java_script_enabled=False)
    assert tab.locator("#fallback").is_visible()
    assert "[SEP]: 80% of the weight" in tab.locator("#fallback").inner_text()
    assert not tab.locator("#view").is_visible()


def test_inflate_undoes_zlib(view):
    """Stored, fixed and dynamic blocks, long matches, and more than one block."""
    tab = view("<!doctype html><title>inflate</title>")
    tab.add_script_tag(content=files("normlens.views").joinpath("assets/inflate.js").read_text(encoding="utf-8"))
    noise = np.random.default_rng(0)
    skewed = noise.geometric(0.1, 300_000).astype(np.uint8).tobytes()
    undo = """([data, size]) => btoa(Array.from(
        inflate(Uint8Array.from(atob(data), c => c.charCodeAt(0)), size), c => String.fromCharCode(c)).join(""))"""
    for raw in (b"a", b"abc" * 5, bytes(100_000), noise.bytes(70_000), skewed):
        for level in (0, 1, 6, 9):
            packed = base64.b64encode(zlib.compress(raw, level)).decode()
            assert base64.b64decode(tab.evaluate(undo, [packed, len(raw)])) == raw
