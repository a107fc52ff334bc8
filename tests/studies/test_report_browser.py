"""The report in a real browser, opened from its file with the network cut: silent, readable, and on any width."""

from functools import partial

import pytest


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
