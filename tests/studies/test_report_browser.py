"""The report in a real browser, opened from its file with the network cut: silent, readable, and on any width."""

from functools import partial

import pytest

from normlens.exhibits import Article, Chapter, Column, Document, Section, Table, write


@pytest.fixture
def view(opened, written_report):
    """Opens the report."""
    return partial(opened, written_report)


def test_every_figure_is_drawn_and_inside_its_card(view):
    tab = view()
    drawings = tab.locator("figure svg")
    assert drawings.count() == 2 + 2 + 5 + 2 + 1
    for drawing in drawings.all():
        box = drawing.bounding_box()
        assert box["width"] > 200
        assert box["height"] > 50


@pytest.mark.parametrize("width", [320, 700, 1900])
def test_no_window_is_too_narrow(view, width):
    tab = view(viewport={"width": width, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_follows_the_system_with_figures_on_white(view):
    tab = view(color_scheme="dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 29)"
    card = tab.locator("figure .drawing").first
    assert card.evaluate("card => getComputedStyle(card).backgroundColor") == "rgb(255, 255, 255)"


def test_paper_is_white_even_in_the_dark_and_unfolds_the_method(view):
    tab = view(color_scheme="dark")
    tab.emulate_media(media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.locator(".files").first.is_hidden()
    assert tab.pdf(format="A4").count(b"/Type /Page\n") >= 5


def test_the_contents_lead_to_their_sections(view):
    tab = view()
    tab.get_by_role("navigation").get_by_text("cross-attention").first.click()
    assert tab.evaluate("location.hash") == "#dispersion-cross"


@pytest.fixture(scope="module")
def wide_page(tmp_path_factory):
    """A table of forty columns in two groups."""
    names = [f"c{number}" for number in range(40)]
    values = [[head * (-1) ** place for place in range(40)] for head in range(3)]
    rows = [{"head": f"L0H{head}", **dict(zip(names, row, strict=True))} for head, row in enumerate(values)]
    groups = ["left"] * 10 + ["right"] * 30
    numbers = [Column(name, name, group=group) for name, group in zip(names, groups, strict=True)]
    columns = (Column("head", "head", "text"), *numbers)
    chapter = Chapter("heads", "Heads", (Article(Section([], [Table("heads", "Every head", rows, columns)])),))
    folder = tmp_path_factory.mktemp("wide")
    return write(Document("A report", "", (), (chapter,), ("signature",)), folder)


@pytest.mark.parametrize("width", [390, 1400])
def test_a_wide_table_scrolls_within_itself_and_the_name_of_the_head_stays_in_sight(opened, wide_page, width):
    tab = opened(wide_page, viewport={"width": width, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.locator(".wide .scroll").evaluate("part => part.scrollTo(10000, 0)")
    name = tab.get_by_role("rowheader", name="L0H1")
    assert 0 <= name.bounding_box()["x"] < 100
    on_top = "(cell, at) => cell === document.elementFromPoint(at.x + 5, at.y + 5)"
    assert name.evaluate(on_top, name.bounding_box()), "nothing lies over it"


def test_a_table_with_groups_of_columns_is_sorted_by_the_headings_below_them(opened, wide_page):
    tab = opened(wide_page)
    assert tab.locator("tr.groups th").all_inner_texts() == ["", "left", "right"]
    tab.get_by_role("button", name="c1", exact=True).click()
    assert tab.locator("tbody th").all_inner_texts() == ["L0H0", "L0H1", "L0H2"]
    tab.get_by_role("button", name="c0", exact=True).click()
    assert tab.locator("tbody th").all_inner_texts() == ["L0H2", "L0H1", "L0H0"]
