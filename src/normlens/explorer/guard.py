"""Who may speak to the explorer, and what every answer says to the browser about it.

Room: the outermost layer of the app. Looks at heads of requests only; knows no model and no job.

A page of another site can make a visitor's browser send requests here. It is stopped by the Host header (a foreign name
that resolves to 127.0.0.1), by Origin and Sec-Fetch-Site (a foreign page that names us), and by content types that no
form can send.
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
from normlens.explorer.settings import ANY, Settings

OPEN = ("/", "/favicon.ico", "/api/session")  # and /assets/: the page without anything in it
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
SAID = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Refuses what does not come from the explorer's own page, or without the token where one is needed."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def say(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAID.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope, Headers(scope=scope))
        except Refusal as refusal:
            await answer(refusal)(scope, receive, say)
            return
        await self.app(scope, receive, say)

    def _check(self, scope: Scope, headers: Headers) -> None:
        head = sum(map(len, (scope["raw_path"], scope["query_string"]))) + sum(len(k) + len(v) for k, v in headers.raw)
        if head > self.settings.limits.header_bytes:
            raise Refusal(431, "The head of the request is too long.", "send the text in the body.")
        host = headers.get("host", "")
        if not self._known(_name(host)):
            raise Refusal(
                421, f"This explorer does not answer to the name '{_name(host)[:80]}'.",
                "use the address it printed; or start it with --allow-host NAME.",
            )  # fmt: skip
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        reads = scope["method"] in ("GET", "HEAD")
        foreign = origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower())
        elsewhere = site not in (None, "same-origin", "none") and scope["path"] not in ("/", "/report")
        if elsewhere or (foreign and not reads):
            raise Refusal(403, "The request comes from another site.", "open the explorer's own page.")
        free = scope["path"] in OPEN or scope["path"].startswith("/assets/")
        if self.settings.token is not None and not free and not self._knows_token(headers):
            raise Refusal(401, "The token is missing or wrong.", "open the link that the explorer printed.")

    def _known(self, name: str) -> bool:
        if name in self.settings.hosts:
            return True
        return self.settings.host in ANY and _is_address(name)  # no foreign name can stand behind a number

    def _knows_token(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and same(given.strip(), str(self.settings.token)):
            return True
        cookie = cookie_parser(headers.get("cookie", "")).get(cookie_name(self.settings), "")
        return same(cookie, session(str(self.settings.token)))


def same(given: str, right: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), right.encode())


def session(token: str) -> str:
    """What the cookie holds: proof of the token, without it."""
    return hmac.new(token.encode(), b"normlens session", hashlib.sha256).hexdigest()


def cookie_name(settings: Settings) -> str:
    """Cookies do not know ports, so the name does."""
    return f"normlens-{settings.port}"


def answer(refusal: Refusal) -> JSONResponse:
    """A refusal as the browser reads it."""
    again = {} if refusal.retry_after is None else {"retry-after": str(refusal.retry_after)}
    return JSONResponse(refusal.body(), refusal.status, SAID | again)


def _name(host: str) -> str:
    """The name in a Host header, without port and brackets."""
    return re.sub(r":\d*$", "", host).strip("[]").lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
