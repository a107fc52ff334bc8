"""`normlens nmt` as a user types it."""

import io
import sys

import pytest
from toy_text import toy_pairs, write_pairs

from normlens.cli.main import main
from normlens.nmt import training

SMALL = "--vocabulary 60 --layers 1 --width 16 --heads 2 --tokens 200 --longest 20 --rate 0.01 --updates 20".split()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return [str(path) for path in write_pairs(tmp_path_factory.mktemp("cli"), toy_pairs())]


def command(files, out, *more):
    text = ["--source", files[0], "--target", files[1], "--out", str(out)]
    return ["nmt", "train", *text, *SMALL, "--every", "10", *more]


@pytest.fixture
def interrupted(monkeypatch):
    """Somebody presses Ctrl-C in update 15."""
    real = training.step

    def step(*arguments, update, **options):
        if update == 15:
            raise KeyboardInterrupt
        return real(*arguments, update=update, **options)

    monkeypatch.setattr(training, "step", step)
    return monkeypatch


def test_train_interrupt_resume_translate(files, tmp_path, capsys, interrupted):
    out = tmp_path / "de-en"
    assert main(command(files, out, "--languages", "de-en", "--threads", "1")) == 130
    said = capsys.readouterr()
    assert "57 pairs to train on" in said.err
    assert "14 updates were made, and 10 of them are saved" in said.err
    assert "--resume" in said.err
    assert len(said.out.splitlines()) == 1
    interrupted.undo()

    assert main(command(files, out, "--languages", "de-en", "--resume")) == 0
    said = capsys.readouterr()
    assert "Resuming after update 10." in said.err
    (line,) = said.out.splitlines()
    for part in ("update      20", "train loss", "valid loss", "BLEU"):
        assert part in line
    assert "%|" not in said.err  # no bar in a file
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "trained on: toy.de and toy.en, 57 pairs\n" in card

    assert main(command(files, out, "--languages", "de-en", "--resume")) == 0
    assert "finished: 20 updates" in capsys.readouterr().err

    assert (
        main(["nmt", "translate", "--model", str(out), files[0], "--out", str(tmp_path / "t.en"), "--beams", "2"]) == 0
    )
    assert len((tmp_path / "t.en").read_text(encoding="utf-8").splitlines()) == 60
    assert "Recommended" not in capsys.readouterr().err


def test_translate_reads_standard_input_and_keeps_empty_lines(finished, capsys, monkeypatch):
    text = "Der Hund sieht die Katze, immer.\r\n\r\nDie Katze"
    for flags in ([], ["-"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert main(["nmt", "translate", "--model", str(finished[0]), *flags]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 3
        assert lines[1] == ""


def test_what_is_typed_is_answered_line_by_line(finished, capsys, monkeypatch):
    """The second line comes only when the first was answered."""

    lines, answered = iter([b"der Hund\n", b"die Katze\n", b""]), []

    class Typed(io.RawIOBase):
        def read1(self, size=-1):
            answered.append(len(capsys.readouterr().out.splitlines()))
            return next(lines)

    class Terminal:
        buffer = Typed()
        isatty = staticmethod(lambda: True)

    monkeypatch.setattr(sys, "stdin", Terminal())
    assert main(["nmt", "translate", "--model", str(finished[0])]) == 0
    assert answered == [0, 1, 1]


def test_a_long_line_is_cut_and_told(finished, capsys, tmp_path):
    (tmp_path / "long.de").write_text("der Hund\n" + "der Hund " * 2000)
    assert main(["nmt", "translate", "--model", str(finished[0]), str(tmp_path / "long.de"), "--beams", "1"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 2
    assert "long.de:2: cut to 512 subwords" in said.err


BAD = {
    "no source": (["--source", "nowhere.de"], "nowhere.de"),
    "half a validation": (["--valid-source", "a.de"], "both sides"),
    "width and heads": (["--width", "18", "--heads", "4"], "multiple of heads"),
    "tiny vocabulary": (["--vocabulary", "3"], "larger --vocabulary"),
    "no update": (["--updates", "0"], "updates must be above 0"),
    "seed": (["--seed", "-1"], "seed -1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_sentence_and_never_a_traceback(files, tmp_path, capsys, name):
    flags, said = BAD[name]
    assert main(command(files, tmp_path / "m", *flags)) == 1
    error = capsys.readouterr().err
    assert error.startswith("normlens: ")
    assert said in error


def test_the_same_file_twice_is_refused(files, tmp_path, capsys):
    assert main(command([files[0], files[0]], tmp_path / "m")) == 1
    assert "the same text" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "flags", [["--languages", "german"], ["--threads", "0"], ["--preset", "huge"], ["--valid-limit", "x"]]
)
def test_misuse_is_code_2(files, tmp_path, flags):
    with pytest.raises(SystemExit) as stopped:
        main(command(files, tmp_path / "m", *flags))
    assert stopped.value.code == 2


def test_translations_are_not_written_over_the_text(finished, tmp_path, capsys):
    (tmp_path / "a.de").write_text("der Hund\n")
    path = str(tmp_path / "a.de")
    assert main(["nmt", "translate", "--model", str(finished[0]), path, "--out", path]) == 1
    assert "--out is also an input" in capsys.readouterr().err
    assert (tmp_path / "a.de").read_text() == "der Hund\n"
    assert main(["nmt", "translate", "--model", str(finished[0]), path, "--out", str(tmp_path / "no" / "t")]) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["nmt"], ["nmt", "train"], ["nmt", "translate"]])
def test_help_teaches_by_example(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--help"])
    assert stopped.value.code == 0
    assert "examples:\n  normlens nmt" in capsys.readouterr().out
