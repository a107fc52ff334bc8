"""Start the explorer on a socket and end it, leaving nothing behind."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from normlens.errors import NormlensError
from normlens.explorer.refusal import ServerError
from normlens.explorer.settings import LONGEST_HEAD, Settings

GRACE = 2  # seconds for answers that are under way when the server is stopped; longer than Limits.poll_seconds


def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; `ready` is called with the link once it can be opened."""
    server, listening = prepared(settings, ready)
    with contextlib.closing(listening), contextlib.suppress(KeyboardInterrupt):
        server.run([listening])


def prepared(settings: Settings, ready: Callable[[str], None]) -> tuple[Any, socket.socket]:
    """A uvicorn server for the explorer, not yet running, and the socket to run it on."""
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise ServerError(
            f"The explorer needs starlette and uvicorn, and '{error.name}' is not installed.",
            do="pip install 'normlens[serve]'",
        ) from error
    from normlens.explorer.app import Explorer

    listening = _listen(settings)
    settings = replace(settings, port=listening.getsockname()[1])
    try:
        explorer = Explorer(settings)
    except NormlensError:
        listening.close()
        raise

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if not self.should_exit:  # by a Ctrl-C that came before
                ready(link(settings))

    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    config = uvicorn.Config(
        explorer.app(),
        http="h11",
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=settings.limits.connections,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        timeout_graceful_shutdown=GRACE,
    )
    return Server(config), listening


def link(settings: Settings) -> str:
    """The link to open in a browser; the token is behind #, which browsers do not send."""
    host = settings.shown_host
    address = f"http://{f'[{host}]' if ':' in host else host}:{settings.port}/"
    return address if settings.token is None else f"{address}#token={settings.token}"


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        taken = getattr(error, "errno", None) == errno.EADDRINUSE
        raise ServerError(
            f"The explorer cannot listen on {settings.host}:{settings.port}.",
            got="the port is in use" if taken else error,
            do="choose another port with --port, or any free one with --port 0."
            if taken
            else "check --host and --port.",
        ) from error
