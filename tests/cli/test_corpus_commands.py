"""`report` and `study` as a user types them, with good and bad input."""

import io
import json
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from normlens.cli.main import main

pytestmark = pytest.mark.slow
TEXT = "The mill stood by the river, and still it stands.\nNobody knew why.\n\nA third line, the last.\n"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def reported(corpus, tmp_path_factory):
    """A report in a folder that nobody writes to, and what the command said."""
    folder, out, err = tmp_path_factory.mktemp("reported"), io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["report", "--corpus", str(corpus), "--out", str(folder)])
    return folder, code, out.getvalue(), err.getvalue()


def test_a_report_is_written_and_summed_up(reported):
    folder, code, out, err = reported
    assert code == 0
    assert "of the attention" in out
    assert str(folder / "report.html") in err
    for part in ("report.html", "findings.json", "figures", "tables", "run.safetensors"):
        assert (folder / part).exists()


@pytest.mark.parametrize("name", ["dispersion", "categories", "correlation", "frequency"])
def test_every_study_alone_prints_its_tables(name, corpus, capsys):
    assert main(["study", name, "--corpus", str(corpus)]) == 0
    assert f"{name}, self-attention" in capsys.readouterr().out
    assert main(["study", name, "--corpus", str(corpus), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert any(table.startswith(name) for table in printed["tables"])
    assert "corpus.txt@" in printed["signature"]


def test_standard_input_and_own_categories(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    flags = ["--category", "water=river,mill", "--category", "ends=/.*s/"]
    assert main(["study", "categories", "--corpus", "-", *flags]) == 0
    shown = capsys.readouterr().out
    assert "water" in shown
    assert "ends" in shown


def test_a_report_that_was_finished_is_written_again_by_resume(reported, corpus, tmp_path, capsys):
    shutil.copytree(reported[0], tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    (tmp_path / "out" / "report.html").unlink()
    assert main(["report", "--corpus", str(corpus), "--out", str(tmp_path / "out"), "--resume"]) == 0
    for path, content in before.items():
        assert path.read_bytes() == content, path
    assert "normlens: all 3 items are already done\n" in capsys.readouterr().err


BAD = {
    "empty": (b"", "no text"),
    "blank": (b"\n\n \n", "no text"),
    "binary": (b"\x00\x01\x02ELF" * 50, "binary"),
    "latin": ("caf\u00e9 au lait\n".encode("latin-1") * 3, "encoding"),
}


@pytest.mark.parametrize("kind", list(BAD))
def test_a_file_that_is_no_text_is_refused_in_words(kind, tmp_path, capsys):
    content, word = BAD[kind]
    (tmp_path / "bad.txt").write_bytes(content)
    assert main(["report", "--corpus", str(tmp_path / "bad.txt"), "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert word in said
    assert "Traceback" not in said


def test_what_is_missing_is_named(tmp_path, capsys):
    assert main(["study", "categories", "--corpus", str(tmp_path / "nowhere.txt")]) == 1
    assert "nowhere.txt" in capsys.readouterr().err
    assert main(["study", "frequency", "--ranks", str(tmp_path / "ranks.txt")]) == 1
    assert "ranks.txt" in capsys.readouterr().err
    assert main(["study", "categories", "--category", "broken"]) == 1
    assert "NAME=" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["one", "no comma and no stop\nin any line\n", "word " * 3000], ids=["one token", "no comma", "too long"]
)
def test_poor_corpora_give_an_honest_report_without_nan(text, tmp_path, capsys):
    (tmp_path / "poor.txt").write_text(text)
    assert main(["report", "--corpus", str(tmp_path / "poor.txt"), "--out", str(tmp_path / "out")]) == 0
    assert "nan" not in capsys.readouterr().out.lower().replace("nano", "")
    for path in (tmp_path / "out").rglob("*.[cj]s*"):
        assert "nan" not in path.read_text().lower(), path


def test_a_folder_that_may_not_be_written_is_refused_before_the_work(corpus, tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert main(["report", "--corpus", str(corpus), "--out", str(tmp_path / "file" / "out")]) == 1
    assert "Nothing can be written" in capsys.readouterr().err


def test_a_full_disk_is_an_error_in_words(corpus, tmp_path, capsys, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("normlens.statistics.files.save_file", full)
    assert main(["report", "--corpus", str(corpus), "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert "No space left" in said
    assert "--resume" in said


def test_a_file_without_its_flag_is_told_which(capsys):
    for command in (["report"], ["report", "--out", "x"], ["study", "categories"]):
        with pytest.raises(SystemExit) as stopped:
            main([*command, "my texts.txt"])
        assert stopped.value.code == 2
        assert "Give a corpus with --corpus, as in: --corpus 'my texts.txt'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["study", "categories", "--colour"])
    assert "--corpus, as in" not in capsys.readouterr().err


def test_a_report_needs_a_folder(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["report"])
    assert stopped.value.code == 2
    assert "required: --out" in capsys.readouterr().err


def test_an_interrupt_says_what_is_saved_and_how_to_go_on(corpus, tmp_path, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("normlens.studies.run.Run._see", interrupt)
    assert main(["study", "categories", "--corpus", str(corpus), "--out", str(tmp_path)]) == 130
    said = capsys.readouterr().err
    assert said.startswith(f"normlens: interrupted\n  Nothing is saved yet in {tmp_path}.\n  Do: the same again")


def test_categories_of_ones_own_say_where_special_tokens_went(corpus, capsys):
    flags = ["study", "categories", "--corpus", str(corpus), "--category", "water=river,mill"]
    assert main(flags) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "“other” holds the special tokens [CLS] and [SEP], 6 of its" in said
    assert "--category 'special=@special'" in said
    assert main([*flags, "--category", "special=@special"]) == 0
    assert "special=@special" not in capsys.readouterr().out


def test_the_bar_vanishes_when_nobody_watches(corpus):
    job = [sys.executable, "-m", "normlens", "study", "categories", "--corpus", str(corpus)]
    done = subprocess.run(job, capture_output=True, text=True, check=True)
    assert done.stderr == ""


OWN = """
import normlens as nl
from normlens.exhibits import Section, Table
from normlens.statistics import Moments


class Longest(nl.Study):
    name, title = "longest", "How long are the vectors?"

    def see(self, seen):
        return {"norms": Moments.of(seen.norms.transpose(0, 2, 1)[seen.real])}

    def result(self, sums, run):
        return sums.by_layer("norms")[1][-1].high

    def section(self, result, run):
        return Section(["The longest was found."], [Table("longest", "Longest", [{"norm": result.max()}])])


class Asking(Longest):
    def __init__(self, what):
        self.what = what
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("1 / 0")
    return tmp_path


def test_a_study_of_ones_own_stands_beside_ours(own, corpus, capsys):
    flags = ["--corpus", str(corpus), "--out", str(own / "out")]
    assert main(["report", "--studies", f"categories,{own / 'mine.py'}:Longest", *flags]) == 0
    shown = capsys.readouterr().out
    assert "longest, self-attention\n• The longest was found." in shown
    assert "categories, self-attention" in shown
    assert "dispersion" not in shown
    assert (own / "out" / "tables" / "longest_self.csv").is_file()


def test_a_study_of_ones_own_can_come_from_a_module(own, corpus, capsys, monkeypatch):
    (own / "mine.py").rename(own / "module_of_mine.py")
    monkeypatch.syspath_prepend(own)
    assert main(["study", "module_of_mine:Longest", "--corpus", str(corpus)]) == 0
    assert "The longest was found." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("studies", "words"),
    [
        ("category", "There is no study 'category'.\n  Do: did you mean 'categories'?"),
        ("nowhere.py:Mine", "'nowhere.py' cannot be read.\n  Got: FileNotFoundError"),
        ("no.such.module:Mine", "'no.such.module' cannot be read.\n  Got: ModuleNotFoundError"),
        ("{own}/broken.py:Mine", "broken.py' cannot be read.\n  Got: ZeroDivisionError"),
        ("{own}/mine.py:Missing", "There is no class 'Missing' in"),
        ("{own}/mine.py:Asking", "Asking cannot be made.\n  Got: TypeError"),
        ("{own}/mine.py:Moments", "Moments cannot be made"),
        ("{own}/mine.py:Longest,{own}/mine.py:Longest", "There is already a study called 'longest'"),
        (",", "No study was named"),
    ],
)
def test_a_study_that_cannot_be_had_is_refused_before_the_model_is_loaded(own, studies, words, capsys, monkeypatch):
    monkeypatch.setattr("normlens.cli.report.load_from", pytest.fail)
    assert main(["report", "--studies", studies.format(own=own), "--out", str(own / "out")]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


@pytest.mark.parametrize("command", ["report", "study"])
def test_help_lists_every_study_with_its_title(command, capsys):
    from normlens.studies import STUDIES

    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = capsys.readouterr().out
    for name, one in STUDIES.items():
        assert name in shown
        assert one.title in shown


def test_set_gives_a_study_other_arguments_of_the_type_of_their_defaults(corpus, capsys):
    argument = ["--set", "threshold=0.2", "--set", "positions=1"]
    assert main(["study", "sinks", "--corpus", str(corpus), "--json", *argument]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert "sinks(threshold=0.2, positions=1)" in printed["signature"]
    assert "1_weights" not in printed["tables"]["sinks_positions_self"][0]
    shares = ["--set", "shares=0.25,0.5"]
    assert main(["study", "forgetting", "--corpus", str(corpus), "--json", *shares]) == 0
    rows = json.loads(capsys.readouterr().out)["tables"]["forgetting_self"]
    assert {key for key in rows[0] if "0.75" in key} == set()


@pytest.mark.parametrize("argument", ["thresold=0.2", "threshold", "threshold=high", "positions=1.5"])
def test_set_of_what_is_no_argument_is_refused_before_the_model_is_loaded(argument, capsys, monkeypatch):
    monkeypatch.setattr("normlens.cli.study.load_from", lambda *_: pytest.fail("the model was loaded"))
    assert main(["study", "sinks", "--set", argument]) == 1
    said = capsys.readouterr().err
    assert f"--set {argument}" in said
    assert "Traceback" not in said
