"""What each kind of attention is, in words."""

from __future__ import annotations

TITLES = {
    "self": "Self-attention",
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
}
_SIDES = {
    "self": "Queries and keys are the tokens of the same text.",
    "encoder": "Queries and keys are the tokens of the source.",
    "decoder": "Queries and keys are the tokens of the target.",
    "cross": "Queries are the tokens of the target, keys those of the source.",
}


def title(kind: str) -> str:
    """The kind as a heading."""
    return TITLES.get(kind, kind)


def explained(kind: str, causal: str) -> str:
    """Which tokens are queries and which are keys, and what follows where queries do not see everything."""
    return " ".join(text for text in (_SIDES.get(kind, ""), causal) if text)
