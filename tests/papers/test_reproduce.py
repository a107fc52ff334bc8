"""From end to end with stand-ins: what is run, printed, written and refused."""

import csv
import json
import re
from dataclasses import replace

import pytest
from paper_findings import findings
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

import normlens as nl
from normlens.cli import reproduce as command
from normlens.cli.main import parse
from normlens.corpora import CorpusError
from normlens.exhibits import files
from normlens.lens import tiny_subject
from normlens.models.default import default_folder
from normlens.papers import DataMissing, ReproductionError, compare, read, reproduce
from normlens.papers import kobayashi2020 as expected
from normlens.studies import study

pytestmark = pytest.mark.slow


def asked(*arguments):
    """The options of the command."""
    return parse(["reproduce", *map(str, arguments)])


def run(*arguments):
    options = asked("kobayashi2020", *arguments)
    return options.run(options)


@pytest.fixture(scope="module")
def small(minilm, pkl):
    return reproduce(minilm, read(pkl))


def test_the_data_is_counted_before_anything_is_run(pkl, sequences, small):
    """And the run counts the same."""
    data = read(pkl)
    assert data.checksums is not None
    assert data.checksums["sequences"] == len(sequences)
    assert data.checksums["tokens"] == sum(map(len, sequences))
    assert data.checksums["[SEP] tokens"] == 2 * len(sequences)
    _, comparison = small
    counted = {
        f"{c.what}, {c.where}" if c.where else c.what: c.measured for c in comparison.cells if c.source == "Data"
    }
    assert counted == data.checksums
    assert data.stand_in.startswith(f"It is not the paper's 992 sequences: {len(sequences)} sequences, not 992;")
    assert read(pkl, limit=2).checksums == read(pkl, limit=2).checksums | {"sequences": 2, "[SEP] tokens": 4}


def test_the_papers_checksums_are_recognised(pkl):
    assert replace(read(pkl), checksums=dict(expected.DATA)).stand_in == ""


def test_it_is_run_as_the_paper_ran_it(minilm, pkl, small):
    """128 tokens, the four categories, ranks by vocabulary: what `study` does for BERT when nothing is asked for."""
    found, comparison = small
    plain = study(minilm, pkl, length=128, ranks="vocabulary")
    assert found.run.signature == plain.run.signature
    assert found["correlation"]["self"].rho.tolist() == plain["correlation"]["self"].rho.tolist()
    assert found["frequency"]["self"].occurrences.norm == plain["frequency"]["self"].occurrences.norm
    (norm,) = [cell for cell in comparison.cells if cell.what == "ρ(rank, ‖f(x)‖)"]
    assert norm.measured == found["frequency"]["self"].occurrences.norm


def test_the_bundled_model_is_a_stand_in(small):
    _, comparison = small
    assert comparison.other_model == "its num_hidden_layers is 6, and that of bert-base-uncased 12"
    assert {cell.verdict for cell in comparison.cells if cell.source != "Data"} == {"not judged", "not measured"}
    assert [cell.where for cell in comparison.cells if cell.source == "Figure 3a"] == ["layers 3 and 4, the smaller"]


def test_twelve_layers_of_twelve_heads_are_not_yet_bert(twelve, pkl, capsys):
    assert run("--data", pkl, "--model", twelve, "--limit", 3) == 0
    captured = capsys.readouterr()
    assert "its hidden_size is 24, and that of bert-base-uncased 768" in captured.out.replace("\n  ", " ")
    assert "smallest of 144 heads" in captured.out
    assert not re.search(r"\bagrees?\b(?! when)", captured.out.split("Table 1")[1])
    assert "3 sequences, not 992" in captured.err  # at once, before the run


def test_findings_of_that_shape_without_a_configuration_are_not_either(twelve, pkl):
    found = study(nl.load(twelve), pkl, studies=["dispersion"], length=128, limit=2)
    assert compare(found).other_model == "its heads have 2 dimensions, and those of bert-base-uncased 64"


@pytest.fixture
def drawn_once(monkeypatch):
    """A figure of the same name is not drawn again: that it would be the same is for the tests of reports."""
    kept, draw = {}, files.draw
    monkeypatch.setattr(files, "draw", lambda one, name: kept.get(name) or kept.setdefault(name, draw(one, name)))


