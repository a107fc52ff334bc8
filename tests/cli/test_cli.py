"""The command line as a user types it: what is printed, what is written, which code it ends with."""

import json

import pytest

from normlens import tiny
from normlens.cli.main import main


def test_show_without_a_word(capsys):
    assert main(["show"]) == 0
    shown = capsys.readouterr().out
    assert "[CLS]" in shown
    assert "of the weight" in shown


def test_show_writes_what_it_is_asked_for(capsys, tmp_path):
    files = {
        name: tmp_path / f"t.{suffix}" for name, suffix in (("html", "html"), ("table", "csv"), ("save", "safetensors"))
    }
    flags = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    assert main(["show", "The cat sat.", *flags]) == 0
    captured = capsys.readouterr()
    for path in files.values():
        assert path.stat().st_size > 100
        assert str(path) in captured.err


def test_show_as_json(capsys):
    assert main(["show", "The cat sat.", "--pair", "It slept.", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["attention"]
    assert len(found["tokens"]) == len(found["weight"]) == len(found["norm_share"])
    assert sum(found["weight"]) == pytest.approx(1, abs=1e-4)
    assert sum(found["norm_share"]) == pytest.approx(1, abs=1e-4)


def test_show_reads_standard_input(capsys, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("A text from a pipe."))
    assert main(["show", "-", "--layer", "1", "--head", "2"]) == 0
    assert "pipe" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", " "], "empty"),
        (["show", "word " * 700], "512 positions"),
        (["show", "a", "--model", "no/such-model"], "could not be loaded"),
        (["show", "a", "--target", "b"], "one side"),
        (["show", "a", "--layer", "77"], "L0, L1, L2, L3, L4, L5"),
        (["show", "a", "--table", "t.xlsx"], "does not say its form"),
        (["doctor", "no/such-model"], "could not be loaded"),
        (["doctor", "no/such-model", "--tiny"], "could not be loaded"),
    ],
)
def test_bad_input_is_a_sentence_and_never_a_traceback(capsys, arguments, said):
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("normlens: ")
    assert said in error
    assert "Traceback" not in error


def test_misuse_is_code_2():
    with pytest.raises(SystemExit) as stopped:
        main(["show", "--no-such-flag"])
    assert stopped.value.code == 2


def test_an_interrupt_is_code_130(capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("normlens.cli.show.load_from", interrupt)
    assert main(["show", "a"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_the_doctor_on_a_healthy_model(capsys):
    assert main(["doctor"]) == 0
    assert "6 of 6 blocks exact" in capsys.readouterr().out


def test_the_doctor_on_an_architecture_without_weights(capsys):
    assert main(["doctor", "bart", "--tiny", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["healthy"]
    assert {wire["kind"] for wire in found["wires"]} == {"encoder", "decoder", "cross"}


def test_the_doctor_on_a_configuration_in_a_folder(capsys, tmp_path):
    tiny.build("gpt2").model.config.save_pretrained(tmp_path)
    assert main(["doctor", str(tmp_path), "--tiny"]) == 0
    assert "blocks exact" in capsys.readouterr().out


def test_the_doctor_says_what_is_wrong(capsys):
    assert main(["doctor", "qwen3_next", "--tiny"]) == 1
    assert "gate" in capsys.readouterr().out
