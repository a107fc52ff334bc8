"""The door: load a model, prove it, trace it. The model stays the user's and is never changed."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from torch import nn

from normlens import models
from normlens.attribution import Attribution, attribute
from normlens.capture import Examination, Untapped, examine, generate
from normlens.lens.axes import Namer, finished, together
from normlens.lens.block import Block
from normlens.lens.one_pass import Pass, Unproved
from normlens.lens.one_pass import ReconstructionError as ReconstructionError
from normlens.lens.probe import find_probe
from normlens.lens.trace import Trace
from normlens.lens.wiring import Kind, Wire, wire
from normlens.measures import DEFAULT, MeasureError, check_names
from normlens.models import Encoded, InputError, Subject
from normlens.signature import Signature
from normlens.version import __version__

Reduced = TypeVar("Reduced")


class PartlyExact(UserWarning):
    """Some attention blocks of a model are refused; the others are exact."""


def load(
    source: str | Path | nn.Module | None = None,
    tokenizer: Any | None = None,
    *,
    revision: str | None = None,
    dtype: torch.dtype | str | None = None,
    device: torch.device | str | None = None,
    weights: Literal["safetensors", "any"] = "safetensors",
    trust_remote_code: bool = False,
    probe: Mapping[str, Any] | None = None,
) -> Lens:
    """Bring a model in and prove it.

    `source` is a hub id, a folder, a transformers model object, or nothing for the bundled MiniLM. The proof runs on a
    small made-up input; give `probe`, a dict of model inputs, for a model whose inputs cannot be guessed.
    """
    one = models.subject(
        source,
        tokenizer,
        revision=revision,
        dtype=dtype,
        device=device,
        weights=weights,
        trust_remote_code=trust_remote_code,
    )
    lens = Lens(one)
    found = find_probe(one) if probe is None else None
    if probe is not None:
        lens.prove(dict(probe))
    elif found is not None:
        lens.prove(found.inputs, found.untapped)
    return lens


class Lens:
    """A model that proved itself, ready to be traced."""

    subject: Subject  # the model, its tokenizer, and what is known of both
    wires: tuple[Wire, ...] = ()
    examination: Examination | None = None  # None: no probe could be made, so the first trace is the proof

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def prove(self, inputs: Mapping[str, Any], untapped: Untapped | None = None) -> None:
        """Check on these inputs that parts rebuild the whole and that watching changes nothing; refuse what fails.

        What earlier inputs proved stays proved, unless these say otherwise.
        """
        examination = examine(self.subject.model, inputs, untapped=untapped)
        wires = wire(self.subject, examination, inputs)
        refused = [w for w in wires if not w.exact]
        if examination.reason is not None or len(refused) == len(wires):
            raise self._refusal(examination, refused)
        if refused:
            names = ", ".join(f"{w.kind} L{w.layer}" for w in refused[:6]) + (" ..." if len(refused) > 6 else "")
            warnings.warn(
                f"{len(wires) - len(refused)} of {len(wires)} attention blocks of '{self.subject.name}' are exact; "
                f"left out: {names}. First reason: {refused[0].reason}. See all: normlens doctor.",
                PartlyExact,
                stacklevel=3,
            )
        if self.examination is not None:
            examination = self.examination.extended(examination)
        known = {(w.kind, w.layer): w for w in (*self.wires, *wires)}
        self.wires, self.examination = tuple(known.values()), examination

    def trace(
        self,
        data: Any = None,
        *,
        source: Any = None,
        target: Any = None,
        layers: int | Sequence[int] | None = None,
        heads: int | Sequence[int] | None = None,
        fields: Sequence[str] = DEFAULT,
        truncate: bool = False,
    ) -> Trace:
        """Trace a text, a list of texts, a pair (a, b), token ids, an image, or a dict of model inputs.

        Sequence-to-sequence models take `source=` and `target=`; without a target the model writes one first.
        """
        encoded = self._encode(data, source, target, truncate)
        if self._padding_matters(encoded):
            apart = models.separately(self.subject, encoded)
            return together([self._traced(one, layers, heads, fields) for one in apart])
        return self._traced(encoded, layers, heads, fields)

    def each_block(
        self,
        reduce: Callable[[Block], Reduced],
        data: Any = None,
        *,
        source: Any = None,
        target: Any = None,
        layers: int | Sequence[int] | None = None,
        heads: int | Sequence[int] | None = None,
        fields: Sequence[str] = DEFAULT,
        truncate: bool = False,
    ) -> list[Reduced]:
        """`reduce(block)` for every block as soon as it exists; only what `reduce` returns is kept.

        Long inputs cost the memory of one layer this way, not of all. An input that reaches parts of the model no proof
        has seen is run again once they are proved.
        """
        results: list[Reduced] = []
        encoded = self._encode(data, source, target, truncate)
        self._check_padding(encoded)
        self._watch(encoded, lambda block: results.append(reduce(block)), layers, heads, fields, again=results.clear)
        return results

    def observe(
        self,
        encoded: Encoded,
        on_block: Callable[[Block], None],
        *,
        kinds: Collection[Kind] | None = None,
        layers: int | Sequence[int] | None = None,
        fields: Sequence[str] = DEFAULT,
        hidden_states: bool = False,
    ) -> Any:
        """One pass over inputs that are encoded already; returns what the model itself returned.

        For long runs: what `on_block` does not keep is gone. With `hidden_states` the model is asked to return them.
        """
        self._check_padding(encoded)
        if hidden_states:
            encoded = replace(encoded, inputs=encoded.inputs | {"output_hidden_states": True})
        return self._watch(encoded, on_block, layers, None, fields, kinds)[0]

    def trace_generation(self, prompt: Any, *, max_new_tokens: int = 20, **options: Any) -> Trace:
        """Let the model write on, then trace prompt and continuation as one ordinary pass.

        `layers`, `heads` and `fields` are for the trace; any other option is for the model's own `generate`.
        """
        chosen = {key: options.pop(key) for key in ("layers", "heads", "fields") if key in options}
        written = generate(self.subject, prompt, max_new_tokens=max_new_tokens, **options)
        if self.subject.is_seq2seq:
            return self.trace(source=prompt, target=written, **chosen)
        return self.trace(written, **chosen)

    def attribute(
        self,
        text: Any = None,
        target: Any = None,
        *,
        by: str | None = None,
        source: Any = None,
        answer: Any = None,
        position: int | None = None,
    ) -> Attribution:
        """What drove a prediction: a score for each token of a text, or of several.

        `target` is a class or a token, by name or number; a pair (this, that) asks why this rather than that; by
        default it is what the model predicts. `by` names the method. `answer` is a text that a language model or
        translation model writes, or how many tokens of its own; each of its tokens is explained. With a target too,
        the answer is what is written so far. `position` chooses a prediction of a model that makes one everywhere.
        """
        return attribute(self, text, target, by=by, source=source, answer=answer, position=position)

    @property
    def signature(self) -> Signature:
        """What makes this model's numbers reproducible."""
        stand_in = self.examination.stand_in if self.examination is not None else None
        return Signature(
            (
                ("model", f"{self.subject.name}@{self.subject.revision}"),
                ("tokenizer", type(self.subject.tokenizer).__name__ if self.subject.tokenizer is not None else "none"),
                ("dtype", str(next(self.subject.model.parameters()).dtype).removeprefix("torch.")),
                *((("attention", f"{stand_in} in place of its own"),) if stand_in else ()),
                ("normlens", __version__),
            )
        )

    def __repr__(self) -> str:
        counts = Counter(w.kind for w in self.wires if w.exact)
        proof = ", ".join(f"{n} {kind}" for kind, n in counts.items()) + " blocks exact" if counts else "not proved yet"
        refused = sum(not w.exact for w in self.wires)
        return f"Lens({self.subject.name}@{self.subject.revision}: {proof}{f', {refused} refused' if refused else ''})"

    def _encode(self, data: Any, source: Any, target: Any, truncate: bool) -> Encoded:
        if (data is None) == (source is None):
            raise InputError("Give one thing to trace: a text (or ids, inputs, an image), or source= with target=.")
        if source is None and target is None and not self.subject.is_seq2seq:
            return models.encode(self.subject, data, truncate=truncate)
        if not self.subject.is_seq2seq:
            raise InputError(
                f"source= and target= are for sequence-to-sequence models; '{self.subject.name}' has one side.",
                do="lens.trace(text), or lens.trace((first, second)) for a pair.",
            )
        given = data if source is None else source
        if isinstance(given, Mapping) and "decoder_input_ids" in given:
            return models.encode(self.subject, given)
        if target is None:
            target = generate(self.subject, given)
        return models.encode_both(self.subject, given, target, truncate=truncate)

    def _traced(
        self,
        encoded: Encoded,
        layers: int | Sequence[int] | None,
        heads: int | Sequence[int] | None,
        fields: Sequence[str],
    ) -> Trace:
        blocks: list[Block] = []
        namer = self._watch(encoded, blocks.append, layers, heads, fields, again=blocks.clear)[1]
        return finished(self, encoded, namer, blocks)

    def _padding_matters(self, encoded: Encoded) -> bool:
        """Whether texts of this batch would have other numbers than each alone."""
        masks = [mask for mask in (encoded.kept, encoded.targets_kept) if mask is not None]
        if not masks:
            return False
        if len(encoded.sides) and any(bool((mask[:, 1:] & ~mask[:, :-1]).any()) for mask in masks):
            return True  # padding before a token: where the model counts positions, they would move
        if self.examination is None:
            self.prove(encoded.inputs)
        return not self.takes_padding

    @property
    def takes_padding(self) -> bool:
        """Whether a text in a padded batch was shown to have the same numbers as alone."""
        return self.examination is not None and self.examination.batches

    def _check_padding(self, encoded: Encoded) -> None:
        if self._padding_matters(encoded) and self.examination is not None:
            why = self.examination.padding_reason or "a padded text was not compared with the same text alone"
            raise InputError(
                f"The texts of this batch differ in length, and padding is not safe with '{self.subject.name}': {why}.",
                do="give texts of equal length, or one at a time; lens.trace() takes them apart by itself.",
            )

    def _watch(
        self,
        encoded: Encoded,
        on_block: Callable[[Block], None],
        layers: int | Sequence[int] | None,
        heads: int | Sequence[int] | None,
        fields: Sequence[str],
        kinds: Collection[Kind] | None = None,
        *,
        again: Callable[[], None] | None = None,
    ) -> tuple[Any, Namer]:
        """One pass, block by block; what the model returned, and the names of the axes."""
        try:
            check_names(fields)
        except MeasureError as error:
            raise InputError(error.what, got=error.got, do=error.do) from error
        moving = models.in_training(self.subject.model)
        if moving:
            raise ReconstructionError(
                f"'{self.subject.name}' is in training mode now{(f' (in {moving[0]})' if moving[0] else '')}, "
                "so dropout would make every number random.",
                do="model.eval(), then trace again.",
            )
        if self.examination is None:
            self.prove(encoded.inputs)
        try:
            return self._pass(encoded).run(on_block, layers, heads, fields, kinds)
        except Unproved as new:
            if again is None:
                raise ReconstructionError(
                    f"{new} ran in '{self.subject.name}', which the proof has not seen.",
                    cause="the model takes another way for such inputs than on the probe.",
                    do="lens.prove(inputs) with such inputs first.",
                ) from None
        again()
        self.prove(encoded.inputs)
        return self._pass(encoded).run(on_block, layers, heads, fields, kinds)

    def _pass(self, encoded: Encoded) -> Pass:
        assert self.examination is not None
        return Pass(self.subject, self.wires, self.examination, encoded)

    def _refusal(self, examination: Examination, refused: list[Wire]) -> ReconstructionError:
        why = examination.reason or refused[0].reason
        listed = "; ".join(f"{w.attention or w.out}: {w.reason}" for w in refused[:4])
        return ReconstructionError(
            f"'{self.subject.name}' cannot be decomposed exactly: {why}.",
            got=listed or None,
            do="see every block with `normlens doctor MODEL`.",
        )
