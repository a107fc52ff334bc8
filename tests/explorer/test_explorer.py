"""What a browser asks an explorer for, and gets."""

import base64
import json
import os
import socket
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from talking import Client

import normlens as nl


@pytest.fixture(scope="module")
def shown(explorer):
    """A finished run of one text."""
    job = explorer.run(model="reader", text="the cat sat on the mat")
    assert job["state"] == "done", job
    return job


def header_of(explorer, job):
    status, header = explorer.get(f"/api/results/{job['id']}/header")
    assert status == 200
    return header


def test_it_says_which_models_it_runs_and_how_many_sides_they_have(explorer):
    status, about = explorer.get("/api/models")
    assert status == 200
    kinds = {model["name"]: model["kind"] for model in about["models"]}
    assert kinds == {"reader": "encoder", "translator": "seq2seq", "slow": "decoder"}
    assert about["limits"]["tokens"] == 300


def test_a_text_becomes_a_header_and_the_chunks_it_counts(explorer, shown):
    header = header_of(explorer, shown)
    assert header["sides"][0]["tokens"] == ["the", "cat", "sat", "on", "the", "mat", "</s>"]
    assert len(header["panels"]) == 2
    for number in range(2):
        status, chunk = explorer.get(f"/api/results/{shown['id']}/chunks/{number}")
        assert status == 200
        assert zlib.decompress(chunk)
    assert explorer.get(f"/api/results/{shown['id']}/chunks/2")[0] == 404


def test_exact_numbers_are_those_of_the_trace(explorer, shown, tmp_path):
    (tmp_path / "t.safetensors").write_bytes(explorer.get(f"/api/results/{shown['id']}/trace.safetensors")[1])
    block = nl.open(tmp_path / "t.safetensors").self_attention[1]
    for axis, cut in (("tgt", np.s_[..., 3, :]), ("src", np.s_[..., 3])):
        status, raw = explorer.get(f"/api/results/{shown['id']}/exact/1/{axis}/3")
        wanted = [t[0].numpy()[cut].ravel() for t in (block.weights, block.summed_norms)]
        assert status == 200
        np.testing.assert_array_equal(np.frombuffer(raw, "<f4"), np.concatenate(wanted))


@pytest.mark.parametrize("part", f"0/tgt/7 2/tgt/0 0/head/0 0/src/-1 0/src/1e3 x/tgt/0 0/tgt/{'9' * 99}".split())
def test_numbers_that_are_not_there_are_a_sentence(explorer, shown, part):
    status, said = explorer.get(f"/api/results/{shown['id']}/exact/{part}")
    assert status == 404
    assert said["what"].endswith(".")


def test_a_pair_is_one_sequence(explorer):
    job = explorer.run(model="reader", text="the cat sat", pair="a dog ran")
    assert header_of(explorer, job)["sides"][0]["tokens"].count("</s>") == 2


def test_a_translation_has_two_sides_and_the_model_writes_a_missing_target(explorer):
    given = explorer.run(model="translator", text="the cat sat", target="a dog ran")
    assert [side["name"] for side in header_of(explorer, given)["sides"]] == ["source", "target"]
    written = explorer.run(model="translator", text="the cat sat")
    assert written["state"] == "done", written
    assert header_of(explorer, written)["sides"][1]["tokens"]


def test_the_view_can_be_taken_home_as_one_page(explorer, shown):
    status, page = explorer.get(f"/api/results/{shown['id']}/view.html")
    assert status == 200
    assert page.startswith(b"<!doctype html>")
    assert "attachment" in explorer.headers["content-disposition"]


def test_all_who_ask_for_a_page_at_once_get_the_whole_of_it(explorer):
    job = explorer.run(model="reader", text="the old cat slept under the tree")
    clients = [Client(explorer.link) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda client: client.get(f"/api/results/{job['id']}/view.html"), clients))
    assert {status for status, _ in got} == {200}
    assert len({page for _, page in got}) == 1
    assert got[0][1].rstrip().endswith(b"</html>")


def test_the_page_opens_with_the_look_on_screen_if_it_is_one(explorer, shown):
    def page(look: bytes) -> bytes:
        packed = base64.urlsafe_b64encode(look).decode().rstrip("=")
        status, page = explorer.get(f"/api/results/{shown['id']}/view.html?look={packed}")
        assert status == 200
        return page

    plain = page(b"{}")
    assert b'"view":"bars"' not in plain
    assert b'"view":"bars"' in page(b'{"view": "bars", "layers": [1], "pin": ["tgt", 2]}')
    for bad in (b"", b"nonsense", b"[]", b'{"view": "</script>"}', b'{"evil": 1}', b'{"layers": [99]}', b"[" * 2000):
        assert page(bad) == plain


