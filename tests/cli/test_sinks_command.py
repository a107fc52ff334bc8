"""`normlens sinks` as a user types it."""

import json

import pytest

from normlens.cli.main import main

TEXT = "The mill stood by the river, and still it stands there.\nNobody knew why it was there, or for whom.\n"


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus.txt").write_text(TEXT)
    return str(tmp_path / "corpus.txt")


def test_the_table_is_printed(corpus, capsys):
    assert main(["sinks", "--corpus", corpus]) == 0
    said = capsys.readouterr().out
    assert "Sinks of every head, the highest sink rate first" in said
    assert "no-op" in said


def test_json_holds_every_head_and_the_threshold_is_in_the_signature(corpus, capsys):
    assert main(["sinks", "--corpus", corpus, "--threshold", "0.2", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    rows = printed["tables"]["sinks_self"]
    assert len(rows) == 72
    assert {"layer", "head", "sink_rate", "sink_rate_norms", "sink_position", "sink_kind"} <= rows[0].keys()
    assert "choices:sinks(threshold=0.2)" in printed["signature"]


def test_a_threshold_that_is_no_share_is_refused_in_words(corpus, capsys):
    assert main(["sinks", "--corpus", corpus, "--threshold", "3"]) == 1
    assert "threshold must be above 0 and below 1 (got 3)" in capsys.readouterr().err


def test_a_run_is_continued_only_with_the_same_threshold(corpus, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["sinks", "--corpus", corpus, "--out", out]) == 0
    assert (tmp_path / "out" / "figures" / "sinks_self.svg").exists()
    assert main(["sinks", "--corpus", corpus, "--out", out, "--threshold", "0.2", "--resume"]) == 1
    assert "studies: sinks then, sinks(threshold=0.2) now" in capsys.readouterr().err
