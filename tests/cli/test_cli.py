"""The command line as a user types it: what is printed, what is written, which code it ends with."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from normlens import probes
from normlens.cli.main import COMMANDS, laid_out, main
from normlens.errors import NormlensError
from normlens.version import __version__


def test_show_without_a_word(capsys):
    assert main(["show"]) == 0
    shown = capsys.readouterr().out
    assert "[CLS]" in shown
    assert "of the attention" in shown


def test_the_command_alone_explains_itself(capsys):
    with pytest.raises(SystemExit, match="0"):
        main([])
    assert "commands:" in capsys.readouterr().out


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
        (["show", "a", "--model", "no/such-model"], "cannot be loaded"),
        (["show", "a", "--target", "b"], "one side"),
        (["show", "a", "--layer", "77"], "no layer 77: the model has layers 0 to 5"),
        (["show", "a", "--table", "t.xlsx"], "unsupported format .xlsx (use .csv or .parquet)"),
        (["show", ""], "empty"),
        (["show", "a cat", "--against", ""], "empty"),
        (["show", "a cat", "--against", "a dog", "--table", "t.csv"], "a difference has --html and --figure"),
        (["show", "a", "--html", "v.txt"], "unsupported format .txt (use .html)"),
        (["show", "a", "--figure", "v.gif"], "unsupported format .gif (use .svg, .pdf or .png)"),
        (["show", "a", "--save", "v.html"], "unsupported format .html (use .safetensors)"),
        (["show", "a", "--view", "picture"], "there is no picture"),
        (["show", "a", "--pin", "zebra"], "no token 'zebra'"),
        (["show", "--image", "no.png"], "cannot be read as an image"),
        (["show", "--image", "README.md"], "cannot be read as an image"),
        (["show", "--image", "docs/images/view.png"], "reads text"),
        (["show", "a", "--device", "nowhere"], "cannot be moved to the device 'nowhere'"),
        (["doctor", "no/such-model"], "cannot be loaded"),
        (["doctor", "no/such-model", "--tiny"], "cannot be loaded"),
    ],
)
def test_bad_input_is_a_sentence_and_never_a_traceback(capsys, arguments, said):
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("normlens: ")
    assert said in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "arguments",
    [
        ["align", "--source", "x", "--target", "y", "--out", "x"],
        ["align", "--source", "y", "--target", "x", "--out", "./x"],
        ["align", "--source", "y", "--target", "y", "--gold", "x", "--out", "link"],
        ["report", "--corpus", "folder", "--out", "folder"],
        ["nmt", "translate", "x", "--model", "folder", "--out", "x"],
        ["show", "a text", "--image", "x", "--html", "x"],
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[-2:]),
)
def test_an_output_that_is_also_an_input_is_refused_and_left_alone(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "x").write_text("Das Haus .\n")
    (tmp_path / "y").write_text("the house .\n")
    (tmp_path / "link").symlink_to("x")
    assert main(arguments) == 1
    assert "is also an input, and would be overwritten" in capsys.readouterr().err
    assert (tmp_path / "x").read_text() == "Das Haus .\n"


def test_an_error_is_wrapped_to_the_terminal_and_keeps_its_parts():
    error = NormlensError(
        "word " * 30 + "end.", got="a --flag-with-dashes", cause="none", do="pip install x\n    hf get y"
    )
    assert laid_out(error) == f"normlens: {error}"
    lines = laid_out(error, 60).split("\n")
    assert max(map(len, lines)) <= 60
    assert lines[1].startswith("    word")
    assert lines[-4:] == [
        "  Got: a --flag-with-dashes",
        "  Usual cause: none",
        "  Do: pip install x",
        "    hf get y",
    ]


def test_show_draws_a_figure_and_a_difference(capsys, tmp_path):
    picture, page = tmp_path / "lines.svg", tmp_path / "both.html"
    assert main(["show", "The cat sat.", "--view", "lines", "--layer", "1", "--words", "--figure", str(picture)]) == 0
    assert picture.read_text().startswith("<?xml")
    assert main(["show", "The cat sat.", "--against", "The dog sat.", "--html", str(page)]) == 0
    told = capsys.readouterr()
    assert "cat│dog" in told.out
    assert "cat\\u2502dog" in page.read_text()
    assert f"View: {page}" in told.err


def test_advice_on_the_command_line_is_in_its_own_words(capsys):
    assert main(["show", "a", "--target", "b"]) == 1
    assert "--pair" in capsys.readouterr().err


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


def test_an_interrupt_while_a_command_is_imported_is_code_130_as_well(capsys, monkeypatch):
    def interrupt(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("normlens.cli.main.import_module", interrupt)
    assert main(["show", "a"]) == 130
    assert capsys.readouterr().err == "normlens: interrupted\n"


def alone(*arguments):
    """A command in a process of its own: its code, what it printed, and which heavy modules it imported."""
    job = (
        "import atexit, runpy, sys\n"
        "heavy = ('torch', 'transformers', 'numpy')\n"
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules], file=sys.stderr))\n"
        f"sys.argv = ['normlens', *{arguments!r}]\n"
        "runpy.run_module('normlens', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", job], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_help_and_version_do_not_wait_for_torch():
    assert alone("--version") == (0, f"normlens {__version__}\n", "[]\n")
    code, shown, imported = alone("--help")
    assert (code, imported) == (0, "[]\n")
    for name in COMMANDS:
        assert f"\n    {name} " in shown or f"\n    {name}\n" in shown


def test_python_runs_the_module_as_the_command():
    code, _, said = alone("--colour")
    assert code == 2
    assert "usage: normlens" in said


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([name, "--help"])
    assert stopped.value.code == 0
    assert f"usage: normlens {name}" in capsys.readouterr().out


def test_the_doctor_on_a_healthy_model(capsys):
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "6 of 6 blocks exact" in printed
    assert "own attentions: 6 of 6 blocks agree" in printed
    assert "padded batch against its texts alone: equal" in printed


def test_the_doctor_on_an_architecture_without_weights(capsys):
    assert main(["doctor", "bart", "--tiny", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["healthy"]
    assert {wire["kind"] for wire in found["wires"]} == {"encoder", "decoder", "cross"}


def test_the_doctor_on_a_configuration_in_a_folder(capsys, tmp_path):
    probes.build("gpt2").model.config.save_pretrained(tmp_path)
    assert main(["doctor", str(tmp_path), "--tiny"]) == 0
    assert "blocks exact" in capsys.readouterr().out


def test_the_doctor_says_what_is_wrong(capsys):
    assert main(["doctor", "longformer", "--tiny"]) == 1
    assert "does not multiply the values" in capsys.readouterr().out


def test_the_doctor_says_that_padding_changes_a_model(capsys):
    assert main(["doctor", "canine", "--tiny"]) == 1
    assert "padded batch against its texts alone: differs" in capsys.readouterr().out


def test_the_doctor_says_what_a_model_changes_about_itself(capsys):
    assert main(["doctor", "big_bird", "--tiny"]) == 0
    assert "changed by its own run, and put back: attention_type" in capsys.readouterr().out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_the_output_is_said_without_a_traceback():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "normlens", "show"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert b"normlens: the output could not be written: No space left on device." in done.stderr
    assert b"Traceback" not in done.stderr
