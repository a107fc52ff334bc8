"""`normlens heads` as a user types it."""

import json

import pytest

from normlens.cli.heads import in_order
from normlens.cli.main import main
from normlens.studies import StudyError

TEXT = "The mill stood by the river, and still it stands there.\nNobody knew why it was there, or for whom.\n"


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus.txt").write_text(TEXT)
    return str(tmp_path / "corpus.txt")


def test_a_few_columns_are_printed_and_no_line_is_wider_than_the_terminal(corpus, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["heads", "--corpus", corpus, "--rows", "3", "--sort", "sink_rate"]) == 0
    said = capsys.readouterr().out
    table = said[said.index("  Every head by sink_rate") :].splitlines()
    assert table[1].split()[:4] == ["head", "sink", "rate", "α"]
    assert len(table[2:5]) == 3
    assert table[5].startswith("  69 more rows")
    assert "All heads: --rows 0" in said
    assert max(map(len, table[:7])) <= 102
    assert "The importance of heads is left out" in said


def test_json_holds_every_column_of_every_head_and_the_files_do_too(corpus, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'normlens[report]'")
    out = tmp_path / "out"
    assert main(["heads", "--corpus", corpus, "--json", "--out", str(out), "--sort", "entropy_norms"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert len(printed["heads"]) == 72
    assert {"kind", "layer", "head", "role", "previous_norms", "importance"} <= printed["heads"][0].keys()
    entropies = [row["entropy_norms"] for row in printed["heads"]]
    assert entropies == sorted(entropies, reverse=True)
    assert len((out / "tables" / "heads_self.csv").read_text(encoding="utf-8").splitlines()) == 73
    assert (out / "figures" / "maps_weights_self.svg").exists()
    assert (out / "heads.json").exists()


def test_a_column_that_is_not_there_is_said_after_the_heads(corpus, capsys):
    assert main(["heads", "--corpus", corpus, "--sort", "entropy_norm"]) == 1
    printed = capsys.readouterr()
    assert "  Every head\n" in printed.out
    assert "There is no column 'entropy_norm' to sort by.\n  Do: did you mean 'entropy_norms'?" in printed.err


def test_a_loss_that_the_model_does_not_have_is_refused_before_the_run(corpus, capsys):
    assert main(["heads", "--corpus", corpus, "--loss", "causal"]) == 1
    assert "predicts nothing, so there is no loss" in capsys.readouterr().err


def test_numbers_are_sorted_from_the_largest_on_texts_by_the_alphabet_and_nothing_comes_last():
    values = [(0.1, "b"), (None, None), (0.3, "a")]
    rows = [{"layer": layer, "share": share, "kind_of": text} for layer, (share, text) in enumerate(values)]
    assert [row["layer"] for row in in_order(rows, "share")] == [2, 0, 1]
    assert [row["layer"] for row in in_order(rows, "kind_of")] == [2, 0, 1]
    assert in_order(rows, "layer") == rows
    with pytest.raises(StudyError, match="no column 'shares'"):
        in_order(rows, "shares")
