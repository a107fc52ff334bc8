"""`normlens align` as a user runs it: files in, links out, and a clear word for every mistake."""

import pytest
from transformers import PreTrainedModel
from translators import marian

from normlens.cli.main import main

GERMAN = "das haus ist alt\nein haus\n\ndas kleine haus ist das alt\n"
ENGLISH = "the house is old\na\nhere\nthe small house is here is old\n"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folders = []
    for seed in (0, 1):
        lens = marian(seed)
        folder = tmp_path_factory.mktemp(f"model{seed}")
        assert isinstance(lens.subject.model, PreTrainedModel)
        lens.subject.model.save_pretrained(folder)
        lens.subject.tokenizer.save_pretrained(folder)
        folders.append(str(folder))
    return folders


@pytest.fixture
def text(tmp_path):
    (tmp_path / "a.de").write_text(GERMAN)
    (tmp_path / "a.en").write_text(ENGLISH)
    return ["--source", str(tmp_path / "a.de"), "--target", str(tmp_path / "a.en")]


def test_each_line_gets_its_line_of_links_and_the_choice_is_told(models, text, tmp_path, capsys):
    out = tmp_path / "links.txt"
    assert main(["align", "--model", models[0], *text, "--out", str(out)]) == 0
    lines = out.read_text().split("\n")
    assert len(lines) == 5
    assert lines[2] == ""
    told = capsys.readouterr().err
    assert "agree most" in told
    assert "line 3 has no links: the source is empty" in told


def test_two_models_and_windows_line_ends_and_confidences(models, text, tmp_path, capsys):
    (tmp_path / "a.de").write_bytes(GERMAN.replace("\n", "\r\n").encode())
    assert main(["align", "--model", models[0], "--reverse-model", models[1], *text, "--confidence"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4
    assert all(0 < float(link.split(":")[1]) <= 1 for link in out.split())
    assert "agree most" in err


def test_an_interrupted_file_is_gone_on_with(models, text, tmp_path):
    whole, part = tmp_path / "whole.txt", tmp_path / "part.txt"
    assert main(["align", "--model", models[0], *text, "--out", str(whole)]) == 0
    lines = whole.read_text().splitlines(keepends=True)
    part.write_text(lines[0] + lines[1][:1])
    assert main(["align", "--model", models[0], *text, "--out", str(part), "--resume"]) == 0
    assert part.read_text() == whole.read_text()


def test_gold_gives_a_table_and_a_report(models, text, tmp_path, capsys):
    (tmp_path / "a.talp").write_text("1-1 2-2 3-3 4-4\n1-1\n\n1-1 2-2 3-3 4p4\n")
    report = tmp_path / "report"
    options = ["--gold", str(tmp_path / "a.talp"), "--report", str(report), "--out", str(tmp_path / "links.txt")]
    assert main(["align", "--model", models[0], "--reverse-model", models[1], *text, *options]) == 0
    out = capsys.readouterr().out
    assert "mean of the layers' errors" in out
    assert "maps multiplied" in out
    assert (report / "report.html").exists()
    assert (report / "tables" / "methods.csv").exists()
    assert len((tmp_path / "links.txt").read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"--target": None}, "both --source and --target"),
        ({"--target": "short"}, "no such line in the other file"),
        ({"--target": "same"}, "same text"),
        ({"--source": "missing"}, "missing"),
        ({"--layers": "9"}, "No layer 9"),
        ({"--model": "minilm"}, "not a sequence-to-sequence model"),
        ({"--words": "letters"}, "no word splitter"),
    ],
)
def test_a_mistake_is_said_and_nothing_is_written(models, text, tmp_path, capsys, change, said):
    from normlens.models.default import default_folder

    (tmp_path / "short").write_text("the house is old\n")
    options = dict(zip(text[::2], text[1::2], strict=True)) | {"--model": models[0]}
    values = {
        "short": str(tmp_path / "short"),
        "same": options["--source"],
        "missing": str(tmp_path / "missing"),
        "minilm": str(default_folder()),
    }
    options |= {key: values.get(value, value) for key, value in change.items()}
    arguments = [part for key, value in options.items() if value is not None for part in (key, value)]
    assert main(["align", *arguments]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--aligners", "giza"], ["--gradients", "saliency"], ["--possible", "p.txt"]])
def test_what_belongs_to_a_comparison_is_refused_without_gold(text, capsys, given):
    assert main(["align", *text, *given]) == 1
    assert f"{given[0]} can be used only in a comparison, which needs gold" in capsys.readouterr().err


def test_a_few_lines_are_joined_by_the_bundled_sample_and_that_is_said(text, tmp_path, capsys):
    assert main(["align", *text, "--out", str(tmp_path / "links")]) == 0
    assert "chosen on 4 of your pairs and the 71 bundled ones" in capsys.readouterr().err
