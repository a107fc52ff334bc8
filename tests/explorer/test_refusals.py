"""Requests that are not served, each followed by one that is."""

import errno
import json
import socket
import struct
from dataclasses import replace

import pytest
from talking import QUICK

import normlens as nl

JSON = {"Content_Type": "application/json"}


@pytest.fixture(scope="module")
def client(explorer):
    return explorer


@pytest.fixture(autouse=True)
def the_next_good_request_is_served(client):
    yield
    assert client.run(model="reader", text="the cat sat")["state"] == "done"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"[" * 100_000, 400, "not JSON"),
        (b"\xff\xfe\x00", 400, "not JSON"),
        (b"[1]", 400, "not an object"),
        (b'{"model": "reader", "text": 3}', 400, "a number, not a text"),
        (b'{"model": "reader", "text": ["a"]}', 400, "a list, not a text"),
        (b'{"model": "reader", "text": "\\ud800"}', 400, "surrogate"),
        (b'{"model": "reader", "text": "a", "file": "/etc/passwd"}', 400, "no field 'file'"),
        (b'{"model": "reader", "text": "a", "base": "../../etc"}', 400, "not the id"),
        (b'{"model": "reader", "text": "a", "base": "AAAAAAAAAAAAAAAAAAAAAA"}', 404, "no such result"),
        (b'{"model": "gpt2", "text": "a"}', 403, "does not run that model"),
        (b'{"model": "/etc", "text": "a"}', 403, "does not run that model"),
        (b'{"text": "a"}', 403, "does not run that model"),
        (b'{"model": "reader"}', 422, "no text"),
        (b'{"model": "reader", "text": "  "}', 422, "no text"),
        (b'{"model": "reader", "text": "a", "target": "b"}', 422, "one side"),
        (b'{"model": "reader", "text": "a", "pair": " "}', 422, "empty"),
        (json.dumps({"model": "reader", "text": "a" * 30_000}).encode(), 422, "30,000 characters"),
        (b" " * 300_000, 413, "larger than"),
    ],
)
def test_a_question_that_is_none(client, body, status, said):
    got, answer = client.send("POST", "/api/jobs", body, **JSON)
    assert got == status
    assert said in answer["what"]
    assert answer["do"]


def test_a_body_without_a_length_is_counted_while_it_arrives(client):
    def parts():
        for _ in range(100):
            yield b" " * 10_000

    status, answer = client.send("POST", "/api/jobs", parts(), **JSON)
    assert status == 413
    assert "larger than" in answer["what"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_types_that_a_form_of_another_site_could_send(client, kind):
    for path in ("/api/jobs", "/api/open", "/api/session"):
        assert client.send("POST", path, b"{}", Content_Type=kind)[0] == 415


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../../etc/passwd",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets/%252e%252e%252fetc%252fpasswd",
        "/assets//etc/passwd",
        "/assets/app.html",
        "/assets/child.py",
        "/assets/view.js%00.css",
        "/api/results/../../etc/passwd/header",
        "/api/results/..%2f..%2fetc/header",
        "/api/results/%2e%2e/trace.safetensors",
        "/api/jobs/..%2f..",
        "/..//..//etc/passwd",
        "/report/../../etc/passwd",
        "/nothing",
    ],
)
def test_paths_lead_nowhere_but_to_the_table(client, path):
    status, answer = client.get(path)
    assert status == 404
    assert answer["what"]
    assert b"root:" not in json.dumps(answer).encode()


def test_an_address_takes_its_own_methods_only(client):
    assert client.send("PUT", "/api/jobs", b"{}", **JSON)[0] == 405
    assert client.send("DELETE", "/api/models")[0] == 405
    assert client.get("/api/open")[0] == 405


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]"])
def test_another_name_for_this_computer_is_not_answered(client, host):
    for path in ("/", "/api/models"):
        status, answer = client.get(path, Host=host)
        assert status == 421
        assert "--allow-host" in answer["do"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "[::1]:8377", "127.0.0.1"])
def test_its_own_names_are_answered(client, host):
    assert client.get("/api/models", Host=host)[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "file://"])
def test_another_site_cannot_ask_through_its_visitors(client, origin):
    assert client.post("/api/jobs", {"model": "reader", "text": "a"}, Origin=origin)[0] == 403
    assert client.send("DELETE", "/api/jobs/x", Origin=origin)[0] == 403


def test_the_page_itself_may_ask(client):
    same = {"Origin": f"http://{client.host}", "Sec_Fetch_Site": "same-origin"}
    assert client.post("/api/jobs", {"model": "reader", "text": "the cat"}, **same)[0] == 202


def test_a_browser_that_says_where_it_comes_from_is_believed(client):
    assert client.get("/api/models", Sec_Fetch_Site="cross-site")[0] == 403
    assert client.get("/api/models", Sec_Fetch_Site="same-site")[0] == 403
    assert client.get("/", Sec_Fetch_Site="cross-site")[0] == 200


def test_more_tokens_than_it_takes(client):
    job = client.run(model="reader", text="cat " * 400)
    assert job["state"] == "failed"
    assert "401 tokens; this explorer takes 300" in job["what"]
    assert "--max-tokens" in job["do"]


def test_long_heads_and_no_http_at_all(client):
    assert client.get("/api/models", X="a" * 20_000)[0] == 431
    assert client.get("/api/models?" + "a" * 20_000)[0] == 431
    host, port = client.host.split(":")
    for sent in (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000, b"\x16\x03\x01 hello\r\n\r\n"):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(sent)
            assert b" 400 " in connection.recv(4096)


