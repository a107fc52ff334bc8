"""What a browser sends, read with distrust: bytes up to a limit, then a question or a refusal."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect, Request

from normlens.explorer.refusal import Refusal
from normlens.explorer.settings import Allowed, Limits

ID = re.compile(r"[A-Za-z0-9_-]{22}")
FIELDS = ("model", "text", "pair", "target", "base")
JSON_TYPES = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
EXAMPLE = 'send {"model": ..., "text": ...} in UTF-8.'


@dataclass(frozen=True, slots=True)
class Question:
    """One text to trace with one model."""

    model: str
    text: str  # the source, for a sequence-to-sequence model
    pair: str | None = None  # a second text in the same sequence
    target: str | None = None  # of a sequence-to-sequence model; None: the model writes it
    base: str | None = None  # the id of the result that this one is subtracted from

    @property
    def texts(self) -> dict[str, str | None]:
        return {"text": self.text, "pair": self.pair, "target": self.target}


async def parts(request: Request, content_type: str, most: int) -> AsyncIterator[bytes]:
    """The body of a request as it arrives, of this type and up to `most` bytes."""
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent != content_type:  # the two types in use are none that a form of another site can send
        raise Refusal(415, f"The content type must be {content_type}.", got=sent[:60] or "none", do="set Content-Type.")
    declared, size = request.headers.get("content-length", ""), 0
    limit = f"{most / 1e6:,.0f} MB" if most >= 1e6 else f"{most / 1e3:,.0f} kB"
    too_large = Refusal(
        413, f"The request is larger than {limit}.", do="send less; long work belongs on the command line."
    )
    if declared.isdigit() and int(declared) > most:
        raise too_large
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise too_large
            yield part
    except ClientDisconnect as error:
        raise Refusal(400, "The request broke off.", do="send it again.") from error


async def body(request: Request, most: int) -> Any:
    """The JSON in the body of a request."""
    sent = b"".join([part async for part in parts(request, "application/json", most)])
    try:
        return json.loads(sent)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "The request is not JSON.", do=EXAMPLE) from error


def question(sent: Any, models: dict[str, Allowed], limits: Limits) -> Question:
    """The question in the JSON of a request."""
    if not isinstance(sent, dict):
        raise Refusal(400, "The request is JSON, but not an object.", do=EXAMPLE)
    for name, value in sent.items():
        if name not in FIELDS:
            raise Refusal(400, f"There is no field '{str(name)[:40]}'.", do=f"the fields are {', '.join(FIELDS)}.")
        if not isinstance(value, str | None):
            raise Refusal(400, f"'{name}' is {JSON_TYPES[type(value)]}, not a text.", do="send a JSON string.")
    asked = Question(**{"model": "", "text": ""} | {name: value for name, value in sent.items() if value is not None})
    if asked.model not in models:
        raise Refusal(403, "This explorer does not run that model.", do=f"choose one of {', '.join(models)}.")
    if asked.base is not None and not ID.fullmatch(asked.base):
        raise Refusal(400, "'base' is not the id of a result.", do="send the id of an earlier run.")
    _check_texts(asked, models[asked.model], limits)
    return asked


def _check_texts(asked: Question, model: Allowed, limits: Limits) -> None:
    if not asked.text.strip():
        raise Refusal(422, "There is no text.", do="type or paste one.")
    if asked.target is not None and model.kind != "seq2seq":
        raise Refusal(422, f"'{model.name}' has one side, so it takes no target.", do="send the second text as pair.")
    if asked.pair is not None and model.kind == "seq2seq":
        raise Refusal(422, f"'{model.name}' takes a source and a target, not a pair.", do="leave the pair out.")
    for name, text in asked.texts.items():
        if text is None:
            continue
        if not text.strip():
            raise Refusal(422, f"'{name}' is empty.", do="leave it out, or type a text.")
        if len(text) > limits.characters:
            most = f"a text may have {limits.characters:,}"
            raise Refusal(422, f"'{name}' has {len(text):,} characters; {most}.", do="shorten it.")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise Refusal(400, f"'{name}' holds half a character (a lone surrogate).", do="send whole characters.")
