"""The door: load a model, prove it, trace it.

Room: where models, capture and algebra meet. The model stays the user's and is never changed.
"""

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
from normlens.capture import Attended, Examination, examine, run
from normlens.capture.examine import tolerance
from normlens.errors import NormlensError
from normlens.lens.block import DEFAULT, FIELDS, Block
from normlens.lens.generation import generate
from normlens.lens.measure import measure, pass_error, without_padding
from normlens.lens.probe import probe_inputs
from normlens.lens.trace import Trace
from normlens.lens.wiring import Kind, Wire, wire
from normlens.models import Encoded, InputError, Subject
from normlens.signature import Signature
from normlens.version import __version__

Reduced = TypeVar("Reduced")
SIDES: dict[Kind, tuple[str, str]] = {
    "self": ("text", "text"),
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "cross": ("target", "source"),
}


class ReconstructionError(NormlensError):
    """The parts do not add up to the whole, so no number may be shown."""


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

    `source` is a hub id, a folder, a transformers model object, or nothing for the embedded MiniLM. The proof runs on a
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
    inputs = dict(probe) if probe is not None else probe_inputs(one)
    if inputs is not None:
        lens.prove(inputs)
    return lens


class Lens:
    """A model that proved itself, ready to be traced."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.wires: tuple[Wire, ...] = ()
        self.examination: Examination | None = None  # None: no probe could be made, so the first trace is the proof

    def prove(self, inputs: Mapping[str, Any]) -> None:
        """Check on these inputs that parts rebuild the whole and that watching changes nothing; refuse what fails."""
        examination = examine(self.subject.model, inputs)
        wires = wire(self.subject, examination)
        refused = [w for w in wires if not w.exact]
        if examination.reason is not None or len(refused) == len(wires):
            raise ReconstructionError(self._refusal(examination, refused))
        if refused:
            names = ", ".join(f"{w.kind} L{w.layer}" for w in refused[:6]) + (" ..." if len(refused) > 6 else "")
            warnings.warn(
                f"{len(wires) - len(refused)} of {len(wires)} attention blocks of '{self.subject.name}' are exact; "
                f"left out: {names}. First reason: {refused[0].reason}. See all: normlens doctor.",
                PartlyExact,
                stacklevel=3,
            )
        self.wires, self.examination = wires, examination

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
        blocks: list[Block] = []
        self._watch(encoded, blocks.append, layers, heads, fields)
        return self._finish(encoded, blocks)

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

        Long inputs cost the memory of one layer this way, not of all.
        """
        results: list[Reduced] = []
        encoded = self._encode(data, source, target, truncate)
        self._watch(encoded, lambda block: results.append(reduce(block)), layers, heads, fields)
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

        For long runs: what `on_block` does not keep is gone. With `hidden_states` the model is asked for them, and
        gives them if it can.
        """
        if hidden_states:
            encoded = replace(encoded, inputs=encoded.inputs | {"output_hidden_states": True})
        return self._watch(encoded, on_block, layers, None, fields, kinds)

    def trace_generation(self, prompt: Any, *, max_new_tokens: int = 20, **options: Any) -> Trace:
        """Let the model write on, then trace prompt and continuation as one ordinary pass.

        `layers`, `heads` and `fields` are for the trace; any other option is for the model's own `generate`.
        """
        chosen = {key: options.pop(key) for key in ("layers", "heads", "fields") if key in options}
        written = generate(self.subject, prompt, max_new_tokens=max_new_tokens, **options)
        if self.subject.is_seq2seq:
            return self.trace(source=prompt, target=written, **chosen)
        return self.trace(written, **chosen)

    @property
    def signature(self) -> Signature:
        """What makes this model's numbers reproducible."""
        return Signature(
            (
                ("model", f"{self.subject.name}@{self.subject.revision}"),
                ("tokenizer", type(self.subject.tokenizer).__name__ if self.subject.tokenizer is not None else "none"),
                ("dtype", str(next(self.subject.model.parameters()).dtype).removeprefix("torch.")),
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
                f"source= and target= are for sequence-to-sequence models; '{self.subject.name}' has one side.\n"
                "  Do: lens.trace(text), or lens.trace((first, second)) for a pair."
            )
        given = data if source is None else source
        if isinstance(given, Mapping) and "decoder_input_ids" in given:
            return models.encode(self.subject, given)
        if target is None:
            target = generate(self.subject, given)
        return models.encode_both(self.subject, given, target, truncate=truncate)

    def _watch(
        self,
        encoded: Encoded,
        on_block: Callable[[Block], None],
        layers: int | Sequence[int] | None,
        heads: int | Sequence[int] | None,
        fields: Sequence[str],
        kinds: Collection[Kind] | None = None,
    ) -> Any:
        _check_fields(fields)
        if self.subject.model.training:
            raise ReconstructionError(
                f"'{self.subject.name}' is in training mode now, so dropout would make every number random.\n"
                "  Do: model.eval(), then trace again."
            )
        if self.examination is None:
            self.prove(encoded.inputs)
        wanted = _numbers(layers, "layer", max((w.layer for w in self.wires), default=0) + 1)
        by_use = {(w.out, w.use): w for w in self.wires}
        uses: Counter[str] = Counter()

        def receive(attended: Attended) -> None:
            found = by_use.get((attended.out, uses[attended.out]))
            uses[attended.out] += 1
            if found is not None and not (found.exact and (wanted is None or found.layer in wanted)):
                return
            found = found or self._new_wire(attended)
            if kinds is None or found.kind in kinds:
                on_block(self._block(attended, found, heads, fields, encoded))

        try:
            return run(self.subject.model, encoded.inputs, receive)[0]
        except IndexError as error:
            raise InputError(
                f"The model ran out of a table: {error}.\n"
                "  Usual causes: more tokens than positions, or a tokenizer that does not belong to the model.\n"
                "  Do: shorten the text, or check that model and tokenizer come from the same place."
            ) from error

    def _block(
        self,
        attended: Attended,
        wire: Wire,
        heads: int | Sequence[int] | None,
        fields: Sequence[str],
        encoded: Encoded,
    ) -> Block:
        count = attended.weights.shape[1]
        error, allowed = pass_error(attended), tolerance(attended.output.dtype)
        if not error <= allowed:
            raise ReconstructionError(
                f"{wire.kind} layer {wire.layer} of '{self.subject.name}': parts rebuild the attention output only to "
                f"{error:.1e} (allowed {allowed:.0e}).\n"
                f"  weights {tuple(attended.weights.shape)}  values {tuple(attended.values.shape)}\n"
                "  Usual causes: numbers beyond the range of the model's precision, or weights changed while it ran.\n"
                "  Try: a higher precision (dtype=torch.float32); then `normlens doctor` to see which block fails."
            )
        chosen = _numbers(heads, "head", count)
        kept = measure(attended, fields, chosen)
        one_sided = wire.kind == "cross" and not self.subject.is_seq2seq
        tgt, src = ("text", "other") if one_sided else SIDES[wire.kind]
        masks = {"text": encoded.kept, "source": encoded.kept, "target": encoded.targets_kept, "other": None}
        return Block(
            kind=wire.kind,
            layer=wire.layer,
            name=wire.attention,
            heads=tuple(range(count)) if chosen is None else tuple(chosen),
            error=error,
            tgt=tgt,
            src=src,
            kept=without_padding(kept, masks[tgt], masks[src]),
        )

    def _new_wire(self, attended: Attended) -> Wire:
        """A block the probe did not reach, such as a vision tower behind a text probe: proved by this pass itself."""
        tgt, src = attended.weights.shape[2:]
        kind: Kind = "self" if tgt == src else "cross"
        layer = max((w.layer for w in self.wires if w.kind == kind), default=-1) + 1
        new = Wire(kind, layer, attended.out.removesuffix(".weight"), attended.out, 0, float("nan"), None)
        self.wires = (*self.wires, new)
        return new

    def _finish(self, encoded: Encoded, blocks: list[Block]) -> Trace:
        sides, targets = (
            tuple(self._counted(side, index, encoded, blocks) for index, side in enumerate(group))
            for group in (encoded.sides, encoded.targets)
        )
        return Trace(tuple(blocks), self.wires, sides, targets, self.signature)

    def _counted(self, side: models.Side, index: int, encoded: Encoded, blocks: list[Block]) -> models.Side:
        """A side without text gets its number of positions from the blocks that look at it, and its picture if any."""
        if side.tokens:
            return side
        shapes = [t.shape for b in blocks if b.src == side.name for n, t in b.kept.items() if n == "weights"]
        if not shapes:
            return side
        batch, _, _, count = shapes[0]
        whole = batch == len(encoded.sides)  # else the batch is one of windows
        seen = models.patches(self.subject, encoded.inputs, index, side.name, count) if whole else None
        return seen or models.positions(side.name, count)

    def _refusal(self, examination: Examination, refused: list[Wire]) -> str:
        why = examination.reason or refused[0].reason
        listed = "".join(f"\n  {w.attention or w.out}: {w.reason}" for w in refused[:4])
        return (
            f"'{self.subject.name}' cannot be decomposed exactly: {why}.{listed}\n"
            "  See every block: normlens doctor MODEL"
        )


def _numbers(chosen: int | Sequence[int] | None, what: str, count: int) -> list[int] | None:
    if chosen is None:
        return None
    numbers = [chosen] if isinstance(chosen, int) else list(chosen)
    wrong = [n for n in numbers if not -count <= n < count]
    if wrong or not numbers:
        raise InputError(f"There is no {what} {wrong[0] if wrong else 'given'}: {what}s are 0 to {count - 1}.")
    return [n % count for n in numbers]


def _check_fields(fields: Sequence[str]) -> None:
    wrong = [f for f in fields if f not in FIELDS]
    if wrong or isinstance(fields, str):
        raise InputError(f"fields= takes a tuple of {', '.join(FIELDS)}; got {fields!r}.")
