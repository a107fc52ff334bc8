"""The body of a request, counted while it arrives: too much or too slow and reading ends.

Room: bytes from the network to memory or to one file whose path the server chose.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from starlette.requests import ClientDisconnect, Request

from normlens.explorer.refusal import Refusal


async def into_memory(request: Request, *, most: int, seconds: float) -> bytes:
    """A small body."""
    parts: list[bytes] = []
    async for part in _counted(request, most, seconds):
        parts.append(part)
    return b"".join(parts)


async def into_file(request: Request, path: Path, expect: Callable[[int], None], *, most: int, seconds: float) -> int:
    """A large body; it is never in memory as a whole. `expect` is told of each part before it is written."""
    size = 0
    with path.open("wb") as file:
        async for part in _counted(request, most, seconds):
            expect(len(part))
            file.write(part)
            size += len(part)
    return size


def check_type(request: Request, wanted: str) -> None:
    """A form of another site cannot send these types without asking first."""
    got = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if got != wanted:
        raise Refusal(415, f"The request is {got[:60] or 'of no type'}, not {wanted}.", f"send Content-Type: {wanted}.")


async def _counted(request: Request, most: int, seconds: float) -> AsyncIterator[bytes]:
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > most:
        raise _too_large(most)
    clock = asyncio.get_running_loop().time
    stream, size, end = request.stream(), 0, clock() + seconds
    while True:
        try:
            part = await asyncio.wait_for(anext(stream), end - clock())
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise Refusal(408, f"The request did not arrive within {seconds:.0f} seconds.", "send it again.") from error
        except ClientDisconnect as error:
            raise Refusal(400, "The request broke off.", "send it again.") from error
        size += len(part)
        if size > most:
            raise _too_large(most)
        yield part


def _too_large(most: int) -> Refusal:
    size = f"{most / 1e6:,.0f} MB" if most >= 1e6 else f"{most / 1e3:,.0f} kB"
    return Refusal(413, f"The request is larger than {size}.", "send less; long work belongs on the command line.")
