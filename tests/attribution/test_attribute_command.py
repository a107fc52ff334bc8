"""`normlens attribute`, as typed."""

import json

import pytest

from normlens.attribution import METHODS
from normlens.cli.main import main


@pytest.fixture(scope="module")
def folders(classifier, writer, translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, lens in (("classifier", classifier), ("writer", writer), ("translator", translator)):
        lens.subject.model.save_pretrained(folder / name)
        lens.subject.tokenizer.save_pretrained(folder / name)
    return folder


def run(capsys, *arguments):
    status = main(["attribute", *map(str, arguments)])
    return status, *capsys.readouterr()


def test_the_scores_of_a_class_in_the_terminal_and_in_files(capsys, folders, tmp_path):
    files = [f"--{name}" for name in ("html", "figure", "table")]
    paths = [tmp_path / name for name in ("a.html", "a.svg", "a.csv")]
    given = [part for pair in zip(files, paths, strict=True) for part in pair]
    status, out, err = run(capsys, "the big cat sat", "--model", folders / "classifier", "--target", "good", *given)
    assert status == 0
    assert "good, logit" in out
    assert err.count("a.") == 3
    assert all(path.stat().st_size > 100 for path in paths)


def test_json_has_every_score(capsys, folders, classifier):
    options = ("--target", "good", "--rather-than", "bad", "--by", "gradient_x_input", "--json")
    status, out, _ = run(capsys, "the big cat", "--model", folders / "classifier", *options)
    found = json.loads(out)
    expected = classifier.attribute("the big cat", ("good", "bad"), by="gradient_x_input")
    assert status == 0
    assert found["target"] == "good rather than bad"
    assert [row["score"] for row in found["scores"]] == pytest.approx(expected.scores[0].tolist(), rel=1e-4)


def test_answers_and_translations(capsys, folders):
    for name in ("writer", "translator"):
        status, out, _ = run(capsys, "the cat", "--model", folders / name, "--answer", "sat on the mat")
        assert status == 0
        assert "Each token of the answer:" in out
        assert run(capsys, "the cat", "--model", folders / name, "--write", 3)[0] == 0


def test_what_does_not_go_together_is_refused(capsys, folders, tmp_path):
    for wrong in (["--rather-than", "bad"], ["--write", "3", "--answer", "x"], ["--by", "nothing"]):
        with pytest.raises(SystemExit) as stopped:
            run(capsys, "the cat", *wrong)
        assert stopped.value.code == 2
    status, _, err = run(capsys, "the cat", "--html", tmp_path / "x.svg")
    assert status == 1
    assert "unsupported format .svg" in err


def test_the_help_has_every_method(capsys):
    with pytest.raises(SystemExit):
        run(capsys, "--help")
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in METHODS)


def test_sums_are_read_as_the_text_is(capsys, folders):
    text = "the big cat sat\na dog ran"
    status, out, _ = run(capsys, text, "--model", folders / "classifier", "--by", "random", "--sum", "lines")
    assert status == 0
    assert [line.split("  ")[-1] for line in out.splitlines()[-3:]] == [
        "the big cat sat",
        "a dog ran",
        "(other tokens)",
    ]
