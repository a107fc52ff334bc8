"""A request that is not served, as data: a status beside the parts of every error."""

from __future__ import annotations

import errno
import re
from typing import Any

from normlens.errors import NormlensError

LONGEST = 2000  # letters of one part in an answer
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class ServerError(NormlensError):
    """The explorer cannot start as it was asked to."""


class Refusal(NormlensError):
    """One request or run that is not served; all others are."""

    def __init__(
        self, status: int, what: str, *, do: str, got: object = None, cause: str | None = None, wait: int | None = None
    ) -> None:
        super().__init__(what, got=got, cause=cause, do=do)
        self.status, self.wait = status, wait  # seconds to wait before the next try

    @staticmethod
    def of(error: NormlensError, do: str = "change the input, then run it again.") -> Refusal:
        """The refusal of another room, with its own parts."""
        return Refusal(422, error.what, got=error.got, cause=error.cause, do=error.do or do)

    def body(self) -> dict[str, Any]:
        """The parts that are there, for JSON."""
        parts = {"what": self.what, "got": self.got, "cause": self.cause, "do": self.do}
        return {name: str(part)[:LONGEST] for name, part in parts.items() if part is not None}


def gone() -> Refusal:
    """The refusal for a result that was deleted, also while it was read."""
    return Refusal(410, "This result is no longer kept.", do="run it again.")


def disk_full(error: BaseException | None) -> Refusal | None:
    """A refusal without paths if this error, or its cause, says that the disk is full."""
    if error is None:
        return None
    in_text = re.search(r"\(os error (\d+)\)", str(error))  # safetensors has the number in its text alone
    number = error.errno if isinstance(error, OSError) else in_text and int(in_text[1])
    if number in FULL:
        return Refusal(507, "The disk of the explorer is full.", do="free some of it, or try again later.")
    return disk_full(error.__cause__)
