"""The explorer's addresses: what each takes, and what it answers.

Room: HTTP to jobs and results. Whatever goes wrong becomes one sentence for one client.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from normlens.errors import NormlensError
from normlens.explorer import body, disk, guard, pages
from normlens.explorer.ask import read_ask
from normlens.explorer.queue import OPENER, Queue
from normlens.explorer.refusal import Refusal, from_error
from normlens.explorer.results import result_routes
from normlens.explorer.settings import Settings
from normlens.version import __version__

CLIENT = re.compile(r"[A-Za-z0-9_-]{8,64}")


class Explorer:
    """The endpoints, and what they share."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.limits = settings, settings.limits
        self.models = {one.name: one for one in settings.models}
        self.assets, self.front, self.report_page = pages.assets(), pages.page(), pages.report(settings.report)
        self.queue: Queue  # from the start of the server on
        self.uploads = asyncio.Semaphore(settings.limits.uploads)

    def app(self) -> Starlette:
        """The app, guarded."""
        routes = [
            Route("/", self.page),
            Route("/favicon.ico", lambda _: Response(status_code=204)),
            Route("/assets/{name}", self.asset),
            Route("/report", self.report),
            Route("/api/session", self.session, methods=["POST"]),
            Route("/api/models", self.known_models),
            Route("/api/jobs", self.ask, methods=["POST"]),
            Route("/api/jobs/{id}", self.job, methods=["GET"]),
            Route("/api/jobs/{id}", self.cancel, methods=["DELETE"]),
            Route("/api/open", self.open, methods=["POST"]),
            *result_routes(lambda: self.queue),
        ]
        return Starlette(
            routes=routes,
            middleware=[Middleware(guard.Guard, settings=self.settings)],
            exception_handlers={
                NormlensError: _refused,
                HTTPException: _unknown,
                OSError: _not_written,
                Exception: _broken,
            },
            lifespan=self.life,
        )

    @asynccontextmanager
    async def life(self, _: Starlette) -> AsyncIterator[None]:
        """Workers and results live as long as the server."""
        self.queue = Queue(self.settings)
        self.queue.start(preload=self.settings.preload)
        try:
            yield
        finally:
            await self.queue.stop()

    def release(self) -> None:
        """The server is about to stop, perhaps before it has begun."""
        if hasattr(self, "queue"):
            self.queue.release()

    async def page(self, _: Request) -> Response:
        return Response(self.front, media_type="text/html", headers={"cache-control": "no-cache"})

    async def asset(self, request: Request) -> Response:
        found = self.assets.get(request.path_params["name"])
        if found is None:
            raise Refusal(404, "There is no such file.", "open the explorer's page.")
        return Response(found.content, headers={"content-type": found.kind, "cache-control": "no-cache"})

    async def report(self, _: Request) -> Response:
        if self.report_page is None:
            raise Refusal(404, "This explorer was started without a report.", "start it with --report DIR.")
        policy = {"content-security-policy": pages.REPORT_POLICY}
        return Response(self.report_page, media_type="text/html", headers=policy)

    async def session(self, request: Request) -> Response:
        """The token of the link, exchanged for a cookie that scripts cannot read."""
        body.check_type(request, "application/json")
        sent = await body.into_memory(request, most=4096, seconds=self.limits.body_seconds)
        try:
            given = json.loads(sent)["token"]
        except (ValueError, KeyError, TypeError, RecursionError):
            given = None
        token = self.settings.token
        if token is not None and not (isinstance(given, str) and guard.same(given, token)):
            raise Refusal(401, "The token is missing or wrong.", "open the link that the explorer printed.")
        response = JSONResponse({"ok": True})
        if token is not None:
            name, value = guard.cookie_name(self.settings), guard.session(token)
            response.set_cookie(name, value, httponly=True, samesite="strict")
        return response

    async def known_models(self, _: Request) -> Response:
        models = [
            {"name": one.name, "kind": one.kind, "loaded": self.queue.workers[one.name].loaded}
            for one in self.settings.models
        ]
        limits = {name: getattr(self.limits, name) for name in ("tokens", "characters", "upload")}
        about = {"models": models, "limits": limits, "report": self.report_page is not None, "version": __version__}
        return JSONResponse(about)

    async def ask(self, request: Request) -> Response:
        body.check_type(request, "application/json")
        sent = await body.into_memory(request, most=self.limits.body, seconds=self.limits.body_seconds)
        ask = read_ask(sent, self.models, self.limits)
        return self._add(request, ask.model, ask.order, ask.base)

    async def open(self, request: Request) -> Response:
        """A saved trace, as the raw body."""
        body.check_type(request, "application/octet-stream")
        if self.uploads.locked():
            raise Refusal(503, "Too many files are being opened.", "try again in a few seconds.", retry_after=5)
        self.queue.check_room(*_client(request))
        async with self.uploads:
            name, folder = self.queue.store.new()
            path = folder / "upload.safetensors"
            most, seconds = self.limits.upload, self.limits.upload_seconds
            try:
                expect = partial(self.queue.store.expect, name)
                size = await body.into_file(request, path, expect, most=most, seconds=seconds)
                if not size:
                    raise Refusal(400, "The file is empty.", "choose a .safetensors file that trace.save() wrote.")
                return self._add(request, OPENER, {"file": str(path)}, request.query_params.get("base"), name)
            except BaseException:
                self.queue.store.drop(name)
                raise

    async def job(self, request: Request) -> Response:
        """Where a job stands; with ?after=VERSION the answer waits until there is something newer."""
        job = self.queue.job(request.path_params["id"])
        after = request.query_params.get("after", "")
        if re.fullmatch(r"\d{1,9}", after) and not self.queue.closing:
            await job.wait(int(after), self.limits.poll_seconds)
        return JSONResponse(job.body())

    async def cancel(self, request: Request) -> Response:
        job = self.queue.job(request.path_params["id"])
        self.queue.cancel(job)
        return JSONResponse(job.body(), 202)

    def _add(
        self, request: Request, worker: str, order: dict[str, Any], base: str | None, name: str | None = None
    ) -> Response:
        who = _client(request)
        self.queue.check_room(*who)
        below = self.queue.base(base) if base else None
        job = self.queue.add(name or self.queue.store.new()[0], who, worker, order, below)
        return JSONResponse(job.body(), 202)


def _client(request: Request) -> tuple[str, str]:
    """Who asks, and from where. A tab names itself, so that people behind one address do not wait for each other."""
    given, address = request.headers.get("x-client", ""), request.client.host if request.client else ""
    return given if CLIENT.fullmatch(given) else address, address


async def _refused(_: Request, error: Exception) -> Response:
    return guard.answer(error if isinstance(error, Refusal) else from_error(error))  # pyright: ignore[reportArgumentType]


async def _unknown(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    sentence = "This address takes other methods." if status == 405 else "There is nothing at this address."
    return guard.answer(Refusal(status, sentence, "open the explorer's page."))


async def _not_written(_: Request, error: Exception) -> Response:
    if not disk.is_full(error):
        raise error
    return guard.answer(disk.refusal())


async def _broken(_: Request, __: Exception) -> Response:
    sentence = "The explorer failed at this request; its terminal shows where."
    return guard.answer(Refusal(500, sentence, "try again; other requests are not affected."))
