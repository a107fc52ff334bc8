"""Settings every test shares. Nothing in the tests reaches for a network."""

import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # read when huggingface_hub is imported, so before everything else

import pytest
import torch
from hypothesis import settings

import chromium

NO_BROWSER = "no Chromium or Chrome was found"

settings.register_profile("house", deadline=None, max_examples=30)
settings.load_profile("house")


def pytest_addoption(parser):
    parser.addoption("--update-goldens", action="store_true", help="store what the runs of tests/golden write now")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """The last lines say what was not tested for want of a browser."""
    result = yield
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if NO_BROWSER in str(report.longrepr)]
    if skipped:
        terminalreporter.section("NOT TESTED", red=True)
        terminalreporter.line(f"{len(skipped)} tests of pages in a browser: {NO_BROWSER}.")
        terminalreporter.line(f"To run them: {chromium.ADVICE}; then again.")
    return result


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Two workers on two cores: one thread each, for what fixtures of a whole file do too."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def own_measures_forgotten():
    """Measures that a test declares are gone after it."""
    from normlens import measures

    before = set(measures.QUANTITIES)
    yield
    for name in reversed([name for name in measures.QUANTITIES if name not in before]):
        measures.forget(name)


@pytest.fixture(scope="session")
def minilm():
    """The bundled model."""
    import normlens as nl

    return nl.load()


@pytest.fixture(scope="module")
def browser():
    """Any Chromium or Chrome there is; nothing is downloaded here."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    if chromium.executable() is None:
        pytest.skip(NO_BROWSER)
    with sync_api.sync_playwright() as playwright:
        browser = chromium.launched(playwright)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Opens pages with the network cut and, at the end of the test, insists on silence: no error, no other request."""
    complaints, requests, contexts, pages = [], [], [], []

    def open_page(path: Path, **options):
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        pages.append(path.as_uri())
        tab.goto(path.as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if url not in pages and not url.startswith(("data:", "about:srcdoc"))] == []
