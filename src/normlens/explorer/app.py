"""The addresses of the explorer: what each takes and answers. Any failure is one refusal for one client."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from normlens.errors import NormlensError
from normlens.exhibits import script_hash
from normlens.explorer import guard, request, results
from normlens.explorer.jobs import OPENER, Jobs
from normlens.explorer.refusal import Refusal, ServerError, disk_full, gone
from normlens.explorer.settings import Settings
from normlens.version import __version__

JS, CSS, HTML = "text/javascript; charset=utf-8", "text/css; charset=utf-8", "text/html; charset=utf-8"
TYPES = {".js": JS, ".css": CSS, ".html": HTML, ".json": "application/json"}
BYTES = "application/octet-stream"
SMALL = 1 << 18  # bytes of a file that is answered at once
LOOK = re.compile(r"[A-Za-z0-9_-]{0,4000}")  # JSON in base64url; the worker judges what it says
REPORT_POLICY = (  # no script but that of our own reports may run, whoever wrote the page
    f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script_hash()}'; img-src data:; "
    "frame-ancestors 'self'"
)
REPORT_FILE = re.compile(r"(figures|tables)/[\w.-]+\.(svg|png|csv|json)|(findings|heads)\.json", re.ASCII)


class Explorer:
    """The endpoints and what they share."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.limits = settings, settings.limits
        self.models = {model.name: model for model in settings.models}
        self.report = _report(settings.report)
        self.assets = _assets()
        self.page = self.assets.pop("app.html")
        self.jobs: Jobs  # set when the server starts

    def app(self) -> Starlette:
        """The app behind its guard."""
        result = "/api/results/{id}"
        routes = [
            Route("/", self.get_page),
            Route("/favicon.ico", lambda _: Response(status_code=204)),
            Route("/assets/{name}", self.get_asset),
            Route("/report/", self.get_report),
            Route("/report/{path:path}", self.get_report_file),
            Route("/api/session", self.begin_session, methods=["POST"]),
            Route("/api/models", self.get_models),
            Route("/api/jobs", self.run, methods=["POST"]),
            Route("/api/open", self.open, methods=["POST"]),
            Route("/api/jobs/{id}", self.get_job, methods=["GET"]),
            Route("/api/jobs/{id}", self.cancel, methods=["DELETE"]),
            Route(f"{result}/header", self.get_header),
            Route(f"{result}/chunks/{{number}}", self.get_chunk),
            Route(f"{result}/exact/{{panel}}/{{axis}}/{{at}}", self.get_exact),
            Route(f"{result}/view.html", self.get_view),
            Route(f"{result}/trace.safetensors", self.get_trace),
        ]
        handlers: Any = {NormlensError: _refused, HTTPException: _unknown, OSError: _disk, Exception: _broken}
        guarded = [Middleware(guard.Guard, settings=self.settings)]
        return Starlette(routes=routes, middleware=guarded, exception_handlers=handlers, lifespan=self._life)

    @asynccontextmanager
    async def _life(self, _: Starlette) -> AsyncIterator[None]:
        self.jobs = Jobs(self.settings)
        self.jobs.start(preload=self.settings.preload)
        try:
            yield
        finally:
            await self.jobs.stop()

    async def get_page(self, _: Request) -> Response:
        return Response(self.page, media_type=HTML, headers={"cache-control": "no-cache"})

    async def get_asset(self, got: Request) -> Response:
        name = got.path_params["name"]
        if name not in self.assets:
            raise Refusal(404, "There is no such file.", do="open the explorer's page.")
        headers = {"content-type": TYPES[Path(name).suffix], "cache-control": "no-cache"}
        return Response(self.assets[name], headers=headers)

    async def get_report(self, _: Request) -> Response:
        if self.report is None:
            raise Refusal(404, "This explorer was started without a corpus.", do="start it with --corpus F.")
        return Response(self.report, media_type=HTML, headers={"content-security-policy": REPORT_POLICY})

    async def get_report_file(self, got: Request) -> Response:
        """A figure or a table that the report links to."""
        path, folder = got.path_params["path"], self.settings.report
        if folder is None or not REPORT_FILE.fullmatch(path) or not (folder / path).is_file():
            raise Refusal(404, "The report has no such file.", do="follow a link of the report.")
        return FileResponse(folder / path, media_type=TYPES.get(Path(path).suffix, BYTES), filename=Path(path).name)

    async def begin_session(self, got: Request) -> Response:
        """Exchange the token of the link for a cookie that scripts cannot read."""
        sent, token = await request.body(got, 4096), self.settings.token
        response = JSONResponse({"ok": True})
        if token is not None:
            given = sent.get("token") if isinstance(sent, dict) else None
            if not isinstance(given, str) or not guard.same(given, token):
                raise guard.wrong_token()
            name = guard.cookie_name(self.settings)
            response.set_cookie(name, guard.proof(token), httponly=True, samesite="strict")
        return response

    async def get_models(self, _: Request) -> Response:
        models = [{"name": model.name, "kind": model.kind} for model in self.settings.models]
        limits = {name: getattr(self.limits, name) for name in ("tokens", "characters", "upload")}
        folder = self.settings.report
        return JSONResponse(
            {
                "models": models,
                "limits": limits,
                "report": folder is not None,
                "heads": folder is not None and (folder / "heads.json").is_file(),
                "version": __version__,
            }
        )

    async def run(self, got: Request) -> Response:
        """Trace a text."""
        asked = request.question(await request.body(got, self.limits.body), self.models, self.limits)
        return JSONResponse(self.jobs.add(asked.model, asked.texts, asked.base).body(), 202)

    async def open(self, got: Request) -> Response:
        """Open a saved trace, the body of the request."""
        store, name = self.jobs.store, self.jobs.store.new()
        path = store.root / name / "upload.safetensors"
        try:
            with path.open("wb") as file:
                async for part in request.parts(got, BYTES, self.limits.upload):
                    store.expect(name, len(part))
                    file.write(part)
            if not path.stat().st_size:
                raise Refusal(400, "The file is empty.", do="choose a .safetensors file that trace.save() wrote.")
            job = self.jobs.add(OPENER, {"file": str(path)}, got.query_params.get("base"), name)
        except BaseException:
            store.drop(name)
            raise
        return JSONResponse(job.body(), 202)

    async def get_job(self, got: Request) -> Response:
        """The progress of a job; with ?after=VERSION the answer waits until there is something newer."""
        job, after = self.jobs.job(got.path_params["id"]), got.query_params.get("after", "")
        if re.fullmatch(r"\d{1,9}", after):
            await job.wait(int(after), self.limits.poll_seconds)
        return JSONResponse(job.body())

    async def cancel(self, got: Request) -> Response:
        job = self.jobs.job(got.path_params["id"])
        self.jobs.cancel(job)
        return JSONResponse(job.body(), 202)

    def _folder(self, got: Request) -> Path:
        return self.jobs.store.folder(got.path_params["id"])

    async def get_header(self, got: Request) -> Response:
        return _file(self._folder(got) / results.HEADER)

    async def get_chunk(self, got: Request) -> Response:
        path = self._folder(got) / f"chunk-{_number(got, 'number')}.bin"
        if not path.exists():
            raise Refusal(404, "This result has no such chunk.", do="ask for one that the header lists.")
        return _file(path)

    async def get_exact(self, got: Request) -> Response:
        """The numbers of a pinned token, which the packed figure may hold rounded."""
        folder, axis = self._folder(got), got.path_params["axis"]
        if axis not in ("tgt", "src"):
            raise Refusal(404, "An axis is tgt or src.", do="ask for one of them.")
        numbers = await asyncio.to_thread(results.exact, folder, _number(got, "panel"), axis, _number(got, "at"))
        return Response(numbers, media_type=BYTES)

    async def get_trace(self, got: Request) -> Response:
        path = self._folder(got) / results.TRACE
        if not path.exists():
            raise Refusal(404, "A difference has no trace.", do="download the traces of its two runs.")
        return _file(path, "trace.safetensors")

    async def get_view(self, got: Request) -> Response:
        """The view as one page to download, written for this request by a worker."""
        look = got.query_params.get("look", "")
        order = {"page_of": str(self._folder(got)), "look": look if LOOK.fullmatch(look) else ""}
        job = self.jobs.add(OPENER, order)
        while not job.over:
            await job.wait(job.version, 1.0)
            if await got.is_disconnected():
                self.jobs.cancel(job)
        if job.refusal is not None:
            raise job.refusal
        drop = BackgroundTask(self.jobs.store.drop, job.id)
        return _file(self.jobs.store.root / job.id / results.PAGE, "view.html", drop)