def handles(name: str) -> int:
    """Open files of this name in this process, which the explorer runs in."""
    found = 0
    for handle in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{handle}").endswith(name)
        except OSError:
            continue
    return found


def test_large_files_go_out_in_pieces_and_are_let_go_of_when_nobody_takes_them(explorer, shown, monkeypatch):
    addresses = [f"/api/results/{shown['id']}/{name}" for name in ("trace.safetensors", "chunks/0", "chunks/1")]
    whole = [explorer.get(address)[1] for address in addresses]
    monkeypatch.setattr("normlens.explorer.app.SMALL", 0)
    monkeypatch.setattr("starlette.responses.FileResponse.chunk_size", 100)
    assert [explorer.get(address)[1] for address in addresses] == whole
    host, port = explorer.host.split(":")
    for _ in range(20):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"GET {addresses[0]} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    end = time.monotonic() + 10
    while handles("trace.safetensors") and time.monotonic() < end:
        time.sleep(0.05)
    assert handles("trace.safetensors") == 0


def test_a_saved_trace_can_be_opened_again(explorer, shown):
    saved = explorer.get(f"/api/results/{shown['id']}/trace.safetensors")[1]
    job = explorer.open(saved)
    assert job["state"] == "done", job
    assert header_of(explorer, job)["sides"] == header_of(explorer, shown)["sides"]


def test_two_runs_give_a_signed_difference_without_a_trace_of_its_own(explorer, shown):
    job = explorer.run(model="reader", text="the dog sat on the mat", base=shown["id"])
    assert job["result"]["difference"] is True
    assert all(measure["signed"] for measure in header_of(explorer, job)["measures"].values())
    status, said = explorer.get(f"/api/results/{job['id']}/trace.safetensors")
    assert status == 404
    assert "difference" in said["what"]
    assert explorer.get(f"/api/results/{job['id']}/view.html")[0] == 200
    status, said = explorer.post("/api/jobs", {"model": "reader", "text": "a", "base": job["id"]})
    assert status == 422


def test_what_cannot_be_compared_is_a_sentence(explorer, shown):
    job = explorer.run(model="translator", text="the cat sat", target="a dog", base=shown["id"])
    assert job["state"] == "failed"
    assert job["what"].strip()
    assert "Traceback" not in json.dumps(job)


def test_the_page_and_its_scripts_carry_the_policy_that_binds_them(explorer):
    status, page = explorer.get("/")
    assert status == 200
    assert b"<script>" not in page
    assert b" style=" not in page
    assert "default-src 'none'" in explorer.headers["content-security-policy"]
    assert explorer.headers["x-content-type-options"] == "nosniff"
    for name in ("app.js", "view.js", "view.css", "app.css"):
        assert explorer.get(f"/assets/{name}")[0] == 200
    explorer.get("/api/models")
    assert explorer.headers["cache-control"] == "no-store"


def test_a_report_is_served_beside_it_and_runs_no_script_but_our_own(explorer):
    assert explorer.get("/api/models")[1]["report"] is True
    status, page = explorer.get("/report/")
    assert status == 200
    assert b"Is it first?" in page
    for part in ("default-src 'none'", "script-src 'sha256-", "frame-ancestors 'self'"):
        assert part in explorer.headers["content-security-policy"]


def test_the_files_of_a_report_are_served_and_no_others(explorer):
    assert explorer.get("/report/tables/own_self.csv")[0] == 200
    assert explorer.get("/api/models")[1]["heads"] is True
    assert explorer.get("/report/heads.json")[1]["kinds"]["self"]["heads"].keys() == {"L1H0"}
    for path in ("tables/other.csv", "report.html", "run.safetensors", "tables/..%2f..%2freport.html", "figures/"):
        assert explorer.get(f"/report/{path}")[0] == 404


def test_without_a_report_there_is_none(start, folders):
    client = start(folders["reader"])
    assert client.get("/api/models")[1]["report"] is False
    assert client.get("/api/models")[1]["heads"] is False
    assert client.get("/report/")[0] == 404
