"""`normlens serve` as it is typed: what it prints, what it refuses, and that it leaves nothing behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from normlens.cli.main import main

NORMLENS = [sys.executable, "-m", "normlens"]


def refused(capsys, *arguments: str) -> str:
    assert main(["serve", *arguments]) == 1
    said = capsys.readouterr().err
    assert said.startswith("normlens: ")
    assert "Traceback" not in said
    return said


def test_help_is_there_without_torch():
    program = (
        "import sys; from normlens.cli.main import main\ntry: main(['serve', '--help'])\nexcept SystemExit: pass\n"
    )
    program += "print('torch' in sys.modules, 'starlette' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "--max-tokens" in done.stdout
    assert "examples:" in done.stdout
    assert done.stdout.split()[-2:] == ["False", "False"]


def test_another_host_needs_a_token(capsys):
    assert "--token auto" in refused(capsys, "--host", "0.0.0.0")
    assert "can be guessed" in refused(capsys, "--host", "0.0.0.0", "--token", "short")


def test_a_model_that_is_not_there_is_found_at_once(capsys, tmp_path):
    assert "could not be found" in refused(capsys, "--model", "no/such-model")
    assert "config.json" in refused(capsys, "--model", str(tmp_path))
    (tmp_path / "config.json").write_text("[]")
    assert "config.json" in refused(capsys, "--model", str(tmp_path))


def test_a_corpus_that_is_not_there(capsys, tmp_path):
    said = refused(capsys, "--port", "0", "--corpus", str(tmp_path / "nowhere.txt"), "--out", str(tmp_path / "out"))
    assert "nowhere.txt" in said


def test_a_corpus_that_is_no_report_needs_a_folder_for_its_report(capsys, tmp_path):
    assert "--out" in refused(capsys, "--port", "0", "--corpus", str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(("studies", "written"), [("targets", "targets_self.csv"), ("heads", "heads_self.csv")])
def test_the_studies_of_a_corpus_are_run_before_it_is_shown(studies, written, tmp_path, monkeypatch):
    text = tmp_path / "text.txt"
    text.write_text("The mill stood by the river, and still it stands.\nNobody knew why.\n")
    served = []
    monkeypatch.setattr("normlens.cli.serve.serve", lambda settings, _: served.append(settings.report))
    out = tmp_path / "out"
    assert main(["serve", "--corpus", str(text), "--studies", studies, "--out", str(out)]) == 0
    assert served == [out]
    assert (out / "tables" / written).is_file()


def test_a_port_that_is_taken_and_a_host_that_is_not_ours(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "--port 0" in refused(capsys, "--port", str(taken.getsockname()[1]))
    assert "cannot listen" in refused(capsys, "--host", "203.0.113.7", "--token", "auto", "--port", "0")


@pytest.mark.parametrize("wrong", [["--port", "70000"], ["--max-tokens", "0"], ["--queue", "-1"], ["--memory", "nan"]])
def test_misuse_is_code_2(wrong):
    with pytest.raises(SystemExit) as stopped:
        main(["serve", *wrong])
    assert stopped.value.code == 2


def test_what_is_missing_is_named_with_its_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'normlens[serve]'" in refused(capsys, "--port", "0")


def test_the_bundled_models_are_the_ones_of_their_rooms():
    from normlens.alignment.bundled import FOLDER
    from normlens.explorer import settings
    from normlens.models import default

    assert settings.PACKAGE == default.PACKAGE
    assert all((FOLDER / languages / "config.json").exists() for languages in settings.TRANSLATORS)


def children(pid: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_serves_and_leaves_nothing_behind(tmp_path, ending):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [*NORMLENS, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdout is not None and server.stderr is not None  # noqa: PT018
        link = server.stdout.readline().split()[1]
        question = json.dumps({"model": "all-MiniLM-L6-v2", "text": "the cat"}).encode()
        request = urllib.request.Request(f"{link}api/jobs", question, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 202
        assert list(tmp_path.glob("normlens-serve-*"))
        while not (workers := children(server.pid)):
            time.sleep(0.05)
        server.send_signal(ending)
        assert server.wait(15) == (0 if ending == signal.SIGINT else -signal.SIGTERM)
        assert "Traceback" not in server.stderr.read()
    assert len(workers) == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    assert list(tmp_path.iterdir()) == []


def test_workers_do_not_outlive_a_server_that_was_killed(tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [*NORMLENS, "serve", "--port", "0", "--preload"], stdout=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        server.stdout.readline()
        while len(workers := children(server.pid)) < 4:
            time.sleep(0.05)
        server.kill()
    for pid in workers:
        for _ in range(100):
            if not Path(f"/proc/{pid}").exists():
                break
            time.sleep(0.1)
        assert not Path(f"/proc/{pid}").exists()
