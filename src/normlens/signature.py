"""What makes a number reproducible: one line that travels with every result.

Room: plain text. Knows no model and no measure.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """Named facts about how a result came about, in the order in which they are read."""

    facts: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return " | ".join(f"{name}:{value}" for name, value in self.facts)

    def adding(self, **facts: str) -> Signature:
        """The same signature with further facts at its end."""
        return Signature(self.facts + tuple(facts.items()))
