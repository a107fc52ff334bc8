"""One attention block of one trace: the numbers users came for.

Room: results. Tensors in, no model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from jaxtyping import Float
from torch import Tensor

from normlens.algebra import weighted_norms
from normlens.errors import NormlensError
from normlens.lens.wiring import Kind, Wire

Field = Literal["weights", "transformed_norms", "weighted_norms", "summed_norms", "transformed", "head_outputs"]
FIELDS: tuple[Field, ...] = get_args(Field)
DEFAULT: tuple[Field, ...] = ("weights", "transformed_norms", "weighted_norms", "summed_norms")
TGT: dict[str, int] = {"weights": 2, "weighted_norms": 2, "summed_norms": 1, "head_outputs": 2}  # axis of the query
SRC: dict[str, int] = {"weights": 3, "weighted_norms": 3, "summed_norms": 2, "transformed_norms": 2, "transformed": 2}


class NotKept(NormlensError, AttributeError):
    """A field, a layer or a head that this trace was told not to keep."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Block:
    """What one attention block moved. Rows are queries (tgt), columns are what they look at (src).

    A batch is as wide as its longest sequence; beyond a shorter one's end everything is 0.
    """

    kind: Kind
    layer: int
    name: str  # module path of the attention
    heads: tuple[int, ...]  # the heads kept, by their number in the model
    error: float  # ‖rebuilt − output‖ / ‖output‖ in this very pass
    tgt: str  # the side that looks: "text", "source" or "target"
    src: str  # the side that is looked at
    kept: dict[str, Tensor]

    @property
    def weights(self) -> Float[Tensor, "batch head tgt src"]:
        """α, the attention weights."""
        return self._get("weights")

    @property
    def transformed_norms(self) -> Float[Tensor, "batch head src"]:
        """‖f(x)‖, the length of what each token would send."""
        return self._get("transformed_norms")

    @property
    def weighted_norms(self) -> Float[Tensor, "batch head tgt src"]:
        """‖α f(x)‖ = |α|·‖f(x)‖, the length of what each token does send."""
        if "weighted_norms" not in self.kept and {"weights", "transformed_norms"} <= set(self.kept):
            return weighted_norms(self.weights.float(), self.transformed_norms)
        return self._get("weighted_norms")

    @property
    def summed_norms(self) -> Float[Tensor, "batch tgt src"]:
        """‖Σ_h α f(x)‖ over the heads kept: what the block as a whole brings from src to tgt."""
        return self._get("summed_norms")

    @property
    def transformed(self) -> Float[Tensor, "batch head src model"]:
        """f(x) itself."""
        return self._get("transformed")

    @property
    def head_outputs(self) -> Float[Tensor, "batch head tgt model"]:
        """Σ_j α f(x_j), what each head adds to the output."""
        return self._get("head_outputs")

    @property
    def label(self) -> str:
        return f"L{self.layer}"

    def sequence(self, index: int, tgt: int, src: int) -> Block:
        """One sequence of the batch, cut to its own length; still a batch, of one."""
        cut = {}
        for name, tensor in self.kept.items():
            one = tensor[index : index + 1]
            if name in TGT and tgt < one.shape[TGT[name]]:
                one = one.narrow(TGT[name], 0, tgt)
            if name in SRC and src < one.shape[SRC[name]]:
                one = one.narrow(SRC[name], 0, src)
            cut[name] = one
        return replace(self, kept=cut)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in self.kept.items())
        return f"Block({self.kind} {self.label} '{self.name}', error {self.error:.0e}: {shapes})"

    def _get(self, name: str) -> Tensor:
        if name not in self.kept:
            raise NotKept(
                f"This trace did not keep '{name}'; it has {', '.join(self.kept)}.",
                do=f"trace again with fields=(..., {name!r}).",
            )
        return self.kept[name]


class Layers:
    """The blocks of one kind, by layer number, negative ones from the end; iterating gives those that were kept."""

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
                do="See all: normlens doctor MODEL.",
            )
        if not self.depth:
            raise IndexError(f"this model has no {self.kind} attention")
        if number < 0 or number >= self.depth:
            raise IndexError(f"{self.kind} attention has layers 0 to {self.depth - 1}, not {layer}")
        raise NotKept(
            f"{self.kind} layer {number} was not kept; this trace has {sorted(self.blocks)}.",
            do="layers=.",
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
