"""The one root error, as data: what, what was got, the usual cause, what to do next.

Room: nothing but the root, so that `except NormlensError` catches whatever normlens refuses. Each kind of mistake is a
subclass that lives where it is raised.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class NormlensError(Exception):
    """Something normlens refuses. Its parts are fields; `str` lays them out, one to a line."""

    def __init__(self, what: str, *, got: object = None, cause: str | None = None, do: str | None = None) -> None:
        super().__init__(what)
        self.what, self.got, self.cause, self.do = what, got, cause, do

    @property
    def parts(self) -> dict[str, str]:
        """The named parts that are there, in reading order, without `what`."""
        named = {"Got": self.got, "Usual cause": self.cause, "Do": self.do}
        return {name: str(part) for name, part in named.items() if part is not None}

    def __str__(self) -> str:
        return "\n".join([self.what, *(f"  {name}: {part}" for name, part in self.parts.items())])


def first_line(error: BaseException) -> str:
    """What an error of another library says, in one line; its kind when it says nothing."""
    text = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    return text.splitlines()[0].strip()


def nearest(word: str, known: Iterable[str]) -> str:
    """A question for a misspelt word, to stand in `do`; empty where nothing known is near.

    >>> nearest("treshold", ["threshold", "positions"]), nearest("x", ["threshold"])
    ("did you mean 'threshold'? ", '')
    """
    near = get_close_matches(word, list(known), n=1)
    return f"did you mean '{near[0]}'? " if near else ""
