"""An explorer for others: nobody without the token, and the token never in an address."""

import pytest

from normlens.explorer import Allowed, ServerError, Settings

TOKEN = "a-token-of-the-tests-0001"
MODEL = Allowed("reader", "/nowhere", "encoder")


@pytest.fixture(scope="module")
def locked(start):
    return start(models=(MODEL,), token=TOKEN)


def test_the_link_keeps_the_token_behind_the_hash(locked):
    assert locked.link.endswith(f"/#token={TOKEN}")


def test_without_it_there_is_the_bare_page_and_nothing_else(locked):
    assert locked.get("/")[0] == 200
    assert locked.get("/assets/app.js")[0] == 200
    for path in ("/api/models", "/api/jobs/x", "/api/results/x/header", "/report/"):
        status, said = locked.get(path)
        assert status == 401
        assert "link" in said["do"]
    assert locked.post("/api/jobs", {"model": "reader", "text": "a"})[0] == 401


@pytest.mark.parametrize(
    "given", ["", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é", "\ud800", None, 7, [TOKEN]]
)
def test_a_wrong_one_opens_nothing(locked, given):
    assert locked.post("/api/session", {"token": given})[0] == 401
    assert "set-cookie" not in locked.headers
    if isinstance(given, str) and given.isascii():
        assert locked.get("/api/models", Authorization=f"Bearer {given}")[0] == 401


def test_in_a_header_it_opens(locked):
    assert locked.get("/api/models", Authorization=f"Bearer {TOKEN}")[0] == 200


def test_it_is_exchanged_for_a_cookie_that_no_script_and_no_other_site_can_use(locked):
    assert locked.post("/api/session", {"token": TOKEN})[0] == 200
    cookie = locked.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert TOKEN not in cookie
    assert locked.get("/api/models", Cookie=cookie.split(";")[0])[0] == 200
    assert locked.get("/api/models", Cookie=cookie.split(";")[0][:-1])[0] == 401


def test_it_is_not_taken_from_the_address(locked):
    assert locked.get(f"/api/models?token={TOKEN}")[0] == 401


def test_another_host_needs_one_that_cannot_be_guessed():
    with pytest.raises(ServerError, match="--token auto"):
        Settings((MODEL,), host="0.0.0.0")
    with pytest.raises(ServerError, match="can be guessed"):
        Settings((MODEL,), host="0.0.0.0", token="short")
    assert Settings((MODEL,), host="0.0.0.0", token=TOKEN)


def test_behind_every_address_numbers_and_its_own_name_are_known_and_other_names_are_not(start):
    client = start(models=(MODEL,), host="0.0.0.0", token=TOKEN, names=("my.example",))
    client.host = client.host.replace(client.host.split(":")[0], "127.0.0.1")
    printed = client.link.split("/")[2]
    for host, status in ((printed, 401), ("192.168.7.7:8377", 401), ("my.example", 401), ("evil.example", 421)):
        assert client.get("/api/models", Host=host)[0] == status
