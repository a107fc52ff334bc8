"""What the explorer is started with: where it listens, which models it may run, and how much of everything.

Room: plain numbers and names. Nothing here listens or runs.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from pathlib import Path

from normlens.explorer.allowed import Allowed
from normlens.explorer.refusal import ServerError

LOCAL = ("127.0.0.1", "localhost", "::1")
ANY = ("0.0.0.0", "::")  # every address of this computer
SHORTEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request, one client, one worker and all results together may take."""

    tokens: int = 512  # of one side of one text
    characters: int = 20_000  # of one field
    memory: int = 4_000_000_000  # bytes of one worker, its model included
    queue: int = 64  # jobs that wait, of all clients
    queue_per_client: int = 4
    queue_per_address: int = 56  # of all clients behind it
    body: int = 256_000  # bytes of a question
    body_seconds: float = 10.0
    upload: int = 256_000_000  # bytes of a saved trace
    upload_seconds: float = 120.0
    uploads: int = 4  # at the same time
    load_seconds: float = 600.0  # for a model to load
    run_seconds: float = 120.0  # for one job
    grace_seconds: float = 3.0  # from cancelling a job to ending its worker
    gone_seconds: float = 30.0  # without a question about a job until it counts as abandoned
    poll_seconds: float = 15.0  # how long a question about a job may wait for news
    results: int = 512
    result_bytes: int = 2_000_000_000  # of all results together, and again of all uploads that wait
    result_seconds: float = 3600.0
    connections: int = 512
    header_seconds: float = 10.0  # for the head of a request to arrive, or the rest of one that is answered already
    reading_seconds: float = 30.0  # for a client to take what was sent, or 64 kB of it
    header_bytes: int = 16_384


@dataclass(frozen=True, slots=True)
class Settings:
    """One explorer."""

    models: tuple[Allowed, ...]
    host: str = "127.0.0.1"
    port: int = 8377  # 0: any free one
    token: str | None = None  # None: whoever reaches the address may ask
    names: tuple[str, ...] = ()  # further host names under which browsers may address it
    report: Path | None = None  # a report.html to show beside the views
    preload: bool = False
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.token is None and self.host not in LOCAL:
            raise ServerError(
                f"--host {self.host} lets other computers in, and there is no token.",
                do="add --token auto, which makes one and prints the link that holds it.",
            )
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise ServerError(
                f"A token of {len(self.token)} characters can be guessed; {SHORTEST_TOKEN} is the least.",
                do="--token auto makes one.",
            )
        if not self.models:
            raise ServerError(
                "There is no model to run.",
                do="name one with --model.",
            )

    @property
    def hosts(self) -> frozenset[str]:
        """What a Host header may name, without its port."""
        return frozenset(name.lower() for name in (*LOCAL, self.host, self.shown_host, *self.names))

    @property
    def shown_host(self) -> str:
        """The host in the link: for every address of this computer, its name."""
        return socket.gethostname() if self.host in ANY else self.host
