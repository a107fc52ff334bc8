"""An attribution as highlighted text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normlens.attribution.asking import RATHER
from normlens.attribution.passages import sentences
from normlens.models import spell, word_ids
from normlens.views import Highlight, Highlights, Token

if TYPE_CHECKING:
    from normlens.attribution.result import Attribution, Explained


def highlights(attribution: Attribution) -> list[Highlights]:
    """Every text of an attribution."""
    return [_text(attribution, text) for text in attribution.explained]


def _text(attribution: Attribution, steps: tuple[Explained, ...]) -> Highlights:
    last = steps[-1]
    asked = ((last.target,), (False,)) if len(steps) > 1 else ((), ())
    return Highlights(
        tokens=_tokens(last, *asked),
        given=last.given,
        steps=tuple(
            Highlight(
                _read(one.target), _read(one.prediction), one.logit, one.scores.double().numpy(), one.unowned, one.error
            )
            for one in steps
        ),
        title=attribution.title,
        says=attribution.says,
        signed=attribution.signed,
        signature=str(attribution.signature),
        source=len(last.sides[0].tokens) if len(last.sides) > 1 else 0,
    )


def _read(name: str) -> str:
    """A class or a token without the marks of the vocabulary, or one rather than another."""
    return RATHER.join(spell((part,)) for part in name.split(RATHER))


def _tokens(one: Explained, more: tuple[str, ...], special: tuple[bool, ...]) -> tuple[Token, ...]:
    """The tokens of a prediction, and those that follow; words are numbered through."""
    tokens: list[Token] = []
    lines = sentences(one.tokens + more, one.special + special)
    for number, side in enumerate(one.sides):
        is_last = number == len(one.sides) - 1
        names, flags = (side.tokens + more, side.special + special) if is_last else (side.tokens, side.special)
        first = 1 + max((token.word for token in tokens if token.word is not None), default=-1)
        before: int | None = None
        for name, flag, word in zip(names, flags, word_ids(names, flags), strict=True):
            spaced = bool(tokens) and (word is None or word != before)
            tokens.append(
                Token(name, spell((name,)), None if word is None else first + word, flag, spaced, lines[len(tokens)])
            )
            before = word
    return tuple(tokens)
