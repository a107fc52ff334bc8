"""What highlighted text is made of: tokens, and for each prediction a signed score of every token before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from normlens.views.glyphs import visible
from normlens.views.text import visible_line

NAMED, LONG = 4, 72  # tokens that a sentence names on each side; letters of an answer in a heading


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is read, and where it stands."""

    name: str  # as in the vocabulary: "##ing", "▁the"
    text: str  # without the marks of the vocabulary
    word: int | None  # None for special tokens
    special: bool
    spaced: bool  # whether a space stands before it
    sentence: int | None = None  # None for special tokens

    @property
    def shown(self) -> str:
        """With nothing hidden."""
        return visible(self.text)


@dataclass(frozen=True, slots=True, eq=False)
class Highlight:
    """One prediction, and the scores of the tokens before it."""

    target: str  # what is explained
    prediction: str  # what the model predicts
    logit: float
    scores: Float[np.ndarray, " source"]
    unowned: float  # what belongs to no token
    error: float | None  # by how much the sum is missed, relative; None where the scores add up to nothing
    count: int = 1  # of predictions, whose scores and logits are added here

    @property
    def heading(self) -> str:
        """What is explained."""
        if self.count > 1:
            shown = visible_line(self.target)
            shown = shown if len(shown) <= LONG else f"{shown[: LONG - 1]}…"
            return f"{shown}: the logits of {self.count} tokens, which add up to {self.logit:.4g}."
        if self.target == self.prediction:
            return f"{visible_line(self.target)}, logit {self.logit:.4g}: what the model predicts."
        what = "difference of logits" if " rather than " in self.target else "logit"
        predicted = visible_line(self.prediction)
        return f"{visible_line(self.target)}, {what} {self.logit:.4g}; the model predicts {predicted}."

    @property
    def sums(self) -> str:
        """What the scores add up to."""
        if self.error is None:
            return "The scores of this method do not add up to the logit."
        return (
            f"The scores add up to {self.scores.sum():+.4g}; {self.unowned:+.4g} belongs to no token; together they "
            f"are the logit{'s' * (self.count > 1)} (relative error {self.error:.0e})."
        )


@dataclass(frozen=True, slots=True, eq=False)
class Highlights:
    """A text, and one prediction or the predictions of an answer."""

    tokens: tuple[Token, ...]  # of an answer the last is what the last step is about
    given: int  # how many tokens are not of the answer
    steps: tuple[Highlight, ...]  # one, or one for each token of the answer
    title: str  # of the method
    says: str  # what a score is
    signed: bool  # whether a score may be below 0
    signature: str
    source: int = 0  # how many tokens are of the source, where the decoder's follow; 0: there is one side

    @property
    def asked(self) -> dict[int, int]:
        """The step that explains a token, by the place of the token; empty when there is no answer."""
        return {len(step.scores): number for number, step in enumerate(self.steps)} if len(self.steps) > 1 else {}

    @property
    def continuation(self) -> str:
        """What follows the text that was given."""
        return "translation" if self.source else "answer"

    @property
    def total(self) -> Highlight:
        """The only prediction, or the sum over those of an answer."""
        if len(self.steps) == 1:
            return self.steps[0]
        scores = np.zeros(len(self.steps[-1].scores))
        for step in self.steps:
            scores[: len(step.scores)] += step.scores
        errors = [step.error for step in self.steps if step.error is not None]
        return Highlight(
            self._answer([step.target for step in self.steps]),
            self._answer([step.prediction for step in self.steps]),
            sum(step.logit for step in self.steps),
            scores,
            sum(step.unowned for step in self.steps),
            max(errors, default=None),
            len(self.steps),
        )

    def _answer(self, pieces: list[str]) -> str:
        """The tokens of an answer, with spaces where words begin."""
        spaced = [self.tokens[place].spaced for place in self.asked]
        return "".join(" " * space + piece for piece, space in zip(pieces, spaced, strict=True)).strip()

    def told(self, one: Highlight) -> list[str]:
        """A prediction in sentences: which tokens speak for it, which against it, what they add up to."""
        return [one.heading, *self._named(one), one.sums]

    def _named(self, one: Highlight) -> list[str]:
        order = np.argsort(-np.abs(one.scores), kind="stable")
        sides = {"For it": order[one.scores[order] > 0], "Against it": order[one.scores[order] < 0]}
        if not self.signed:
            sides = {"Most": sides["For it"]}
        return [
            f"{side}: {', '.join(f'{self.tokens[place].shown} {one.scores[place]:+.3g}' for place in places[:NAMED])}"
            f"{' ...' if len(places) > NAMED else '.'}"
            for side, places in sides.items()
            if len(places)
        ]
