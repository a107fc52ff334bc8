"""The components of a layer as states before and after: attention, feed-forward block, the whole layer."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from normlens.measures import QUANTITIES, stages_of
from normlens.studies.seen import Facts, Seen


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a layer, by the quantities before and after it, its residual included."""

    label: str
    phrase: str  # the label inside a sentence
    before: str
    after: str

    @property
    def short(self) -> str:
        """The label as a heading of a column."""
        return self.phrase.removeprefix("the ").removesuffix(" block")

    @property
    def quantities(self) -> tuple[str, str]:
        return self.before, self.after

    def of(self, seen: Seen) -> tuple[Tensor, Tensor] | None:
        """The two states (batch, tgt, model); None where the block lacks one."""
        if not set(self.quantities) <= set(seen.block.kept):
            return None
        return seen[self.before], seen[self.after]


COMPONENTS = {
    "attention": Component("Attention", "attention", "layer_inputs", "attended_states"),
    "feedforward": Component(
        "The feed-forward block", "the feed-forward block", "feedforward_inputs", "feedforward_states"
    ),
    "layer": Component("The layer", "the layer", "layer_inputs", "layer_outputs"),
}


def lacking(run: Facts, kind: str, component: Component) -> str:
    """Why no block of this kind has a component."""
    return why_absent(run, kind, *component.quantities)


def why_absent(run: Facts, kind: str, *quantities: str) -> str:
    """Why no block of this kind has one of the quantities."""
    scopes = {scope for name in quantities for scope in stages_of(QUANTITIES[name])}
    for wire in () if run.lens is None else run.lens.wires:
        if wire.kind == kind and wire.exact:
            for scope, reason in wire.path.reasons.items():
                if scope in scopes and not wire.path.has(scope):
                    return reason
    return "it was not seen"
