"""One connection: a client that sends half a request, or does not read its answer, is not waited for.

Room: uvicorn's protocol, with a clock for what is to arrive and one for what is to be taken. Bodies that are read have
their own clock.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from normlens.explorer.settings import Limits

LEAST = 1 << 16  # bytes that a slow reader takes in `reading_seconds`


def protocol(limits: Limits) -> type[H11Protocol]:
    """The protocol with these limits."""

    class Connection(H11Protocol):
        arriving: asyncio.TimerHandle | None = None
        leaving: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            transport.set_write_buffer_limits(high=0)  # so that whatever is not taken has the clock
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._watch()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._expect_reading()

        def resume_writing(self) -> None:
            self.leaving = _stopped(self.leaving)
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self.arriving, self.leaving = _stopped(self.arriving), _stopped(self.leaving)
            super().connection_lost(exc)

        def _watch(self) -> None:
            """A head has to arrive in time, and so has the rest of a body that nobody reads: the answer is sent."""
            if self.conn.their_state is not h11.IDLE and self.conn.our_state is not h11.DONE:
                self.arriving = _stopped(self.arriving)
            elif self.arriving is None and not self.transport.is_closing():
                self.arriving = self.loop.call_later(limits.header_seconds, self.transport.close)

        def _expect_reading(self) -> None:
            left = self.transport.get_write_buffer_size()

            def look() -> None:
                if self.transport.get_write_buffer_size() > left - LEAST:
                    self.transport.abort()
                else:
                    self._expect_reading()

            self.leaving = self.loop.call_later(limits.reading_seconds, look)

    return Connection


def _stopped(clock: asyncio.TimerHandle | None) -> None:
    if clock is not None:
        clock.cancel()
