"""The report stands alone, is the same every time, and is whole or not there."""

import base64
import csv
import errno
import hashlib
import json
import os
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from made_findings import categories, correlation, dispersion, findings, found, frequency, two_kinds
from page_reader import Reader

from normlens import exhibits, studies
from normlens.errors import NormlensError
from normlens.exhibits import ReportError
from normlens.studies import Report
from normlens.views import DrawingMissing

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
NAN = float("nan")


def ragged():
    """Every kind of hole at once."""
    spread = replace(dispersion(layers=3, heads=4, missing=2, singular=0), inputs=None, notes=("no x",))
    results = {
        "dispersion": spread,
        "categories": categories(layers=3, heads=4, missing=2, absent=(1,)),
        "correlation": correlation(rho=(NAN,) * 4, points=0, layers=3, heads=4),
        "frequency": frequency(rho_weight=NAN, rho_norm=NAN, points=6, types=2),
    }
    return found({name: {"self": result} for name, result in results.items()})


def write(findings, folder) -> Path:
    return Report(findings).save(folder)


SHAPES = {
    "one head": lambda: findings(layers=1, heads=1, points=30, types=3),
    "holes": ragged,
    "three kinds": lambda: findings(
        kinds=("encoder", "decoder", "cross"),
        studies=("categories", "frequency"),
        causal=("decoder",),
        layers=1,
        heads=1,
        points=40,
    ),
    "one study": lambda: findings(studies=("correlation",)),
    "nothing": lambda: findings(studies=()),
    "hostile names": lambda: findings(
        names=("</svg><b>", "$x^2_{", "_hidden", "{{style}}", "猫\u202e", "a" * 60, "\ud800"),
        studies=("categories", "frequency"),
        notes=("</dd><script>alert(1)</script>",),
    ),
}


@pytest.fixture(scope="module", params=SHAPES, ids=lambda name: name.replace(" ", "-"))
def written(request, tmp_path_factory) -> Path:
    return write(SHAPES[request.param](), tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def correlated(tmp_path_factory) -> Path:
    """The page of one study, in a folder that nobody writes to."""
    return write(findings(studies=("correlation",)), tmp_path_factory.mktemp("report"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_page_is_well_formed_and_asks_for_nothing(written):
    text = written.read_text(encoding="utf-8")
    page = Reader(text)
    assert len(page.ids) == len(set(page.ids))
    assert "http://" not in text
    assert "https://" not in text
    assert text.count("<script") == 1
    assert "<b>" not in re.sub(r"<b>(Figure|Table) \d+\.</b>|<b>Mind:</b>", "", text)
    assert "{%" not in text
    script = re.search(r"(?s)<script>(.*?)</script>", text)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    assert f'content="{policy}"' in text


def test_every_file_and_anchor_referred_to_is_there(written):
    page = Reader(written.read_text(encoding="utf-8"))
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in page.ids
        elif not link.startswith("data:"):
            assert (written.parent / link).is_file()


def test_every_file_there_is_referred_to(written):
    links = set(Reader(written.read_text(encoding="utf-8")).links)
    assert contents(written.parent).keys() - links == {"report.html"}


def test_what_is_not_defined_is_never_nan(written):
    for name, content in contents(written.parent).items():
        if name.endswith(".json"):
            json.loads(content, parse_constant=pytest.fail)
        if name.endswith((".html", ".csv", ".json")):
            text = re.sub(rb"base64,[^\"]*", b"", content).decode()
            assert not re.search(r"(?<![A-Za-z])nan(?![A-Za-z])", text, re.IGNORECASE), name


def test_tables_read_back_the_same_from_both_files(written):
    for path in (written.parent / "tables").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        same = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        assert len(rows) == len(same) > 0
        for row, other in zip(rows, same, strict=True):
            assert row.keys() == other.keys()
            for key, value in other.items():
                if not isinstance(value, str):
                    assert row[key] == ("" if value is None else str(value))


def test_figures_are_svg_and_png_with_words_for_who_cannot_see(written):
    for path in (written.parent / "figures").glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert b"<dc:date>" not in path.read_bytes()
    for label in Reader(written.read_text(encoding="utf-8")).labels:
        assert re.search(r"\d", label)


def test_the_same_findings_give_the_same_bytes(written_report, tmp_path):
    first, second = contents(written_report.parent), contents(write(two_kinds(), tmp_path).parent)
    assert first.keys() == second.keys()
    assert {name for name in first if first[name] != second[name]} == set()


def test_figures_of_one_page_share_no_id_and_leave_settings_alone(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    text = write(findings(studies=("dispersion",)), tmp_path).read_text(encoding="utf-8")
    assert dict(matplotlib.rcParams) == before
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    assert used <= set(Reader(text).ids)


def test_headline_numbers(correlated):
    made = json.loads((correlated.parent / "findings.json").read_text(encoding="utf-8"))
    assert made["signature"] == "model:made@0 | corpus:by hand | length:128 | seed:0 | version:0.1.0"
    assert made["error"] == 3.2e-7
    assert made["studies"]["correlation"]["self"]["correlation"][1]["rho"] == -0.69
    assert made["found"]["self"] == made["studies"]["correlation"]["self"]["sentences"][:1]


@pytest.mark.slow
def test_a_large_model_stays_a_small_file(tmp_path):
    path = write(findings(layers=12, heads=12, points=5000, types=500), tmp_path)
    assert path.stat().st_size < 3_000_000
    path = write(findings(layers=48, heads=64, studies=("dispersion",)), tmp_path)
    assert path.stat().st_size < 3_000_000


def test_a_place_that_cannot_be_written_is_an_error_with_advice(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(ReportError, match=r"(?s)cannot be written: .*taken.*\n.*Usual cause.*\n.*Do: choose"):
        write(findings(studies=()), tmp_path / "taken")
    assert issubclass(ReportError, NormlensError)


def test_a_full_disk_leaves_the_old_report_whole(correlated, tmp_path, monkeypatch):
    shutil.copytree(correlated.parent, tmp_path, dirs_exist_ok=True)
    before = contents(tmp_path)

    def full(self, data):
        with open(self, "wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ReportError, match="No space left on device"):
        write(findings(studies=()), tmp_path)
    assert contents(tmp_path) == before


def test_without_matplotlib_the_extra_is_named_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(DrawingMissing, match=r"pip install 'normlens\[report\]'"):
        write(findings(studies=("correlation",)), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_matplotlib_is_asked_for_only_where_something_is_drawn():
    for path in (p for room in (exhibits, studies) for p in Path(room.__file__).parent.rglob("*.py")):
        assert not re.search(r"(?m)^(import|from) matplotlib", path.read_text(encoding="utf-8")), path


def test_other_findings_give_another_page(correlated, tmp_path):
    other = write(findings(seed=1, studies=("correlation",)), tmp_path)
    pages = {hashlib.sha256(page.read_bytes()).digest() for page in (correlated, other)}
    assert len(pages) == 2
