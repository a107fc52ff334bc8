"""`normlens aer` as a user types it."""

import argparse
import json

import pytest

from normlens.alignment import LinksError
from normlens.cli import aer
from normlens.errors import NormlensError


def call(*arguments):
    parser = argparse.ArgumentParser()
    aer.register(parser.add_subparsers())
    options = parser.parse_args(["aer", *map(str, arguments)])
    return options.run(options)


@pytest.fixture
def files(tmp_path):
    """Two sentences: 3 links found, of which 1 of 3 sure ones, 1 possible and 1 wrong."""
    for name, text in {
        "gold.talp": "1-1 2-2 2p3\n1-2\n",
        "sure.txt": "0-0 1-1\n0-1\n",
        "possible.txt": "1-2\n\n",
        "swapped.txt": "1-1 2-2\n2-1\n",
        "links.txt": "0-0:0.9 1-2\n0-0\n",
        "better.txt": "0-0 1-1\n0-1\n",
        "counted.txt": "1-1 3-2\n1-1\n",
        "short.txt": "0-0\n",
        "source": "das Haus\nja\n",
        "target": "the old house\nyes indeed\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_file_of_links_is_scored(files, capsys):
    assert call(files / "links.txt", "--gold", files / "gold.talp") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "links.txt"
    assert shown[1].split()[:3] == ["AER", "50.0", "%"]
    assert shown[2].split()[:3] == ["precision", "66.7", "%"]
    assert shown[3].split()[:3] == ["recall", "33.3", "%"]
    assert shown[4] == "  2 sentences, 3 links: 1 of 3 sure links found, 1 links wrong"
    assert shown[5].startswith("gold:gold.talp | format:talp | first:1 | links_first:0 | bootstrap:1000 | seed:0")


@pytest.mark.parametrize(
    ("links", "flags"),
    [
        ("links.txt", ["--gold", "sure.txt", "--possible", "possible.txt"]),
        ("links.txt", ["--gold", "gold.talp", "--source", "source", "--target", "target", "--encoding", "latin-1"]),
        ("counted.txt", ["--gold", "gold.talp", "--links-first", "1", "--links-reverse"]),
    ],
)
def test_every_way_of_writing_the_same_gives_the_same(files, capsys, monkeypatch, links, flags):
    monkeypatch.chdir(files)
    assert call(links, *flags, "--json") == 0
    (got,) = json.loads(capsys.readouterr().out)["files"]
    assert got["counts"] == {"links": 3, "sure": 3, "sure_hits": 1, "possible_hits": 2, "sentences": 2}
    assert (got["aer"], got["precision"], got["recall"]) == pytest.approx((1 / 2, 2 / 3, 1 / 3))
    low, high = got["intervals"]["aer"]
    assert 0 <= low <= 0.5 <= high <= 1


def test_gold_the_other_way_round_and_counted_from_one(files, capsys):
    flags = ["--gold", files / "swapped.txt", "--reverse", "--first", 1, "--json"]
    assert call(files / "better.txt", *flags) == 0
    got = json.loads(capsys.readouterr().out)
    assert got["files"][0]["aer"] == 0
    assert "first:1 | gold_order:target-source" in got["signature"]


def test_two_files_are_compared(files, capsys):
    flags = ["--gold", files / "gold.talp", "--against", files / "better.txt"]
    assert call(files / "links.txt", *flags) == 0
    shown = capsys.readouterr().out
    assert "AER of links.txt minus AER of better.txt\n  +50.0 points" in shown
    assert "not significant at 5 %" in shown
    assert "test:approximate randomisation×10000" in shown
    assert call(files / "links.txt", *flags, "--json") == 0
    got = json.loads(capsys.readouterr().out)
    assert [one["alignment"] for one in got["files"]] == ["links.txt", "better.txt"]
    assert got["comparison"]["difference"] == pytest.approx(0.5)
    assert 0 < got["comparison"]["p"] <= 1


def test_a_score_that_is_not_defined_is_a_dash_or_null(files, capsys):
    (files / "none.txt").write_text("\n\n")
    assert call(files / "none.txt", "--gold", files / "gold.talp") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1].split()[:2] == ["AER", "100.0"]
    assert shown[2].split() == "precision - 95 % of resamples: -".split()
    assert call(files / "none.txt", "--gold", files / "gold.talp", "--json") == 0
    (got,) = json.loads(capsys.readouterr().out)["files"]
    assert got["precision"] is None
    assert got["intervals"]["precision"] == [None, None]


def test_links_that_seem_misread_are_doubted(files, capsys):
    (files / "swapped.links").write_text("0-0 1-1\n1-0\n")
    assert call(files / "swapped.links", "--gold", files / "gold.talp", "--json") == 0
    captured = capsys.readouterr()
    assert "normlens: swapped.links: AER 33.3 % would be 0.0 % with every link read the other way round" in captured.err
    assert json.loads(captured.out)["files"][0]["aer"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("links", "flags", "said"),
    [
        ("short.txt", ["--gold", "gold.talp"], "short.txt has 1 lines for 2 lines of gold.talp"),
        ("links.txt", ["--gold", "gold.talp", "--against", "short.txt"], "short.txt has 1 lines"),
        ("links.txt", ["--gold", "gold.talp", "--source", "target", "--target", "source"], "gold.talp:1: '2p3'"),
        ("counted.txt", ["--gold", "gold.talp", "--source", "source"], "counted.txt:1: '3-2' names source word 3"),
        ("links.txt", ["--gold", "gold.talp", "--source", "short.txt"], "gold.talp has 2 lines for 1 source sentences"),
        ("gold.talp", ["--gold", "gold.talp"], "gold.talp:1: a possible link, '2p3', which only gold can have"),
    ],
)
def test_files_that_do_not_fit_are_refused(files, monkeypatch, links, flags, said):
    monkeypatch.chdir(files)
    with pytest.raises(LinksError, match=said):
        call(links, *flags)


def test_a_missing_file_is_refused(files):
    with pytest.raises(NormlensError, match="There is no file"):
        call(files / "links.txt", "--gold", files / "nothing")


def test_an_unknown_encoding_is_misuse(files, capsys):
    with pytest.raises(SystemExit):
        call(files / "links.txt", "--gold", files / "gold.talp", "--encoding", "klingon")
    assert "there is no text encoding 'klingon'" in capsys.readouterr().err
