"""Take the picture at the top of the README: the saved view, in a real browser.

python tools/picture.py docs/images/view.png
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import normlens as nl

TEXT = "The quick brown fox, unbelievably tired, slept on the mat."
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]


def main(target: str) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        page = nl.load().trace(TEXT).save(Path(folder) / "view.html")
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        tab = browser.new_page(viewport={"width": 1180, "height": 900}, device_scale_factor=1.5)
        tab.goto(page.as_uri())
        tab.locator("#maps canvas").first.wait_for()
        tab.screenshot(path=target, full_page=True)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
