"""What the explorer says no to: a sentence, what to do, and the HTTP status of it.

Room: refusals as values. No HTTP library, no process.
"""

from __future__ import annotations

from typing import Any

from normlens.errors import NormlensError


class ServerError(NormlensError):
    """The explorer cannot start or go on as it was asked to."""


class Refusal(NormlensError):
    """One request that is not served. Whoever asked reads `sentence` and `do`; others do not notice."""

    def __init__(self, status: int, sentence: str, do: str, *, retry_after: int | None = None) -> None:
        super().__init__(f"{sentence}\n  Do: {do}")
        self.status, self.sentence, self.do, self.retry_after = status, sentence, do, retry_after

    def body(self) -> dict[str, Any]:
        """JSON for the browser."""
        return {"error": self.sentence, "do": self.do}


def gone() -> Refusal:
    """Said of a result that was thrown out, also while it was being read."""
    return Refusal(410, "This result is no longer kept.", "run it again.")


def from_error(error: NormlensError, status: int = 422) -> Refusal:
    """What another room said no to: its sentences, and the advice after 'Do:' apart."""
    said, _, do = str(error).partition("\n  Do: ")
    lines = [line.strip() for line in said.splitlines() if not line.strip().startswith(("Usual cause", "Got:"))]
    advice = " ".join(do.split()) or "change the input, then run it again."
    if "--truncate" in advice:  # an option of the command line
        advice = "shorten the text, or split it."
    return Refusal(status, " ".join(lines)[:2000], advice[:2000])
