"""What the README and the documentation say can be done, can be done."""

import ast
import itertools
import re
import shlex
from inspect import get_annotations
from pathlib import Path

import pytest

import normlens as nl
from normlens import nmt
from normlens.cli.main import COMMANDS, main, parse
from normlens.views import Figure

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CARDS = sorted((ROOT / "src").rglob("README.md"))
README = PAGES[0].read_text(encoding="utf-8")
OWNERS = {
    "nl": nl,
    "lens": nl.Lens,
    "trace": nl.Trace,
    "block": nl.Block,
    "figure": Figure,
    "report": nl.Report,
    "aligned": nl.Aligned,
    "nmt": nmt,
}


def code(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_example_runs_as_it_stands(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(code((ROOT / page).read_text(encoding="utf-8"), "python")[0], {})
    assert (tmp_path / "cat.html").exists()


@pytest.mark.parametrize("owner", OWNERS)
def test_every_name_of_an_example_exists(owner):
    named = {
        name
        for page in PAGES
        for example in code(page.read_text(encoding="utf-8"), "python")
        for name in re.findall(rf"\b{owner}\.([a-zA-Z_]+)", example)
    }
    assert named
    assert {name for name in named if name not in dir(OWNERS[owner]) + list(get_annotations(OWNERS[owner]))} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_example_can_be_parsed(page):
    for example in code(page.read_text(encoding="utf-8"), "python"):
        ast.parse(example)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_token_receives_attention_and_contributes(page):
    """The words of the field: a token draws, gives, moves and sends nothing, and models are bundled."""
    other = r"embedded|looked at|looks at|\bdraws?\b|what (is|it) (really )?move[ds]|of the weight\b"
    assert re.findall(rf".*(?:{other}).*", page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", [*PAGES, *CARDS], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_can_be_pasted(page):
    for words in commands(code_lines(page.read_text(encoding="utf-8"))):
        assert understood(words), words


def test_the_readme_shows_every_command():
    assert {words[0] for words in commands(code_lines(README))} == set(COMMANDS)


@pytest.mark.parametrize("name", [*COMMANDS, "nmt train", "nmt translate", ""])
def test_every_example_of_the_help_can_be_pasted(name, capsys):
    with pytest.raises(SystemExit):
        main([*name.split(), "--help"])
    for words in commands(capsys.readouterr().out.partition("examples:\n")[2].splitlines()):
        assert understood(words), words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_named_in_a_sentence_exists(page):
    for named in re.findall(r"`(normlens [^`]+)`", page.read_text(encoding="utf-8")):
        (words,) = commands([named.replace("\n", " ")])
        has_flags = any(word.startswith("--") for word in words)
        assert words[0] in COMMANDS or words[0] == "--version", named
        assert not has_flags or understood(words), named


def test_a_command_with_a_mistake_is_not_understood():
    (piped,) = commands(["cat text.de | normlens nmt translate --model de-en --beams 1 - > text.en  # a comment"])
    assert piped == ["nmt", "translate", "--model", "de-en", "--beams", "1", "-"]
    assert understood(piped)
    for mistake in ("show a --htlm v.html", "show a --htm v.html", "report", "aer links.txt", "show a text", "shw"):
        assert not understood(mistake.split()), mistake


def code_lines(page: str) -> list[str]:
    """Lines of indented blocks, and of fenced ones that are not Python; a line that goes on is joined to its next."""
    page = page.replace("\\\n", " ")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    fenced = [line for language, block in blocks if language != "python" for line in block.splitlines()]
    return fenced + re.findall(r"^ {4}.*$", page, re.MULTILINE)


def commands(lines: list[str]) -> list[list[str]]:
    """The words behind `normlens` of every line that runs it, as a shell would split them."""
    found = []
    for line in lines:
        if re.match(r"\s*(.*\| )?normlens ", line):
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|>&;")
            lexer.whitespace_split = True
            words = list(lexer)
            after = words[words.index("normlens") + 1 :]
            found.append(list(itertools.takewhile(lambda word: not set(word) <= set("|>&;"), after)))
    return found


def understood(words: list[str]) -> bool:
    """Whether the command line takes these words; nothing is run."""
    try:
        return callable(parse(words).run)
    except SystemExit as stopped:
        return stopped.code == 0  # --version


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_every_make_target_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"(?:`|^    )make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
        assert named <= targets, (page, named - targets)
