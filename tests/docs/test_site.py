"""The documentation builds without a warning, its tutorial runs, and its pages work offline in a browser."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it; the tutorial runs in the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-4000:]
    return folder


@pytest.fixture
def models(site, browser):
    """Opens the page of models with the network cut, and insists on silence at the end."""
    complaints, elsewhere, contexts = [], [], []

    def open_page(**options):
        contexts.append(browser.new_context(offline=True, **options))
        tab = contexts[-1].new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: elsewhere.append(request.url))
        tab.goto((site / "models" / "index.html").as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in elsewhere if not url.startswith((site.as_uri(), "data:"))] == []


def types(tab) -> list[str]:
    """The model types that can be seen."""
    return [row.inner_text() for row in tab.locator(".models tbody tr:visible td:first-child").all()]


def test_the_tutorial_shows_what_its_cells_return(site):
    page = (site / "tutorial" / "index.html").read_text(encoding="utf-8")
    assert page.count("<iframe") == 3  # the trace, the bars, the cross-attention
    assert page.count('class="dataframe"') == 3
    assert "Bericht = report" in page
    assert "output-" not in page  # every placeholder is filled


def test_every_public_name_can_be_linked_to(site):
    page = (site / "api" / "index.html").read_text(encoding="utf-8")
    named = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for name in named if f'id="{name}"' not in page] == []


def test_the_table_of_models_is_a_page_long(models):
    tab = models(viewport={"width": 1400, "height": 900})
    assert len(types(tab)) == 25
    assert tab.evaluate("document.documentElement.scrollHeight") < 5000
    assert tab.locator("output").inner_text() == "1 to 25 of 788"


def test_a_search_finds_every_type_that_has_all_the_words(models):
    tab = models()
    tab.get_by_label("Find a model").fill("Deepseek bmm")
    found = types(tab)
    assert "deepseek_v4" in found
    assert all("deepseek" in kind for kind in found)
    tab.get_by_label("Find a model").fill("no such model")
    assert types(tab) == []
    assert tab.locator("output").inner_text() == "no model type matches"
    tab.get_by_label("Find a model").fill("")
    assert len(types(tab)) == 25


def test_a_result_can_be_chosen_and_its_pages_turned(models):
    tab = models()
    tab.get_by_label("Result").select_option("refused")
    count = int(re.search(r"of (\d+)", tab.locator("output").inner_text())[1])
    seen = types(tab)
    assert tab.get_by_role("button", name="previous").is_disabled()
    while tab.get_by_role("button", name="next").is_enabled():
        tab.get_by_role("button", name="next").click()
        seen += types(tab)
    assert len(seen) == len(set(seen)) == count
    assert set(tab.locator(".models tbody tr:visible td:nth-child(2)").all_inner_texts()) == {"refused"}
    tab.get_by_label("Find a model").fill("bert")
    assert tab.locator("output").inner_text().startswith(("1 to", "no"))


def test_without_javascript_the_whole_table_remains(models):
    tab = models(java_script_enabled=False)
    assert tab.locator(".models tbody tr").count() == 788
    assert tab.locator(".models-controls").count() == 0


@pytest.mark.parametrize("width", [390, 800, 1400])
def test_no_page_is_wider_than_the_screen(models, width):
    tab = models(viewport={"width": width, "height": 900})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.get_by_label("Find a model").bounding_box()["x"] >= 0
