"""Categories as parts of a sentence, and when ρ may be called a relation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from normlens.views import visible_line

CLEAR = 0.1  # a smaller |ρ| is called no clear relation, and so is what chance alone would give: 2/√n


@dataclass(frozen=True, slots=True)
class Subject:
    """A category as the subject of a sentence."""

    name: str  # [CLS], or “other” tokens
    plural: bool

    def verb(self, stem: str) -> str:
        """receive: "receives" for [CLS], "receive" for “other” tokens."""
        return stem if self.plural else stem + "s"


def subject(name: str) -> Subject:
    """Special tokens stand for themselves; every other category is a kind of tokens."""
    special = name.startswith(("[", "<"))
    return Subject(noun(name) if special else f"{noun(name)} tokens", not special)


def noun(name: str) -> str:
    """A category inside a sentence.

    >>> noun("[CLS]"), noun("other")
    ('[CLS]', '“other”')
    """
    shown = visible_line(name)
    return shown if name.startswith(("[", "<")) else f"“{shown}”"


def sign(rho: float, points: int) -> int | None:
    """-1, 0 (no clear relation) or 1; None when ρ is not defined."""
    if not math.isfinite(rho):
        return None
    if abs(rho) < max(CLEAR, 2 / math.sqrt(max(points, 1))):
        return 0
    return 1 if rho > 0 else -1
