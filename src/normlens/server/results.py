"""The addresses of one result: what a view asks for, and what can be taken home.

Room: HTTP to files of the store, by id and number.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from normlens.server import result
from normlens.server.queue import Queue
from normlens.server.refusal import Refusal

PIECE = 1 << 18  # bytes read from a file at a time


def result_routes(queue: Callable[[], Queue]) -> list[Route]:
    """Routes under /api/results/{id}."""

    async def header(request: Request) -> Response:
        return _file(_folder(request) / result.HEADER, "application/json")

    async def chunk(request: Request) -> Response:
        packed = result.chunk(_folder(request), _number(request, "number"))
        return Response(packed, media_type="application/octet-stream")

    async def exact(request: Request) -> Response:
        folder, side = _folder(request), request.path_params["side"]
        if side not in ("tgt", "src"):
            raise Refusal(404, "A side is tgt or src.", "ask for one of them.")
        numbers = await asyncio.to_thread(result.exact, folder, _number(request, "panel"), side, _number(request, "at"))
        return Response(numbers, media_type="application/octet-stream")

    async def view(request: Request) -> Response:
        path = await queue().page(request.path_params["id"])
        return _file(path, "text/html; charset=utf-8", _named("view.html"))

    async def trace(request: Request) -> Response:
        path = _folder(request) / result.TRACE
        if not path.exists():
            raise Refusal(404, "A difference has no trace of its own.", "download the two runs it was made of.")
        return _file(path, "application/octet-stream", _named("trace.safetensors"))

    def _folder(request: Request) -> Path:
        return queue().store.folder(request.path_params["id"])

    at = "/api/results/{id}"
    return [
        Route(f"{at}/header", header),
        Route(f"{at}/chunks/{{number}}", chunk),
        Route(f"{at}/exact/{{panel}}/{{side}}/{{at}}", exact),
        Route(f"{at}/view.html", view),
        Route(f"{at}/trace.safetensors", trace),
    ]


def _number(request: Request, name: str) -> int:
    text = request.path_params[name]
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise Refusal(404, "That is not a number of a part.", "ask for one that the header counts.")
    return int(text)


def _named(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


def _file(path: Path, kind: str, headers: dict[str, str] | None = None) -> Response:
    """A file of the store. Once open it can be read to its end, also if the store throws it out meanwhile."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise result.gone() from error
    size = path.stat().st_size if path.exists() else None
    if size is not None and size <= PIECE:
        with file:
            return Response(file.read(), media_type=kind, headers=headers)

    def pieces() -> Iterator[bytes]:
        with file:
            while piece := file.read(PIECE):
                yield piece

    length = {} if size is None else {"content-length": str(size)}
    return StreamingResponse(pieces(), media_type=kind, headers=length | (headers or {}))
