"""The addresses of one result: what a view asks for, and what can be taken home.

Room: HTTP to files of the store, by id and number.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from normlens.explorer import result
from normlens.explorer.queue import Queue
from normlens.explorer.refusal import Refusal, gone

PIECE = 1 << 18  # bytes read from a file at a time
LOOK = re.compile(r"[A-Za-z0-9_-]{0,4000}")  # JSON in base64url; what it says is the worker's to judge


def result_routes(queue: Callable[[], Queue]) -> list[Route]:
    """Routes under /api/results/{id}."""

    async def header(request: Request) -> Response:
        return _file(_folder(request) / result.HEADER, "application/json")

    async def chunk(request: Request) -> Response:
        folder, number = _folder(request), _number(request, "number")
        start, size = await asyncio.to_thread(result.chunk, folder, number)
        return _file(folder / result.CHUNKS, "application/octet-stream", start=start, size=size)

    async def exact(request: Request) -> Response:
        folder, side = _folder(request), request.path_params["side"]
        if side not in ("tgt", "src"):
            raise Refusal(404, "A side is tgt or src.", "ask for one of them.")
        numbers = await asyncio.to_thread(result.exact, folder, _number(request, "panel"), side, _number(request, "at"))
        return Response(numbers, media_type="application/octet-stream")

    async def view(request: Request) -> Response:
        look = request.query_params.get("look", "")
        look = look if LOOK.fullmatch(look) else ""
        path = await queue().page(request.path_params["id"], look, request.is_disconnected)
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


class _Pieces(StreamingResponse):
    """Bytes of an open file, which is closed whatever becomes of the connection."""

    def __init__(self, file: BinaryIO, size: int, kind: str, headers: dict[str, str]) -> None:
        super().__init__(self._read(size), media_type=kind, headers=headers | {"content-length": str(size)})
        self.file = file

    def _read(self, left: int) -> Iterator[bytes]:
        while left and (piece := self.file.read(min(PIECE, left))):
            left -= len(piece)
            yield piece

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.file:
            await super().__call__(scope, receive, send)


def _file(
    path: Path, kind: str, headers: dict[str, str] | None = None, *, start: int = 0, size: int | None = None
) -> Response:
    """A file of the store, or a part of it. Once open it can be read to its end, also if the store throws it out."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise gone() from error
    file.seek(start)
    size = os.fstat(file.fileno()).st_size if size is None else size
    if size <= PIECE:
        with file:
            return Response(file.read(size), media_type=kind, headers=headers)
    return _Pieces(file, size, kind, headers or {})
