"""Which layers of a model to read when there is no gold: the authors' way.

Room: what a choice is, and the layer whose heads move most. Under AWI it was the best of every model of the authors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from normlens.alignment.soft import ROWS, Position, watch
from normlens.alignment.stream import Pair, shards
from normlens.errors import NormlensError
from normlens.lens import Block, Lens

Place = tuple[Position, int]  # rows, layer
Places = tuple[Place, ...]
SAMPLE = 256  # pairs looked at before the choice is made
BOTH: tuple[Position, Position] = ("input", "output")
NO_PAIR = (
    "There is no sentence pair to choose layers from.\n"
    "  Usual cause: every source or target is empty or too long.\n  Do: check the text, or name the layers."
)


class NothingToChoose(NormlensError):
    """No sentence pair from which layers could be chosen."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The layers to read, each with whose rows they are, and why."""

    places: Places
    why: str
    weights: tuple[float, ...] = ()  # how much each place counts, in any unit; none: alike


def cross_layers(lens: Lens) -> list[int]:
    """The layers whose cross-attention is exact."""
    return [wire.layer for wire in lens.wires if wire.kind == "cross" and wire.exact]


def mean_norms(lens: Lens, sentences: Iterable[Pair]) -> Float[np.ndarray, "layer head"]:
    """Mean ‖α f(x)‖ of each head of the cross-attention over every cell, </s> of both sides included."""
    total: dict[int, np.ndarray] = {}
    cells = 0
    for shard in shards(lens, sentences):
        for batch in shard.batches:
            pairs = shard.pairs(lens, batch)

            def add(block: Block) -> None:
                summed = block.weighted_norms.sum(dim=(0, 2, 3), dtype=torch.float64).cpu().numpy()
                total[block.layer] = total.get(block.layer, 0.0) + summed

            watch(lens, pairs, add, layers=None, fields=("weights", "transformed_norms"))
            sizes = (pairs.encoded.inputs[name].sum(dim=1) for name in ("attention_mask", "decoder_attention_mask"))
            cells += int(torch.dot(*sizes))
    if not cells:
        raise NothingToChoose(NO_PAIR)
    return np.stack([total[layer] / cells for layer in sorted(total)])


def largest_norm(lens: Lens, sentences: Sequence[Pair], positions: Sequence[Position] = ("input",)) -> Choice:
    """The layer with the largest mean norm, heads added up."""
    norms = mean_norms(lens, sentences[:SAMPLE]).sum(axis=1)
    layers = cross_layers(lens)
    best = layers[int(norms.argmax())]
    listed = ", ".join(f"L{layer} {norm:.3f}" for layer, norm in zip(layers, norms, strict=True))
    return Choice(tuple((position, best) for position in positions), f"the largest mean norm ({listed})")


def named(places: Places, weights: Sequence[float] = ()) -> str:
    """AWI L0+L1; AWI L1 & AWO L2; 0.75 AWI L1 & 0.25 AWO L2."""
    said = []
    for position, name in ROWS.items():
        own = [number for number, place in enumerate(places) if place[0] == position]
        mixed = sum(weights) and len(own) < len(places)
        share = f"{sum(weights[number] for number in own) / sum(weights):.2f} " if mixed else ""
        said += [f"{share}{name} {'+'.join(f'L{places[number][1]}' for number in own)}"] if own else []
    return " & ".join(said)
