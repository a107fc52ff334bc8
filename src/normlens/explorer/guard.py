"""Who may use the explorer, decided from the head of a request, and the headers of every answer.

A page of another site can make a visitor's browser send requests here. Three checks stop it: the Host header (a foreign
name that resolves to 127.0.0.1), Origin and Sec-Fetch-Site (a foreign page that names this address), and content types
that no form can send.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from normlens.explorer.refusal import Refusal
from normlens.explorer.settings import ANY, LONGEST_HEAD, Settings

WITHOUT_TOKEN = ("/", "/favicon.ico", "/api/session")  # and /assets/: the page with nothing in it
FROM_ANYWHERE = ("/", "/report/")  # a link on another site may lead here
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Refuses requests that are not from the explorer's own page, or lack the token where one is needed."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self.app
        if scope["type"] == "http":
            try:
                self._check(scope, Headers(scope=scope))
            except Refusal as refusal:
                app = answer(refusal)
        await app(scope, receive, send_guarded)

    def _check(self, scope: Scope, headers: Headers) -> None:
        size = len(scope["raw_path"] + scope["query_string"]) + sum(len(k) + len(v) for k, v in headers.raw)
        if size > LONGEST_HEAD:
            raise Refusal(431, "The head of the request is too long.", do="send the text in the body.")
        host, path = headers.get("host", ""), scope["path"]
        name = re.sub(r":\d*$", "", host).strip("[]").lower()
        if name not in self.settings.hosts and not (self.settings.host in ANY and _is_number(name)):
            raise Refusal(
                421,
                f"This explorer does not answer to the name '{name[:80]}'.",
                do="use the address it printed; or start it with --allow-host NAME.",
            )
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        foreign = origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower())
        elsewhere = site not in (None, "same-origin", "none") and path not in FROM_ANYWHERE
        if elsewhere or (foreign and scope["method"] not in ("GET", "HEAD")):
            raise Refusal(403, "The request comes from another site.", do="open the explorer's own page.")
        free = path in WITHOUT_TOKEN or path.startswith("/assets/")
        if not free and not _knows_token(headers, self.settings):
            raise wrong_token()


def _is_number(host: str) -> bool:
    """Whether the host is an address in numbers, which no foreign name can stand for."""
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def _knows_token(headers: Headers, settings: Settings) -> bool:
    if settings.token is None:
        return True
    scheme, _, given = headers.get("authorization", "").partition(" ")
    cookie = cookie_parser(headers.get("cookie", "")).get(cookie_name(settings), "")
    return (scheme.lower() == "bearer" and same(given.strip(), settings.token)) or same(cookie, proof(settings.token))


def same(given: str, right: str) -> bool:
    """Whether two texts are equal, compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), right.encode())


def proof(token: str) -> str:
    """The value of the cookie: it proves the token and does not hold it."""
    return hmac.new(token.encode(), b"normlens session", hashlib.sha256).hexdigest()


def cookie_name(settings: Settings) -> str:
    """The name of the cookie, with the port, which cookies do not distinguish."""
    return f"normlens-{settings.port}"


def wrong_token() -> Refusal:
    """The refusal without the right token."""
    return Refusal(401, "The token is missing or wrong.", do="open the link that the explorer printed.")


def answer(refusal: Refusal) -> JSONResponse:
    """A refusal as an HTTP answer."""
    wait = {} if refusal.wait is None else {"retry-after": str(refusal.wait)}
    return JSONResponse(refusal.body(), refusal.status, HEADERS | wait)