def test_more_uploads_than_the_disk_may_hold_are_refused(start, folders):
    small = start(folders["reader"], limits=replace(QUICK, result_bytes=10_000))
    kind = {"Content_Type": "application/octet-stream"}
    status, answer = small.send("POST", "/api/open", b"x" * 20_000, **kind)
    assert status == 507
    assert "wait to be opened" in answer["what"]
    assert small.send("POST", "/api/open", b"x" * 5_000, **kind)[0] == 202


def test_a_full_disk_is_a_sentence_without_a_path(client, monkeypatch):
    def expect(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/private")

    monkeypatch.setattr("normlens.explorer.results.Store.expect", expect)
    status, answer = client.send("POST", "/api/open", b"x", Content_Type="application/octet-stream")
    assert status == 507
    assert answer["what"] == "The disk of the explorer is full."
    assert "/tmp" not in json.dumps(answer)


def saved(client, tmp_path):
    job = client.run(model="reader", text="the cat sat")
    path = tmp_path / "t.safetensors"
    path.write_bytes(client.get(f"/api/results/{job['id']}/trace.safetensors")[1])
    return path


def story_of(path):
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    head = json.loads(raw[8 : 8 + size])
    return head, json.loads(head["__metadata__"]["normlens"]), raw[8 + size :]


def rewritten(head, story, data):
    head = head | {"__metadata__": {"normlens": json.dumps(story)}}
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + data


HEADS = {
    "noise": b"hello, this is no trace",
    "a length beyond the file": struct.pack("<Q", 1 << 60) + b"{}",
    "no JSON": struct.pack("<Q", 4) + b"nope",
    "a huge shape": struct.pack("<Q", 82)
    + b'{"x":{"dtype":"F32","shape":[1000000,1000000,1000],"data_offsets":[0,4000000000]}}',
    "no story": struct.pack("<Q", 2) + b"{}",
}


@pytest.mark.parametrize("what", HEADS)
def test_a_file_that_is_no_trace(client, what):
    job = client.open(HEADS[what])
    assert job["state"] == "failed"
    assert "trace" in job["what"]
    assert "/tmp" not in json.dumps(job)
    assert "worker" not in job["what"]


def test_a_failed_run_carries_the_parts_of_its_error(client):
    job = client.open(HEADS["noise"])
    assert job["what"] == "The file cannot be opened as a trace."
    assert job["cause"] == "another format, or a copy cut short."
    assert job["do"].startswith("open a .safetensors file")
    status, answer = client.send("POST", "/api/jobs", b"{}", Content_Type="text/plain")
    assert (status, answer["got"]) == (415, "text/plain")


def side_with(**fields):
    return lambda story: story["sides"][0].update({k: v(story["sides"][0]) for k, v in fields.items()})


def block_with(**facts):
    return lambda story: story["blocks"][0][0].update(facts)


LIES = {
    "tokens of numbers": side_with(tokens=lambda side: [1] * len(side["tokens"])),
    "tokens of objects": side_with(tokens=lambda side: [{"<img>": "x"}] * len(side["tokens"])),
    "missing tokens": side_with(tokens=lambda side: side["tokens"][:-1]),
    "words that are not there": side_with(word_ids=lambda side: [10**9] * len(side["tokens"])),
    "a token without end": side_with(tokens=lambda side: ["a" * 10_000] * len(side["tokens"])),
    "a signature without end": lambda story: story.update(signature=[["model", "x" * 1_000_000]]),
    "an error that is no number": block_with(error=float("nan")),
    "no sides": lambda story: story.update(sides=[]),
    "blocks that are a number": lambda story: story.update(blocks=7),
    "wires that are nested deeply": lambda story: story.update(wires=json.loads("[" * 900 + "]" * 900)),
    "an unknown field": block_with(evil="x"),
    "a layer of words": block_with(layer="</script>"),
    "another number of heads": block_with(heads=[0, 1, 2, 3, 4]),
    "a tensor that is not there": lambda story: story["blocks"][0][1].append("transformed"),
}


@pytest.mark.parametrize("what", LIES)
def test_a_trace_whose_story_lies(client, tmp_path, what):
    head, story, data = story_of(saved(client, tmp_path))
    LIES[what](story)
    job = client.open(rewritten(head, story, data))
    assert job["state"] == "failed", what
    assert "/tmp" not in json.dumps(job)
    assert "worker" not in job["what"]


def test_a_trace_with_nan(client, tmp_path):
    head, story, data = story_of(saved(client, tmp_path))
    job = client.open(rewritten(head, story, b"\xff" * len(data)))
    assert job["state"] == "failed"
    assert "NaN" in job["what"]


def test_an_empty_file_and_one_that_is_too_large(client):
    kind = {"Content_Type": "application/octet-stream"}
    assert client.send("POST", "/api/open", b"", **kind)[0] == 400
    assert client.send("POST", "/api/open", b"", **kind, Content_Length="99999999999")[0] == 413


def test_the_guess_of_a_name_leads_to_no_result(client):
    assert client.get("/api/results/AAAAAAAAAAAAAAAAAAAAAA/header")[0] == 404
    assert client.get("/api/jobs/AAAAAAAAAAAAAAAAAAAAAA")[0] == 404


def test_errors_of_the_package_are_one_kind():
    from normlens.explorer.refusal import Refusal

    assert issubclass(Refusal, nl.NormlensError)
