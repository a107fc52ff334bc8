"""What a model chooses among, by name and by number: classes, or tokens of its vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from normlens.attribution.question import AttributionError
from normlens.errors import nearest
from normlens.models import Subject, text_tokenizer


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """The logits of one row, and what they stand for."""

    subject: Subject
    logits: Float[Tensor, " choice"]
    classes: bool  # True: classes, False: tokens

    @property
    def predicted(self) -> int:
        return int(self.logits.argmax())

    def wanted(self, target: Any) -> tuple[tuple[int, float], ...]:
        """A target as numbers with factors; None is what the model predicts."""
        if target is None:
            return ((self.predicted, 1.0),)
        if not isinstance(target, tuple):
            return ((self.number(target), 1.0),)
        if len(target) != 2:
            raise AttributionError(
                f"A contrast is a pair (this, that); this has {len(target)} parts.", do="give one target, or two."
            )
        this, that = (self.number(part) for part in target)
        if this == that:
            raise AttributionError(f"Both targets of the contrast are {self.name(this)!r}.", do="give two that differ.")
        return ((this, 1.0), (that, -1.0))

    def name(self, number: int) -> str:
        """How a class or a token is called."""
        if self.classes:
            return self._labels().get(number, str(number))
        tokenizer: Any = text_tokenizer(self.subject.tokenizer)
        if tokenizer is None:
            return str(number)
        return str(tokenizer.convert_ids_to_tokens([number])[0])

    def number(self, target: Any) -> int:
        """The number of a class or a token, given as a number or by its name."""
        if isinstance(target, bool) or not isinstance(target, int | str):
            raise AttributionError(
                f"A target of type {type(target).__name__} cannot be understood.",
                do="give a class or token by name or number, or a pair of them for a contrast.",
            )
        if isinstance(target, int):
            return self._checked(target)
        number = self._class(target) if self.classes else self._token(target)
        return self._checked(int(target)) if number is None and target.isdecimal() else self._known(number, target)

    def _checked(self, number: int) -> int:
        if not 0 <= number < len(self.logits):
            one, many = ("class", "classes") if self.classes else ("token", "tokens")
            raise AttributionError(f"no {one} {number}: the model has {many} 0 to {len(self.logits) - 1}.")
        return number

    def _known(self, number: int | None, target: str) -> int:
        if number is not None:
            return self._checked(number)
        names = list(self._labels().values())
        if self.classes:
            raise AttributionError(
                f"There is no class '{target}'.",
                got=f"the model's classes: {', '.join(names[:12])}{' ...' if len(names) > 12 else ''}.",
                do=f"{nearest(target, names)}Give a class by its name or its number.",
            )
        raise AttributionError(
            f"'{target}' is not one token of '{self.subject.name}'.",
            got=self._pieces(target),
            cause="a word that the tokenizer cuts into several tokens.",
            do="give its first token, or the whole word as an answer: --answer (answer= in Python).",
        )

    def _labels(self) -> Mapping[int, str]:
        labels = getattr(self.subject.config, "id2label", None) or {}
        return {int(number): str(name) for number, name in labels.items()}

    def _class(self, name: str) -> int | None:
        by_name = {label: number for number, label in self._labels().items()}
        if name in by_name:
            return by_name[name]
        alike = [number for label, number in by_name.items() if label.casefold() == name.casefold()]
        return alike[0] if len(alike) == 1 else None

    def _token(self, text: str) -> int | None:
        """The token that spells this text, with or without a space before it: the likeliest."""
        tokenizer: Any = text_tokenizer(self.subject.tokenizer)
        if tokenizer is None:
            return None
        known = tokenizer.get_vocab()
        spelled = [_ids(tokenizer, one) for one in (text, f" {text}", text.strip())]
        numbers = {known[text]} if text in known else set[int]()
        numbers |= {ids[0] for ids in spelled if len(ids) == 1 and ids[0] != tokenizer.unk_token_id}
        numbers = {number for number in numbers if number < len(self.logits)}
        return max(numbers, key=lambda number: float(self.logits[number]), default=None)

    def _pieces(self, text: str) -> str | None:
        tokenizer: Any = text_tokenizer(self.subject.tokenizer)
        if tokenizer is None:
            return "a model without a tokenizer, whose tokens are numbers."
        return f"its tokens: {' '.join(map(str, tokenizer.convert_ids_to_tokens(_ids(tokenizer, text))))}"


def _ids(tokenizer: Any, text: str) -> list[int]:
    """The tokens of a text that the model is to write."""
    return tokenizer(text_target=text, add_special_tokens=False)["input_ids"]
