"""What is asked of a model about one prediction, and what a method answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from normlens.errors import NormlensError
from normlens.models import Encoded, Subject
from normlens.signature import Signature


class AttributionError(NormlensError, ValueError):
    """A prediction that cannot be attributed this way."""


@runtime_checkable
class Watcher(Protocol):
    """What a method needs of a lens: the model, and its traces."""

    @property
    def subject(self) -> Subject: ...
    @property
    def signature(self) -> Signature: ...
    def trace(
        self, data: Any = None, *, source: Any = None, target: Any = None, fields: Sequence[str] = ...
    ) -> Any: ...


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One prediction for one sequence: the logit, or the difference of logits, that scores are to explain."""

    watcher: Watcher
    encoded: Encoded  # one sequence, without padding
    row: int | None  # position whose logits are read; None: the model has one row of logits for the sequence
    wanted: tuple[tuple[int, float], ...]  # (class or token, factor): ((7, 1.0),), or ((7, 1.0), (9, -1.0))

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What the model's forward is given."""
        return self.encoded.inputs

    @property
    def sources(self) -> int:
        """How many tokens have a score: those of the text, or of the source and then what is written so far."""
        return len(self.encoded.sides[0].tokens) + (self.written or 0)

    @property
    def written(self) -> int | None:
        """How many tokens the decoder was fed; None for models with one side."""
        fed = self.inputs.get("decoder_input_ids")
        return None if fed is None else fed.shape[1]

    @property
    def causal(self) -> bool:
        """Whether what is read comes from that position and those before it alone: a model that writes."""
        return self.row is not None and (self.written is not None or bool(getattr(self._model, "can_generate", bool)()))

    @property
    def _model(self) -> Any:
        return self.watcher.subject.model

    def logit(self, logits: Float[Tensor, "batch ..."]) -> Float[Tensor, " batch"]:
        """What is explained, from the logits of the model."""
        row = logits if self.row is None else logits[:, self.row]
        return sum((row[:, number] * factor for number, factor in self.wanted), row.new_zeros(len(row)))


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """A score for each source token of a question."""

    values: Float[Tensor, " source"]
    unowned: float = 0.0  # what belongs to no token; of use where the method adds up
    adds_up_to: float | None = None  # what values and `unowned` add up to by the method; None: they add up to nothing


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A way to score tokens, declared once: the library, the command, the docs and the comparison read it from here."""

    name: str  # "decompx"
    title: str  # "DecompX"
    says: str  # one sentence: what its score is
    paper: str
    compute: Callable[[Question], Scores]
    adds_up: bool = False  # whether scores and what belongs to no token add up to the logit
    signed: bool = True  # whether a score may speak against the prediction
