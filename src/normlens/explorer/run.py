"""Starting and ending the explorer: a socket, uvicorn, and nothing left behind.

Room: the process. starlette and uvicorn are imported here, when they are needed, and missed with a name.
"""

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
from normlens.explorer.settings import Settings

GRACE = 2  # seconds for answers under way when the server is stopped


def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; `ready` is called with the link once the address can be opened."""
    server, listening = prepared(settings, ready)
    with contextlib.closing(listening), contextlib.suppress(KeyboardInterrupt):
        server.run([listening])


def prepared(settings: Settings, ready: Callable[[str], None]) -> tuple[Any, socket.socket]:
    """A uvicorn server for the explorer, not yet running, and the socket it is to run on."""
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise ServerError(
            f"The explorer needs starlette and uvicorn, and '{error.name}' is not installed.",
            do="pip install 'normlens[serve]'",
        ) from error
    from normlens.explorer.app import Explorer
    from normlens.explorer.connection import protocol

    listening = _listen(settings)
    settings = replace(settings, port=listening.getsockname()[1])
    try:
        explorer = Explorer(settings)
    except NormlensError:
        listening.close()
        raise

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            explorer.release()
            super().handle_exit(sig, frame)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if not self.should_exit:  # by a Ctrl-C that came before
                ready(link(settings))

    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    limits = settings.limits
    config = uvicorn.Config(
        explorer.app(),
        http=protocol(limits),
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.connections,
        h11_max_incomplete_event_size=limits.header_bytes,
        timeout_graceful_shutdown=GRACE,
    )
    return Server(config), listening


def link(settings: Settings) -> str:
    """What to open in a browser; the token stands behind #, which browsers keep to themselves."""
    host = settings.shown_host
    address = f"http://{f'[{host}]' if ':' in host else host}:{settings.port}/"
    return address if settings.token is None else f"{address}#token={settings.token}"


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        taken = getattr(error, "errno", None) == errno.EADDRINUSE
        do = "choose another port with --port, or any free one with --port 0." if taken else "check --host and --port."
        raise ServerError(
            f"The explorer cannot listen on {settings.host}:{settings.port}: "
            f"{('the port is in use' if taken else error)}.",
            do=f"{do}",
        ) from error
