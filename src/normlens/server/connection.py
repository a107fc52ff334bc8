"""One connection: a client that sends half a request and then nothing is not waited for.

Room: uvicorn's protocol, with a clock for the head of a request. Bodies have their own clock.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from normlens.server.settings import Limits


def protocol(limits: Limits) -> type[H11Protocol]:
    """The protocol with these limits."""

    class Connection(H11Protocol):
        clock: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _watch(self) -> None:
            if self.conn.their_state is not h11.IDLE:
                self._stop()
            elif self.clock is None:
                self.clock = self.loop.call_later(limits.header_seconds, self.transport.close)

        def _stop(self) -> None:
            if self.clock is not None:
                self.clock.cancel()
                self.clock = None

    return Connection