def test_everything_is_written_and_a_finished_run_can_be_read_again(pkl, tmp_path, capsys, drawn_once):
    arguments = ["--data", pkl, "--model", default_folder(), "--limit", 2, "--out", tmp_path, "--json"]
    assert run(*arguments) == 0
    first = capsys.readouterr()
    printed = json.loads(first.out)
    assert f"Report: {tmp_path / 'report.html'}" in first.err
    assert json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8")) == printed
    with (tmp_path / "comparison.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(printed["cells"]) == sum(printed["counts"].values())
    assert [row["paper"] for row in rows] == [cell["paper"] for cell in printed["cells"]]
    assert {"source", "what", "where", "paper", "measured", "difference", "verdict", "reason"} == set(rows[0])
    assert run(*arguments, "--resume") == 0
    assert json.loads(capsys.readouterr().out) == printed


def test_a_file_of_ranks_takes_the_place_of_the_rule(pkl, tmp_path, capsys):
    (tmp_path / "ranks.txt").write_text("1\t900\t1996\n2\t800\t1012\n3\t700\t1010\n", encoding="utf-8")
    assert run("--data", pkl, "--model", default_folder(), "--ranks", tmp_path / "ranks.txt", "--limit", 2) == 0
    assert "ranks:ranks.txt" in capsys.readouterr().out


def test_texts_stand_in_two_by_two(minilm, tmp_path):
    """So that every sequence has two [SEP]."""
    path = tmp_path / "texts.txt"
    path.write_text("One, two.\nThree.\nFour five.\nSix, seven.\n", encoding="utf-8")
    data = read(path)
    assert data.checksums is None
    assert "texts.txt holds texts" in data.stand_in
    _, comparison = reproduce(minilm, data)
    sums = {cell.what: cell.measured for cell in comparison.cells if cell.source == "Data"}
    assert (sums["sequences"], sums["[CLS] tokens"], sums["[SEP] tokens"]) == (2, 2, 4)


def test_pairs_are_taken_as_they_are(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"text": "One."}\n{"text": "Two."}\n', encoding="utf-8")
    assert [item.texts for item in read(path).corpus] == [("One.", "Two.")]


def test_data_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataMissing) as missing:
        run()
    said = str(missing.value)
    assert isinstance(missing.value, CorpusError)
    for part in ("no data 'unlabeled_attn.pkl'", "Clark et al. (2019)", "clarkkev/attention-analysis", "stand-in"):
        assert part in said


def test_weights_that_are_not_there(pkl):
    with pytest.raises(nl.LoadError) as missing:
        run("--data", pkl)
    said = str(missing.value)
    for part in ("'bert-base-uncased' cannot be loaded", "hf download bert-base-uncased", "--model", "stand-in"):
        assert part in said


def test_wordpieces_are_not_given_to_a_model_with_other_tokens(minilm, pkl):
    words = Tokenizer(WordLevel({"<s>": 0, "</s>": 1, "<unk>": 2}, unk_token="<unk>"))
    other = PreTrainedTokenizerFast(tokenizer_object=words, cls_token="<s>", sep_token="</s>", unk_token="<unk>")
    lens = nl.load(minilm.subject.model, other)
    with pytest.raises(ReproductionError, match=r"has no token \[CLS\] or \[SEP\]"):
        reproduce(lens, read(pkl))


def test_a_translation_model_is_refused(pkl):
    with pytest.raises(ReproductionError, match="about one text"):
        reproduce(nl.Lens(tiny_subject("marian")), read(pkl))


def test_resuming_needs_a_folder(pkl):
    with pytest.raises(ReproductionError, match="--out"):
        run("--data", pkl, "--resume")


def test_an_unknown_paper_is_misuse(capsys):
    with pytest.raises(SystemExit) as stopped:
        asked("vaswani2017")
    assert stopped.value.code == 2


def test_the_default_model_is_the_papers():
    assert asked("kobayashi2020").model == "bert-base-uncased"
    assert asked("kobayashi2020", "--model", "m").model == "m"


def test_cells_that_differ_are_no_failure(monkeypatch, minilm, pkl, capsys):
    found = findings(items=3)
    monkeypatch.setattr(command, "load_from", lambda options: minilm)
    monkeypatch.setattr("normlens.papers.reproduce", lambda *a, **k: (found, compare(found)))
    assert run("--data", pkl) == 0
    assert "1 differ" in capsys.readouterr().out