def _assets() -> dict[str, bytes]:
    """The page, scripts and styles by name, so that no name of a browser becomes a path."""
    views, own = (files(package) / "assets" for package in ("normlens.views", "normlens.explorer"))
    scripts = [path for path in views.iterdir() if path.name.endswith((".js", ".css"))]
    return {path.name: path.read_bytes() for path in (*scripts, *own.iterdir())}


def _report(folder: Path | None) -> bytes | None:
    """The report.html of a folder that `normlens report` wrote."""
    try:
        return folder and (folder / "report.html").read_bytes()
    except OSError as error:
        do = "name the folder that `normlens report --out DIR` wrote."
        raise ServerError(f"There is no readable report.html in '{folder}'.", got=error.strerror, do=do) from error


def _number(got: Request, name: str) -> int:
    if not re.fullmatch(r"[0-9]{1,6}", got.path_params[name]):
        raise Refusal(404, "That is not a number of a part.", do="ask for one that the header lists.")
    return int(got.path_params[name])


def _file(path: Path, download: str | None = None, after: BackgroundTask | None = None) -> Response:
    """A file of the store; once open it can be read to its end, even if it is deleted."""
    media_type = TYPES.get(path.suffix, BYTES)
    try:
        if path.stat().st_size <= SMALL and download is None:
            return Response(path.read_bytes(), media_type=media_type)
    except OSError as error:
        raise gone() from error
    return FileResponse(path, media_type=media_type, filename=download, background=after)


async def _refused(_: Request, error: NormlensError) -> Response:
    return guard.answer(error if isinstance(error, Refusal) else Refusal.of(error))


async def _unknown(_: Request, error: HTTPException) -> Response:
    what = "This address takes other methods." if error.status_code == 405 else "There is nothing at this address."
    return guard.answer(Refusal(error.status_code, what, do="open the explorer's page."))


async def _disk(_: Request, error: OSError) -> Response:
    if (refusal := disk_full(error)) is None:
        raise error
    return guard.answer(refusal)


async def _broken(_: Request, __: Exception) -> Response:
    what = "The explorer failed at this request; its terminal shows where."
    return guard.answer(Refusal(500, what, do="try again; other requests are not affected."))
