"""What the README and the documentation say can be done, can be done."""

import re
import shlex
from pathlib import Path

import pytest

import normlens as nl
from normlens.cli.main import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
README = PAGES[0].read_text(encoding="utf-8")


def code(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_example_runs_as_it_stands(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(code((ROOT / page).read_text(encoding="utf-8"), "python")[0], {})
    assert (tmp_path / "cat.html").exists()


def test_every_name_of_the_second_example_exists(minilm):
    trace = minilm.trace("a b")
    example = code(README, "python")[1]
    for owner, thing in (("block", trace.blocks[0]), ("trace", trace), ("lens", minilm), ("nl", nl)):
        names = re.findall(rf"\b{owner}\.([a-z_]+)", example)
        assert names
        assert [name for name in names if not hasattr(thing, name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_line_is_understood(page, capsys):
    for line in re.findall(
        r"^(?:    |\$ )?normlens ((?:show|serve|report|study|align|aer|nmt|reproduce|doctor).*)$",
        page.read_text(encoding="utf-8"),
        re.MULTILINE,
    ):
        command = re.split(r"\s{3,}", line)[0]
        with pytest.raises(SystemExit) as stopped:
            main([*shlex.split(command), "--help"])
        assert stopped.value.code == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_every_make_target_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"(?:`|^    )make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
        assert named <= targets, (page, named - targets)
