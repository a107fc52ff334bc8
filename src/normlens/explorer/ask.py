"""What a browser asks for, read with distrust: JSON in, an `Ask` or a refusal out.

Room: the words of a question. Knows neither models nor processes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from normlens.explorer.allowed import Allowed
from normlens.explorer.refusal import Refusal
from normlens.explorer.settings import Limits

ID = re.compile(r"[A-Za-z0-9_-]{22}")
FIELDS = ("model", "text", "pair", "target", "base")


@dataclass(frozen=True, slots=True)
class Ask:
    """One text to trace with one model."""

    model: str
    text: str  # the source, for a model with two sides
    pair: str | None = None  # a second text of the same side
    target: str | None = None  # of a sequence-to-sequence model; without it the model writes one
    base: str | None = None  # an earlier result, from which this one is subtracted

    @property
    def order(self) -> dict[str, Any]:
        """The texts, for the worker."""
        return {"text": self.text, "pair": self.pair, "target": self.target}


def read_ask(body: bytes, models: dict[str, Allowed], limits: Limits) -> Ask:
    """The question in a request's body, or why it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "The request is not JSON.", 'send {"model": ..., "text": ...} in UTF-8.') from error
    if not isinstance(found, dict):
        raise Refusal(400, "The request is JSON, but not an object.", 'send {"model": ..., "text": ...}.')
    wrong = [str(name)[:40] for name in found if name not in FIELDS]
    if wrong:
        raise Refusal(400, f"There is no field '{wrong[0]}'.", f"the fields are {', '.join(FIELDS)}.")
    given = {name: value for name, value in found.items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, str):
            raise Refusal(400, f"'{name}' is {_kind(value)}, not a text.", "send a JSON string.")
    model = models.get(given.get("model", ""))
    if model is None:
        raise Refusal(403, "This explorer does not run that model.", f"choose one of {', '.join(models)}.")
    ask = Ask(**{"text": ""} | given)
    _check_texts(ask, model, limits)
    if ask.base is not None and not ID.fullmatch(ask.base):
        raise Refusal(400, "'base' is not the id of a result.", "send the id that an earlier job was given.")
    return ask


def _check_texts(ask: Ask, model: Allowed, limits: Limits) -> None:
    for name, text in ask.order.items():
        if text is not None and len(text) > limits.characters:
            raise Refusal(
                422,
                f"'{name}' has {len(text):,} characters; {limits.characters:,} is the most.",
                "shorten it.",
            )
        if text is not None and any("\ud800" <= char <= "\udfff" for char in text):
            raise Refusal(400, f"'{name}' holds half a character (a lone surrogate).", "send whole characters.")
    if not ask.text.strip():
        raise Refusal(422, "There is no text.", "type or paste one.")
    if ask.target is not None and model.kind != "seq2seq":
        raise Refusal(422, f"'{model.name}' has one side, so it takes no target.", "give a second text as the pair.")
    if ask.pair is not None and model.kind == "seq2seq":
        raise Refusal(422, f"'{model.name}' takes a source and a target, not a pair.", "leave the pair out.")
    for name in ("pair", "target"):
        text = getattr(ask, name)
        if text is not None and not text.strip():
            raise Refusal(422, f"'{name}' is empty.", "leave it out, or type something.")


def _kind(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), "something else")
