"""What drove a prediction: a score for each token, and what the scores add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from normlens.attribution.passages import Passage, passages
from normlens.attribution.pictured import highlights
from normlens.attribution.question import AttributionError
from normlens.files import import_pandas, write_table
from normlens.models import Side
from normlens.signature import Signature
from normlens.views import highlights_fragment, highlights_text, save_highlights

TABLES = (".csv", ".parquet")


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """One prediction for one text."""

    sides: tuple[Side, ...]  # the text; or the source, and what the decoder was fed
    given: int  # how many of the tokens are not of the answer so far
    scores: Float[Tensor, " source"]
    prediction: str  # what the model predicts: a class or a token
    target: str  # what is explained: the prediction, another, or one rather than another
    logit: float  # of the target; of a contrast the difference
    logits: Float[Tensor, " choice"]  # of every class or token
    unowned: float  # what belongs to no token
    adds_up_to: float | None  # what scores and `unowned` add up to by the method

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(token for side in self.sides for token in side.tokens)

    @property
    def special(self) -> tuple[bool, ...]:
        return tuple(special for side in self.sides for special in side.special)

    @property
    def error(self) -> float | None:
        """By how much the sum is missed, relative to the logit or the scores; None where nothing adds up."""
        if self.adds_up_to is None:
            return None
        gap = abs(float(self.scores.double().sum()) + self.unowned - self.adds_up_to)
        size = max(abs(self.adds_up_to), float(self.scores.abs().sum()))
        return gap / size if size else gap


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attribution:
    """Scores of the tokens of one text or several, for one prediction each or for each token of an answer.

    A batch of one text is the usual case; `attribution[i]` is text i alone. Fields of an answer are sums over its
    tokens, which `steps` has one by one.
    """

    explained: tuple[tuple[Explained, ...], ...]  # for each text, one prediction or those of an answer
    method: str
    title: str  # of the method
    says: str  # what a score of this method is
    adds_up: bool  # whether scores and what belongs to no token add up to the logit
    signed: bool  # whether a score may speak against the target
    signature: Signature

    @property
    def scores(self) -> Float[Tensor, "batch src"]:
        """A score for each token; 0 behind the end of a shorter text."""
        rows = [summed(text).float() for text in self.explained]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)

    @property
    def tokens(self) -> list[tuple[str, ...]]:
        """Per text: its tokens; then the tokens a decoder was fed, or the answer so far."""
        return [text[-1].tokens for text in self.explained]

    @property
    def prediction(self) -> tuple[str, ...]:
        """Per text: what the model predicts, a class or a token; of an answer its tokens."""
        return tuple(" ".join(one.prediction for one in text) for text in self.explained)

    @property
    def target(self) -> tuple[str, ...]:
        """Per text: what is explained."""
        return tuple(" ".join(one.target for one in text) for text in self.explained)

    @property
    def logit(self) -> Float[Tensor, " batch"]:
        """The logit of the target; of a contrast the difference of two."""
        return torch.tensor([sum(one.logit for one in text) for text in self.explained])

    @property
    def logits(self) -> Float[Tensor, "batch choice"]:
        """The logits of every class or token; of an answer, of its last token."""
        return torch.stack([text[-1].logits for text in self.explained])

    @property
    def unowned(self) -> Float[Tensor, " batch"]:
        """What belongs to no token: with the scores it adds up to the logit, where the method adds up."""
        return torch.tensor([sum(one.unowned for one in text) for text in self.explained])

    @property
    def error(self) -> float | None:
        """The largest error of any sum, relative; None where the method adds up to nothing."""
        errors = [one.error for text in self.explained for one in text if one.error is not None]
        return max(errors, default=None)

    @property
    def steps(self) -> tuple[Attribution, ...]:
        """Each prediction of the text: of an answer one for each of its tokens."""
        return tuple(replace(self, explained=((one,),)) for one in self._only)

    @property
    def _only(self) -> tuple[Explained, ...]:
        if len(self.explained) != 1:
            raise AttributionError(f"There are {len(self)} texts.", do="choose one: attribution[0].")
        return self.explained[0]

    def __len__(self) -> int:
        return len(self.explained)

    def __getitem__(self, index: int) -> Attribution:
        """Text `index` alone."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"no text {index}: there are texts 0 to {len(self) - 1}")
        return replace(self, explained=(self.explained[index],))

    def passages(self, texts: Sequence[str] | None = None) -> tuple[Passage, ...]:
        """Scores added up over the sentences of the text, or over passages of it, given as they stand in it.

        What is left follows: the answer so far, and the tokens of no passage.
        """
        return passages(self._only[-1], summed(self._only).tolist(), texts)

    def show(self, *, color: bool = False, width: int = 100) -> str:
        """The text with its scores, for a terminal: coloured words, the strongest tokens, and what they add up to."""
        return "\n".join(highlights_text(text, color=color, width=width) for text in highlights(self))

    def save(self, path: str | Path) -> Path:
        """Write a page (.html), a drawing (.svg, .pdf, .png) or a table (.csv, .parquet), as the suffix says."""
        path = Path(path)
        if path.suffix not in TABLES:
            return save_highlights(highlights(self), path)
        write_table(self.to_dataframe(), path)
        return path

    def _repr_html_(self) -> str:
        return highlights_fragment(highlights(self))

    def to_dataframe(self) -> Any:
        """A row for each token of each prediction."""
        return import_pandas().DataFrame(rows(self))

    def __repr__(self) -> str:
        lines = [f"Attribution by {self.title}: {self.says}", f"  {self.signature}"]
        for text in self.explained[:4]:
            for one in text[:8]:
                best = one.scores.abs().argsort(descending=True)[:5].tolist()
                named = ", ".join(f"{one.tokens[place]} {float(one.scores[place]):+.3g}" for place in best)
                lines.append(f"  {one.target} (logit {one.logit:.4g}): {named}{' ...' * (len(one.tokens) > 5)}")
        return "\n".join(lines)


def rows(attribution: Attribution) -> list[dict[str, Any]]:
    """A row for each token of each prediction."""
    return [
        {
            "text": number,
            "step": step,
            "target": one.target,
            "logit": one.logit,
            "position": place,
            "token": token,
            "side": "answer" if place >= one.given else one.sides[0].name,
            "special": special,
            "score": score,
        }
        for number, text in enumerate(attribution.explained)
        for step, one in enumerate(text)
        for place, (token, special, score) in enumerate(zip(one.tokens, one.special, one.scores.tolist(), strict=True))
    ]


def summed(text: tuple[Explained, ...]) -> Float[Tensor, " source"]:
    """Scores added over the tokens of an answer; earlier tokens saw fewer of them."""
    total = torch.zeros_like(text[-1].scores, dtype=torch.float64)
    for one in text:
        total[: len(one.scores)] += one.scores
    return total
