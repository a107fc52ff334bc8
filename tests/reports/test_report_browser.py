"""The report in a real browser, opened from its file with the network cut: silent, readable, and on any width.

Runs where playwright and Debian's chromium are installed; needs no network and downloads no browser.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from made_findings import dispersion, findings

from normlens.reports import write

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
CHROMIUM = Path("/usr/bin/chromium")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="no /usr/bin/chromium: apt-get install chromium")
QUIET = "no-sandbox disable-gpu disable-background-networking disable-component-update disable-sync no-first-run"


@pytest.fixture(scope="module")
def browser() -> Iterator["sync_api.Browser"]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=[f"--{flag}" for flag in QUIET.split()]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    found = findings(kinds=("encoder",), points=60)
    found = replace(found, dispersion=found.dispersion | {"cross": dispersion("cross")})
    return write(found, tmp_path_factory.mktemp("report"))


@pytest.fixture
def view(browser, report):
    """Opens the report and, at the end of the test, insists on silence: no error, no request but the file itself."""
    complaints, requests, contexts = [], [], []

    def open_page(**options):
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(report.as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if url != report.as_uri() and not url.startswith("data:")] == []


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
