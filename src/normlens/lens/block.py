"""One attention block of one trace: the numbers users came for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jaxtyping import Float
from torch import Tensor

from normlens.errors import NormlensError
from normlens.lens.wiring import Kind, Wire
from normlens.measures import QUANTITIES, Quantity, derived, needs_transformed


class NotKept(NormlensError, AttributeError):
    """A quantity, a layer or a head that this trace has not kept."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Block:
    """The attention of one block. Rows are queries (tgt), columns are keys (src).

    A batch is as wide as its longest sequence; beyond a shorter one's end everything is 0.
    """

    kind: Kind
    layer: int
    name: str  # module path of the attention
    heads: tuple[int, ...]  # the heads kept, by their number in the model
    error: float  # ‖rebuilt − output‖ / ‖output‖ in this very pass
    tgt: str  # the side of the queries: "text", "source" or "target"
    src: str  # the side of the keys
    kept: dict[str, Tensor]
    sizes: tuple[tuple[int, int], ...]  # queries and keys of each sequence, without padding
    own: Mapping[str, Quantity] = field(default_factory=dict)  # declarations of the user's own quantities among `kept`
    absent: Mapping[str, str] = field(default_factory=dict)  # quantities that do not exist here, and why

    @property
    def weights(self) -> Float[Tensor, "batch head tgt src"]:
        """α, the attention weights."""
        return self["weights"]

    @property
    def transformed_norms(self) -> Float[Tensor, "batch head src"]:
        """‖f(x)‖, the norm of the transformed vector of each key."""
        return self["transformed_norms"]

    @property
    def weighted_norms(self) -> Float[Tensor, "batch head tgt src"]:
        """‖αf(x)‖, the contribution of each key to each query in one head: |α|·‖f(x)‖ where f(x) exists."""
        return self["weighted_norms"]

    @property
    def summed_norms(self) -> Float[Tensor, "batch tgt src"]:
        """‖Σ_h αf(x)‖ over the heads kept: the contribution of each key to each query in the block as a whole."""
        return self["summed_norms"]

    @property
    def residual_norms(self) -> Float[Tensor, "batch tgt src"]:
        """‖Σ_h αf(x) + [key is query]·x‖: the contribution of each key, the residual added to a token's own."""
        return self["residual_norms"]

    @property
    def normed_norms(self) -> Float[Tensor, "batch tgt src"]:
        """The same after the norm behind the residual, with the statistics of this pass."""
        return self["normed_norms"]

    @property
    def encoder_norms(self) -> Float[Tensor, "batch tgt src"]:
        """The same at the end of the layer, its feed-forward block left out."""
        return self["encoder_norms"]

    @property
    def output_norms(self) -> Float[Tensor, "batch tgt src"]:
        """The same at the end of the layer, with its feed-forward block.

        In a mixture of experts, the choice and the weights of the router are taken from the pass.
        """
        return self["output_norms"]

    @property
    def joined_norms(self) -> Float[Tensor, "batch tgt src"]:
        """The same with the feed-forward block and its residual, before any norm behind it."""
        return self["joined_norms"]

    @property
    def output_norms_both(self) -> Float[Tensor, "batch tgt src"]:
        """The same with the other rule for a gated feed-forward block: half by its gate, half by its units."""
        return self["output_norms_both"]

    @property
    def alti(self) -> Float[Tensor, "batch tgt src"]:
        """max(0, ‖y‖₁ - ‖y - F‖₁) as shares of the query (ALTI), at the norm behind the residual or at the sum."""
        return self["alti"]

    @property
    def value_zeroing(self) -> Float[Tensor, "batch tgt src"]:
        """1 - cos of the end of the layer with and without the values of the key, as shares of the query."""
        return self["value_zeroing"]

    @property
    def route_shares(self) -> Float[Tensor, "batch head tgt src"]:
        """max(0, ‖y‖₁ - ‖y - αf(x)‖₁) at the sum y with the residual, as shares of the query over all heads and x."""
        return self["route_shares"]

    @property
    def feedforward_share(self) -> Float[Tensor, "batch tgt"]:
        """The same of the feed-forward block, in its sum with the residual."""
        return self["feedforward_share"]

    @property
    def effective_weights(self) -> Float[Tensor, "batch head tgt src"]:
        """α without what the transformed vectors of the keys cancel; it gives the same output, and may be below 0."""
        return self["effective_weights"]

    @property
    def mixing_attention(self) -> Float[Tensor, "batch tgt"]:
        """‖others‖ / (‖others‖ + ‖own‖), 0 to 1: how much of what attention adds comes from other tokens."""
        return self["mixing_attention"]

    @property
    def mixing_residual(self) -> Float[Tensor, "batch tgt"]:
        """The same with the residual."""
        return self["mixing_residual"]

    @property
    def mixing_normed(self) -> Float[Tensor, "batch tgt"]:
        """The same after the norm behind the residual."""
        return self["mixing_normed"]

    @property
    def mixing_output(self) -> Float[Tensor, "batch tgt"]:
        """The same at the end of the layer, with its feed-forward block."""
        return self["mixing_output"]

    @property
    def layer_inputs(self) -> Float[Tensor, "batch tgt model"]:
        """x, what the residual carries past the attention block."""
        return self["layer_inputs"]

    @property
    def attended_states(self) -> Float[Tensor, "batch tgt model"]:
        """x + o, before any norm behind it."""
        return self["attended_states"]

    @property
    def feedforward_inputs(self) -> Float[Tensor, "batch tgt model"]:
        """x′, what the residual carries past the feed-forward block."""
        return self["feedforward_inputs"]

    @property
    def feedforward_states(self) -> Float[Tensor, "batch tgt model"]:
        """x′ + FF, before any norm behind it."""
        return self["feedforward_states"]

    @property
    def layer_outputs(self) -> Float[Tensor, "batch tgt model"]:
        """The vectors at the end of the layer."""
        return self["layer_outputs"]

    @property
    def transformed(self) -> Float[Tensor, "batch head src model"]:
        """f(x), the transformed vectors."""
        return self["transformed"]

    @property
    def head_outputs(self) -> Float[Tensor, "batch head tgt model"]:
        """Σ_j αf(x_j), what each head adds to the output."""
        return self["head_outputs"]

    @property
    def head_vectors(self) -> Float[Tensor, "batch head tgt head_dim"]:
        """z = Σ_j αv(x_j), what each head writes before the output matrix."""
        return self["head_vectors"]

    @property
    def coordinates(self) -> Float[Tensor, "batch head src head_dim"]:
        """f(x) in an orthonormal basis of the output of its head."""
        return self["coordinates"]

    @property
    def value_sums(self) -> Float[Tensor, "batch head src"]:
        """‖v(x)‖₁, the sum of the absolute values of the value vector."""
        return self["value_sums"]

    @property
    def transformed_sums(self) -> Float[Tensor, "batch head src"]:
        """‖f(x)‖₁, the sum of the absolute values of the transformed vector."""
        return self["transformed_sums"]

    @property
    def similarity(self) -> Float[Tensor, "batch head tgt src"]:
        """zᵢ·zⱼ, how alike what a head writes for two tokens is; of self-attention."""
        return self["similarity"]

    @property
    def scales(self) -> Float[Tensor, "batch head tgt"]:
        """What multiplies Σ_j αv(x_j) of a head before the output matrix, where that is one number for a query."""
        return self["scales"]

    @property
    def lost_mass(self) -> Float[Tensor, "batch head tgt"]:
        """1 − Σ_j α, the attention of a query that no key receives."""
        return self["lost_mass"]

    @property
    def visible(self) -> Float[Tensor, "batch tgt src"]:
        """1 where the query may attend to the key, 0 where the key is masked."""
        return self["visible"]

    def __getitem__(self, name: str) -> Tensor:
        """Any quantity by its name: kept, or computed now from what was kept."""
        if name in self.kept:
            return self.kept[name]
        if name not in QUANTITIES:
            raise NotKept(
                f"no quantity {name!r}.",
                do=f"use {', '.join(dict.fromkeys((*QUANTITIES, *self.own)))}; @nl.measure declares one of your own.",
            )
        if QUANTITIES[name].one_side and self.tgt != self.src:
            raise NotKept(
                f"'{name}' compares the queries of a block with each other, as a table of queries and keys.",
                got=f"{self.kind} attention: its queries are of the {self.tgt}, its keys of the {self.src}",
                do="read it from self-attention, or take the vectors: block['head_vectors'].",
            )
        if name in self.absent:
            raise NotKept(
                f"{self.kind} layer {self.layer} has no '{name}': {self.absent[name]}.",
                do="use weighted_norms, ‖αf(x)‖ for each query and key, or summed_norms."
                if needs_transformed(name)
                else "see what is exact with `normlens doctor MODEL`.",
            )
        value = derived(name, self.kept, self.sizes, len(self.heads), self.own)
        if value is None:
            raise NotKept(
                f"This trace did not keep '{name}', nor what it is computed from.",
                got=", ".join(self.kept) or "nothing",
                do=f"trace again with fields=(..., {name!r}).",
            )
        return value

    @property
    def quantities(self) -> dict[str, Quantity]:
        """What the block holds, by name: what was kept, and ‖αf(x)‖ where it follows."""
        held = {name: self.quantity(name) for name in self.kept}
        if {"weights", "transformed_norms"} <= set(held):
            held["weighted_norms"] = QUANTITIES["weighted_norms"]
        order = [*QUANTITIES, *self.own]
        return {name: held[name] for name in sorted(held, key=order.index)}

    def quantity(self, name: str) -> Quantity:
        """The declaration of a quantity, as it was when this trace was made."""
        return self.own[name] if name in self.own else QUANTITIES[name]

    @property
    def no_transformed(self) -> str | None:
        """Why f(x) alone does not exist; None when it does."""
        return self.absent.get("transformed_norms")

    @property
    def label(self) -> str:
        """As the layer is written: L3."""
        return f"L{self.layer}"

    def sequence(self, index: int, tgt: int, src: int) -> Block:
        """One sequence of the batch, cut to its own length; still a batch, of one."""
        most = {"tgt": tgt, "src": src}
        cut = {}
        for name, tensor in self.kept.items():
            part = tensor[index : index + 1]
            for at, axis in enumerate(self.quantity(name).axes):
                if part.shape[at] > most.get(axis, part.shape[at]):
                    part = part.narrow(at, 0, most[axis])
            cut[name] = part
        rows, columns = self.sizes[index]
        return replace(self, kept=cut, sizes=((min(rows, tgt), min(columns, src)),))

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in self.kept.items())
        return f"Block({self.kind} {self.label} '{self.name}', error {self.error:.0e}: {shapes})"


