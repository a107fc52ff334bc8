"""A browser is found wherever it is, and its absence is said in the last lines of a test run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import chromium

TESTS = Path(__file__).parent


@pytest.fixture
def only(tmp_path, monkeypatch):
    """Makes commands, and a path that has no others; playwright has downloaded nothing."""

    def make(**scripts: str) -> Path:
        for name, script in scripts.items():
            (tmp_path / name).write_text(f"#!{sys.executable}\n{script}\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "nothing"))
        chromium.executable.cache_clear()
        return tmp_path

    yield make
    chromium.executable.cache_clear()


def test_a_chrome_of_another_name_is_found(only):
    folder = only(**{"google-chrome": "print('Chrome 1')"})
    assert chromium.executable() == str(folder / "google-chrome")


def test_a_command_that_does_not_run_is_passed_over(only):
    folder = only(**{"chromium-browser": "raise SystemExit('install the snap')", "chrome": "print('Chrome 1')"})
    assert chromium.executable() == str(folder / "chrome")


def test_no_browser_and_no_way_to_get_one_is_no_failure(only, monkeypatch, capsys):
    only()
    monkeypatch.setattr(chromium, "PLAYWRIGHT", [sys.executable, "-c", "raise SystemExit(1)"])
    assert chromium.main() == 0
    assert "Do: python -m playwright install" in capsys.readouterr().out


def test_what_is_installed_is_used(only, monkeypatch, capsys):
    folder = only()
    script = f"import os; os.symlink({sys.executable!r}, {str(folder / 'chromium')!r})"
    monkeypatch.setattr(chromium, "PLAYWRIGHT", [sys.executable, "-c", script])
    assert chromium.main() == 0
    assert f"Pages are tested in {folder / 'chromium'}" in capsys.readouterr().out


def test_the_last_lines_say_what_was_not_tested(only, tmp_path):
    only()
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "test_page.py").write_text("def test_one(browser): ...\ndef test_two(opened): ...\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(TESTS.parent / "tools")}
    said = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path).stdout
    *_, tests, advice, counts = filter(None, said.splitlines())
    assert tests == "2 tests of pages in a browser: no Chromium or Chrome was found."
    assert advice.startswith("To run them: python -m playwright install")
    assert "2 skipped" in counts


def test_tests_name_no_place_of_one_system():
    ours = [path for path in TESTS.rglob("*.py") if path.name != Path(__file__).name]
    assert [path.name for path in ours if "/usr/" + "bin" in path.read_text(encoding="utf-8")] == []
