"""Small fixed runs write what they wrote before; README.md says where each golden comes from."""

from __future__ import annotations

import difflib
import io
import shlex
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from settled import same, settled

from normlens.alignment import Gold, default_sample
from normlens.cli.main import main

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parent
RUNS = ("report", "alignment", "view", "doctor")  # a function here and a folder beside
STORED = sorted(str(path.relative_to(FOLDER)) for run in RUNS for path in (FOLDER / run).rglob("*.*"))
UPDATE = "python -m pytest tests/golden --update-goldens"
TEXTS = """\
Bread rises because yeast is alive.
When it is mixed with flour and water, it begins to feed on the sugars in the dough.
Twice a day, on most coasts, the sea climbs up the beach and slips away again.
The sun (so much larger, but so much further away) plays a smaller part.
By seven o'clock the square was already full.
"Last week's was too salty," he told the girl behind the counter.
"""
WORDS = 12  # the longest sentence taken from the gold sample


@pytest.fixture(scope="module")
def made(tmp_path_factory, request) -> dict[str, str]:
    """What every run wrote, by path, as settled text; stored when that is asked for."""
    texts = _run_all(tmp_path_factory.mktemp("golden"))
    if request.config.getoption("--update-goldens"):
        _store(texts)
    return texts


@pytest.mark.parametrize("name", STORED)
def test_a_run_writes_what_it_wrote(name, made):
    golden, text = (FOLDER / name).read_text(encoding="utf-8"), made.get(name, "")
    if not same(text, golden):
        lines = difflib.unified_diff(golden.splitlines(), text.splitlines(), "golden", "now", n=1, lineterm="")
        pytest.fail("\n".join([f"{name} changed. If this is meant: {UPDATE}", *lines]), pytrace=False)


def test_every_file_of_a_run_has_its_golden(made):
    assert sorted(made) == sorted(str(path.relative_to(FOLDER)) for run in RUNS for path in (FOLDER / run).rglob("*.*"))


def report() -> None:
    """Every study of three pairs of sentences, by the bundled MiniLM."""
    Path("texts.txt").write_text(TEXTS, encoding="utf-8")
    run("report --corpus texts.txt --pairs --length 48 --out report", prints="report/terminal.txt")


def alignment() -> None:
    """Both bundled translation models on the short pairs of the bundled gold sample."""
    sample = default_sample()
    rows = [row for row in zip(sample.pairs, sample.golds, strict=True) if max(map(len, row[0])) <= WORDS]
    _write_lines("text.de", (" ".join(source) for (source, _), _ in rows))
    _write_lines("text.en", (" ".join(target) for (_, target), _ in rows))
    _write_lines("gold.talp", (_talp(gold) for _, gold in rows))
    run(
        "align --source text.de --target text.en --gold gold.talp --gradients saliency --report alignment "
        "--out alignment/links.txt --confidence",
        prints="alignment/terminal.txt",
    )


def view() -> None:
    """One sentence as a page and in the terminal."""
    run("show 'The cat sat on the mat.' --layer 2 --html view/view.html", prints="view/terminal.txt")


def doctor() -> None:
    """The proof of a small T5 with random weights."""
    run("doctor t5 --tiny", prints="doctor/terminal.txt")


def run(command: str, *, prints: str) -> None:
    """Run a command; what it prints becomes a file."""
    with redirect_stdout(io.StringIO()) as printed:
        assert main(shlex.split(command)) == 0
    Path(prints).write_text(printed.getvalue(), encoding="utf-8")


def _run_all(folder: Path) -> dict[str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "100")
        for name in RUNS:
            Path(name).mkdir()
            globals()[name]()
    return {
        _golden_name(path.relative_to(folder)): settled(path.name, path.read_text(encoding="utf-8"))
        for path in folder.glob("*/**/*.*")
        if _is_kept(path)
    }


def _is_kept(path: Path) -> bool:
    """Pictures of pixels and states of runs cannot be read; a table's .json has the rows of its .csv."""
    return path.suffix in (".html", ".csv", ".svg", ".txt") or path.name == "findings.json"


def _golden_name(path: Path) -> str:
    return f"{path}.txt" if path.suffix == ".svg" else str(path)


def _store(texts: dict[str, str]) -> None:
    for name in set(STORED) - set(texts):
        (FOLDER / name).unlink()
    for name, text in texts.items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(text, encoding="utf-8")


def _talp(gold: Gold) -> str:
    return " ".join(f"{i + 1}{'-' if (i, j) in gold.sure else 'p'}{j + 1}" for i, j in sorted(gold.possible))


def _write_lines(path: str, lines: Iterable[str]) -> None:
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
