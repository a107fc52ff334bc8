"""The browser that pages are tested in: any Chromium or Chrome that runs.

python tools/chromium.py    # says which one, and installs one where there is none
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
QUIET = "no-sandbox disable-gpu disable-background-networking disable-component-update disable-sync no-first-run"
ADVICE = "python -m playwright install --with-deps chromium, or install chromium with the packages of your system"
PLAYWRIGHT = [sys.executable, "-m", "playwright", "install", "chromium"]
PATIENCE = 900  # seconds for one installation


@cache
def executable() -> str | None:
    """The first browser that runs: one on the path, or the one that playwright downloaded."""
    return next(filter(_runs, _candidates()), None)


def launched(playwright):
    """That browser, started by playwright without asking for anything from the network."""
    return playwright.chromium.launch(executable_path=executable(), args=[f"--{flag}" for flag in QUIET.split()])


def main() -> int:
    """Install a browser if none runs, and say how it went; never a failure, as the other tests need none."""
    for commands in ([], [PLAYWRIGHT], _system_packages()):
        for command in commands:
            print(f"No Chromium or Chrome was found; trying: {' '.join(command)}", flush=True)
            _run(command)
        executable.cache_clear()
        if found := executable():
            print(f"Pages are tested in {found}")
            return 0
    print(f"Pages will not be tested: no Chromium or Chrome could be installed.\n  Do: {ADVICE}.")
    return 0


def _candidates() -> Iterator[str]:
    yield from filter(None, map(shutil.which, NAMES))
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return
    with sync_playwright() as playwright:
        downloaded = playwright.chromium.executable_path
    yield downloaded


def _runs(path: str) -> bool:
    """Whether it starts at all: some systems have a command of that name that only advertises a package."""
    return _run([path, "--version"], patience=60)


def _run(command: list[str], *, patience: float = PATIENCE) -> bool:
    try:
        return not subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=patience).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False


def _system_packages() -> list[list[str]]:
    """Commands that install Debian's package, where that needs no password."""
    if shutil.which("apt-get") is None:
        return []
    if os.geteuid() == 0:
        root = []
    elif _run(["sudo", "-n", "true"]):
        root = ["sudo", "-n"]
    else:
        return []
    install = "apt-get install -y -qq --no-install-recommends chromium"
    return [[*root, "apt-get", "update", "-qq"], [*root, *install.split()]]


if __name__ == "__main__":
    sys.exit(main())
