"""One pass of a proved model: every block checked, measured and named, and none missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import ref

import torch

from normlens import algebra
from normlens.capture import (
    Attended,
    Examination,
    PathError,
    Ran,
    relative_error,
    run,
    stage,
    tolerance,
    unordered,
)
from normlens.errors import NormlensError
from normlens.lens.axes import Namer
from normlens.lens.block import Block
from normlens.lens.wiring import Kind, Roles, Wire, layer_of
from normlens.measures import QUANTITIES, measured, needed, needs_transformed, stages_of
from normlens.models import Encoded, InputError, Subject

AMONG_ALL_HEADS = ("alti", "route_shares")


class ReconstructionError(NormlensError):
    """The parts do not add up to the whole, so no number may be shown."""


class Unproved(Exception):
    """A block turned up that no proof has seen."""


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """One pass over one batch."""

    subject: Subject
    wires: tuple[Wire, ...]
    examination: Examination
    encoded: Encoded

    def run(
        self,
        on_block: Callable[[Block], None],
        layers: int | Sequence[int] | None,
        heads: int | Sequence[int] | None,
        fields: Sequence[str],
        kinds: Collection[Kind] | None,
    ) -> tuple[Any, Namer]:
        """Each block to `on_block` as soon as it exists; what the model returned, and the names of the axes."""
        wanted = _numbers(layers, "layer", max((w.layer for w in self.wires), default=0) + 1, "the model has")
        by_use = {(w.out, w.use): w for w in self.wires}
        uses: Counter[str] = Counter()
        roles = Roles.of(self.subject, self.encoded.inputs)
        namer = Namer(self.subject, self.encoded, roles)
        raised: list[BaseException] = []
        lent: list[tuple[str, Any, int]] = []  # weights that are the model's own memory, and its state then

        def receive(attended: Attended) -> None:
            use = uses[attended.out]
            uses[attended.out] += 1
            known = by_use.get((attended.out, use)) or by_use.get((attended.out, 0))
            if known is None:
                raise Unproved(f"A block with the output matrix '{attended.out}'")
            kind = roles.kind(attended.tgt.names, attended.src.names)
            layer = layer_of(attended.seen, attended.order, kind, roles)
            if not known.exact or (wanted is not None and layer not in wanted):
                return
            if kinds is None or kind in kinds:
                named = replace(known, kind=kind, layer=layer)
                block = self._block(attended, named, heads, fields, namer)
                if "weights" in block.kept:
                    weights = block.kept["weights"]
                    lent.append((f"{kind} layer {layer}", ref(weights), weights._version))
                try:
                    on_block(block)
                except BaseException as error:
                    raised.append(error)
                    raise

        try:
            scores = any("scores" in quantity.needs for quantity in needed(fields))
            scopes = {need for quantity in needed(fields) for need in stages_of(quantity)}

            def states(out: str, use: int) -> frozenset[int]:
                known = by_use.get((out, use)) or by_use.get((out, 0))
                numbers = {} if known is None or not known.exact else known.path.numbers
                return frozenset(number for scope, number in numbers.items() if scope in scopes)

            ran = run(
                self.subject.model,
                self.encoded.inputs,
                receive,
                scores=scores,
                states=states if scopes else None,
                **self.examination.options,
            )
        except IndexError as error:
            if error in raised:
                raise
            raise InputError(
                f"The model ran out of a table: {error}.",
                cause="more tokens than positions, or a tokenizer that does not belong to the model.",
                do="shorten the text, or check that model and tokenizer come from the same place.",
            ) from error
        self._check_complete(ran, uses, roles)
        for name, lent_weights, version in lent:
            if (kept := lent_weights()) is not None and kept._version != version:
                raise ReconstructionError(
                    f"{name} of '{self.subject.name}': its attention weights were written over later in the pass.",
                    cause="a buffer that several layers share.",
                    do="lens.each_block(), which reads each block before the next runs.",
                )
        return ran.output, namer

    def _check_complete(self, ran: Ran, uses: Mapping[str, int], roles: Roles) -> None:
        """A block that was proved and was not complete in this pass stops it: nothing may be missing in silence."""
        proved = {(w.kind, w.layer): w for w in self.wires if w.exact}
        for lost in ran.refused:
            kind = roles.kind(lost.tgt, lost.src)
            found = proved.get((kind, layer_of(ran.seen, lost.order, kind, roles)))
            if found is not None:
                raise self._missing(found, lost.reason)
        for found in proved.values():
            if ran.read_on.get(found.out, 0) > self.examination.read_on.get(found.out, 0):
                reason = f"another matrix follows its output matrix '{found.out}', which the probe did not show"
                raise self._missing(found, reason)
            spare = self.examination.spare.get(found.out, 0)
            if ran.matrices.get(found.out.split(" @ ")[0], 0) > uses[found.out] + spare:
                raise self._missing(found, f"its output matrix '{found.out}' ran, but no attention was seen before it")

    def _missing(self, found: Wire, reason: str) -> ReconstructionError:
        return ReconstructionError(
            f"{found.kind} layer {found.layer} of '{self.subject.name}' was exact on the probe, and cannot be split in "
            f"this pass: {reason}.",
            cause=(
                "the model does something else for such inputs (a gate, another kernel), or was changed after it was "
                "loaded (a hook, an adapter)."
            ),
            do="load the model again as it is now; or give shorter inputs.",
        )

    def _block(
        self, attended: Attended, wire: Wire, heads: int | Sequence[int] | None, fields: Sequence[str], namer: Namer
    ) -> Block:
        count = attended.weights.shape[1]
        error, allowed = pass_error(attended), tolerance(attended.output.dtype)
        if not error <= allowed:
            raise ReconstructionError(
                f"{wire.kind} layer {wire.layer} of '{self.subject.name}': parts rebuild the attention output "
                f"only to {error:.1e} (allowed {allowed:.0e}). weights {tuple(attended.weights.shape)}  "
                f"values {tuple(attended.values.shape)}",
                cause="numbers beyond the range of the model's precision, or weights changed while it ran.",
                do="a higher precision (dtype=torch.float32); then `normlens doctor` to see which block fails.",
            )
        reason = unordered(attended)
        if reason is not None:
            raise ReconstructionError(
                f"{wire.kind} layer {wire.layer} of '{self.subject.name}': {reason}.",
                cause="the model sorts or groups its tokens for such inputs, and did not on the probe.",
                do="give inputs like those of the probe; `normlens doctor` shows every block.",
            )
        chosen = _numbers(heads, "head", count, f"{wire.kind} layer {wire.layer} has")
        tgt, src = namer.name(attended.tgt), namer.name(attended.src)
        one_side = tgt.side == src.side
        absent = {
            name: wire.path.reasons.get(scope, "it was not seen on the probe")
            for name, quantity in QUANTITIES.items()
            for scope in reversed(stages_of(quantity))
            if not wire.path.has(scope)
        }
        if chosen is not None and sorted(chosen) != list(range(count)):
            absent |= dict.fromkeys(AMONG_ALL_HEADS, "it is a share among all heads, and some were left out")
        fields = [name for name in fields if name not in absent and (one_side or not QUANTITIES[name].one_side)]
        stages = self._stages(attended, wire, fields, one_side)
        if attended.no_transformed is not None:
            absent |= {name: attended.no_transformed for name in QUANTITIES if needs_transformed(name)}
        numbers = measured(attended, fields, chosen, tgt.kept, src.kept, stages)
        return Block(
            kind=wire.kind,
            layer=wire.layer,
            name=wire.attention,
            heads=tuple(range(count)) if chosen is None else tuple(chosen),
            error=error,
            tgt=tgt.side,
            src=src.side,
            kept=numbers.kept,
            sizes=numbers.sizes,
            own={name: QUANTITIES[name] for name in numbers.kept if not QUANTITIES[name].batched},
            absent=absent,
        )

    def _stages(
        self, attended: Attended, wire: Wire, fields: Sequence[str], one_side: bool
    ) -> dict[str, algebra.Stage]:
        """The points of the layer that the fields need, each proved in this very pass."""
        found: dict[str, algebra.Stage] = {}
        where = f"{wire.kind} layer {wire.layer} of '{self.subject.name}'"
        for scope in dict.fromkeys(scope for name in fields for scope in stages_of(QUANTITIES[name])):
            try:
                if attended.followed is None:
                    raise PathError("what follows it cannot be followed")
                found[scope] = stage(attended.followed, wire.path, scope, one_side=one_side)
            except PathError as lost:
                raise ReconstructionError(
                    f"{where}: its {scope} part was exact on the probe, and cannot be split in this pass: {lost}.",
                    cause="the model does something else for such inputs, or was changed after it was loaded.",
                    do="lens.prove(inputs) with such inputs; or leave these quantities out of fields=.",
                ) from lost
            error, allowed = found[scope].error, tolerance(attended.output.dtype)
            if not error <= allowed:
                raise ReconstructionError(
                    f"{where}: the terms of its {scope} part rebuild it only to {error:.1e} (allowed {allowed:.0e}).",
                    cause="numbers beyond the range of the model's precision.",
                    do="a higher precision (dtype=torch.float32).",
                )
        return found


def pass_error(attended: Attended) -> float:
    """How far the parts of this pass are from its output, relative, for one random mixture of its queries."""
    single = (torch.float32, torch.float64)
    weights, values, out_weight = (
        tensor if tensor.dtype in single else tensor.float()
        for tensor in (attended.weights, attended.values, attended.out_weight)
    )
    queries = torch.randn(weights.shape[2], generator=torch.Generator().manual_seed(0)).to(weights)
    bias = None if attended.out_bias is None else attended.out_bias.to(weights)
    scales, gates = (None if factor is None else factor.to(weights) for factor in (attended.scales, attended.gates))
    parts = algebra.rebuilt(queries, weights, values, out_weight, bias, scales, gates)
    whole = torch.matmul(queries, attended.output.to(weights))
    return relative_error(parts, whole)


def _numbers(chosen: int | Sequence[int] | None, what: str, count: int, whose: str) -> list[int] | None:
    if chosen is None:
        return None
    numbers = list(chosen) if isinstance(chosen, (Sequence, range)) else [chosen]
    if any(not isinstance(n, int) for n in numbers):
        raise InputError(f"{what}s= takes a whole number or several, counted from 0.", got=repr(chosen))
    wrong = [n for n in numbers if not -count <= n < count]
    if not numbers:
        raise InputError(f"no {what} given.", do=f"leave {what}s= out to keep all.")
    if wrong:
        raise InputError(f"no {what} {wrong[0]}: {whose} {what}s 0 to {count - 1}.")
    return [n % count for n in numbers]
