"""What one attention block did in one forward pass, before any algebra: plain records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from normlens.capture.labels import Followed
from normlens.capture.positions import Stream


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """Whose positions an axis of an attention block has."""

    names: tuple[str, ...]  # the inputs whose positions stand here, in order; "parameter": vectors of the weights
    count: int
    codes: Int[Tensor, "batch position"] | None = None  # serial numbers of the positions; None: not to be followed
    streams: Sequence[Stream] = ()  # what the serial numbers mean
    reason: str | None = None  # why the positions are in no order that can be told


NO_AXIS = Axis((), 0)


@dataclass(slots=True, eq=False)
class Seen:
    """An attention that was seen in a pass, complete or not: what joins what, and which block it became part of."""

    order: int
    tgt: tuple[str, ...]  # the inputs whose positions ask
    src: tuple[str, ...]  # the inputs whose positions answer
    block: int | None = None  # order of the block, once complete


@dataclass(frozen=True, slots=True, eq=False)
class Attended:
    """One attention block as the model ran it: its weights, its values, its output matrix and what came out.

    Σ_h Σ_j weights[h,i,j] · scales[h,i] · (gates[h,i] ⊙ values[h,j]) · out_weight[h]  +  out_bias  =  output[i]
    """

    order: int  # it ran after those with a smaller number
    where: str  # module path of the attention, "" when nobody keeps track
    out: str  # name of the output matrix W_O, as in model.named_parameters(); "" when it is no parameter
    weights: Float[Tensor, "batch head tgt src"]  # α, what multiplied the values
    values: Float[Tensor, "batch head src head_dim"]  # v_h(x_j)
    out_weight: Float[Tensor, "head head_dim model"]  # W_O, one slice per head; of matrices in a row their product
    out_bias: Float[Tensor, " model"] | None  # b_O, owned by no token
    output: Float[Tensor, "batch tgt model"]  # what the model itself computed
    scores: Float[Tensor, "batch head tgt src"] | None = None  # what the softmax got; None where it cannot be told
    scales: Float[Tensor, "batch head tgt"] | None = None  # what α·v is multiplied by before W_O; None: by nothing
    gates: Float[Tensor, "batch head tgt head_dim"] | None = None  # the same where it differs among coordinates
    no_transformed: str | None = None  # why f(x) alone does not exist; None when it does
    tgt: Axis = NO_AXIS
    src: Axis = NO_AXIS
    seen: Sequence[Seen] = field(default=(), repr=False)  # all attention of the pass so far
    followed: Followed | None = field(default=None, repr=False)  # what became of its output, where that was asked for


@dataclass(frozen=True, slots=True)
class Refused:
    """An attention that was seen but cannot be split exactly, and why."""

    order: int
    where: str  # module path of the attention, "" when nobody keeps track
    reason: str
    tgt: tuple[str, ...] = ()
    src: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """One forward pass that is over."""

    output: Any  # what the model itself returned
    refused: list[Refused]
    matrices: Mapping[str, int]  # how often each matrix of the model was used, by its name
    chains: Mapping[str, int]  # output matrices that further matrices follow within their module, and how many
    read_on: Mapping[str, int]  # the same, whatever module the further matrices stand in
    seen: tuple[Seen, ...]
    mixing: frozenset[str]  # modules in which positions may have been brought together, where that was asked for
    followed: tuple[Followed, ...] = ()  # what became of every block, where all of it was asked for


def unordered(attended: Attended) -> str | None:
    """Why the columns or rows of a block cannot be said to be the tokens in their order; None when they can."""
    for axis, what in ((attended.tgt, "queries"), (attended.src, "keys")):
        if axis.reason is not None:
            return f"its {what} {axis.reason}"
        if axis.codes is not None or axis.count < 2:
            continue
        for stream in axis.streams:
            if stream.given and stream.name in axis.names and axis.count in (stream.count, *stream.sizes):
                return (
                    f"its {what} are as many as the positions of '{stream.name}', in an order that cannot be followed"
                )
    return None
