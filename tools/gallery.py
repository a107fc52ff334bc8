"""Make the pictures of the README anew: python tools/gallery.py

The view, the explorer and its controls are photographed in Chromium as they open; nothing is retouched.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import chromium
import normlens as nl
from normlens.alignment import default_lens

IMAGES = Path(__file__).parent.parent / "docs" / "images"
SENTENCE = "The quick brown fox, unbelievably tired, slept on the mat."
GERMAN, ENGLISH = "Ich möchte Ihnen für diesen Bericht danken.", "I would like to thank you for this report."


def main() -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = chromium.launched(playwright)

        def photograph(name: str, trace: nl.Trace, *, dark: bool = False, height: int = 860, **look) -> None:
            page = trace.save(Path(folder) / f"{name}.html", **look)
            tab = browser.new_page(
                viewport={"width": 1280, "height": height},
                device_scale_factor=1.25,
                color_scheme="dark" if dark else "light",
            )
            tab.goto(page.as_uri())
            tab.wait_for_selector("[data-ready]")
            tab.screenshot(path=IMAGES / f"{name}.png")

        trace = nl.load().trace(SENTENCE)
        photograph("view", trace, layers=2)
        photograph("heads", trace, view="grid", height=590)
        translated = default_lens("de-en").trace(source=GERMAN, target=ENGLISH)
        photograph("lines", translated, view="lines", layers=1, dark=True, height=640)
        explorer(browser)
        browser.close()


def explorer(browser) -> None:
    """The explorer as a user starts it, with a sentence shown."""
    command = [sys.executable, "-m", "normlens", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
            tab = browser.new_page(viewport={"width": 1280, "height": 900}, device_scale_factor=1.25)
            tab.goto(address)
            tab.locator("textarea").first.fill(SENTENCE)
            tab.get_by_role("button", name="Show").click()
            tab.wait_for_selector('.stage canvas, [aria-busy="false"] .stage canvas', timeout=120_000)
            tab.wait_for_timeout(500)
            tab.screenshot(path=IMAGES / "explorer.png")
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