class Layers:
    """The blocks of one kind, by layer number, negative ones from the end; iterating yields those that were kept."""

    def __init__(self, kind: str, blocks: Sequence[Block], wires: Sequence[Wire]) -> None:
        self.kind, self.wires = kind, tuple(wires)
        self.blocks = {block.layer: block for block in blocks}

    def __getitem__(self, layer: int) -> Block:
        number = layer + self.depth if layer < 0 else layer
        if number in self.blocks:
            return self.blocks[number]
        refused = next((w.reason for w in self.wires if w.layer == number and w.reason), None)
        if refused:
            raise NotKept(
                f"{self.kind} layer {number} was refused: {refused}.",
                do="see every block with `normlens doctor MODEL`.",
            )
        if not self.depth:
            raise IndexError(f"this model has no {self.kind} attention")
        if number < 0 or number >= self.depth:
            raise IndexError(f"no layer {layer}: {self.kind} attention has layers 0 to {self.depth - 1}")
        raise NotKept(
            f"{self.kind} layer {number} was not kept.",
            got=f"layers {', '.join(map(str, sorted(self.blocks))) or 'none'}",
            do=f"trace again with layers={number}, or without layers=.",
        )

    @property
    def depth(self) -> int:
        """How many layers the model has of this kind, kept or not."""
        known = [w.layer for w in self.wires] + list(self.blocks)
        return max(known, default=-1) + 1

    def __len__(self) -> int:
        return len(self.blocks)

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks[layer] for layer in sorted(self.blocks))

    def __repr__(self) -> str:
        return f"Layers({self.kind}: {', '.join(block.label for block in self) or 'none'})"
