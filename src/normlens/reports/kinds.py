"""What each kind of attention is, in words.

Room: words about queries and keys. No numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

TITLES = {
    "self": "Self-attention",
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
}
ORDER = tuple(TITLES)

_SIDES = {
    "self": "Queries (the tokens that look) and keys (the tokens looked at) are the tokens of the same text.",
    "encoder": "Queries (the tokens that look) and keys (the tokens looked at) are the tokens of the source.",
    "decoder": "Queries (the tokens that look) and keys (the tokens looked at) are the tokens of the target.",
    "cross": "Queries (the tokens that look) are those of the target, keys (the tokens looked at) those of the source.",
}
_CAUSAL = (
    "This attention is causal: a query sees only itself and what stands before it. Each query spreads its weight over "
    "the keys it can see and every query counts equally, so tokens near the beginning have more queries to draw from."
)
_CAUSAL_FREQUENCY = (
    "This attention is causal: a query sees only itself and what stands before it. Only the queries that can see a "
    "token count for the weight it draws."
)


def title(kind: str) -> str:
    """The kind as a heading."""
    return TITLES.get(kind, kind)


def explained(kind: str, *, causal: bool, study: str) -> str:
    """Who looks at whom, and what follows for the means when queries do not see everything."""
    sides = _SIDES.get(kind, "Queries are the tokens that look, keys the tokens looked at.")
    if not causal or study == "dispersion":  # ‖f(x)‖ belongs to a key alone
        return sides
    return f"{sides} {_CAUSAL_FREQUENCY if study == 'frequency' else _CAUSAL}"


def ordered(kinds: Mapping[str, object]) -> list[str]:
    """The kinds there are: known ones in reading order, then any others."""
    return [kind for kind in ORDER if kind in kinds] + [kind for kind in kinds if kind not in ORDER]
