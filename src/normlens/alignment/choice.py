"""Which layers of a model to read when there is no gold.

Room: choosing, from what the models say of themselves.

One direction: the layer whose heads move most. Under AWI this was the best layer of every model the 2020 authors
trained. Two directions: the layers on which the two models, which never saw each other, agree most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from jaxtyping import Float

from normlens.alignment.extract import shares
from normlens.alignment.soft import Measure, Position, Reading, watch
from normlens.alignment.stream import Maps, Pair, each_map, shards
from normlens.errors import NormlensError
from normlens.lens import Block, Lens

SAMPLE = 256  # pairs looked at before the choice is made
NO_PAIR = (
    "There is no sentence pair to choose layers from.\n"
    "  Usual cause: every source or target is empty or too long.\n  Do: check the text, or name the layers."
)


class NothingToChoose(NormlensError):
    """No sentence pair from which layers could be chosen."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The layers to read, and why."""

    layers: tuple[int, ...]
    why: str


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


def largest_norm(lens: Lens, sentences: Sequence[Pair]) -> Choice:
    """The layer with the largest mean norm, heads added up."""
    norms = mean_norms(lens, sentences[:SAMPLE]).sum(axis=1)
    layers = cross_layers(lens)
    best = int(norms.argmax())
    listed = ", ".join(f"L{layer} {norm:.3f}" for layer, norm in zip(layers, norms, strict=True))
    return Choice((layers[best],), f"the largest mean norm ({listed})")


def most_agreed(
    forward: Lens, backward: Lens, sentences: Sequence[Pair], *, measure: Measure, position: Position
) -> tuple[Choice, Choice]:
    """For each direction the run of layers on whose strongest links both directions agree most."""
    sample = sentences[:SAMPLE]
    both = [
        maps
        for maps in zip(
            _maps(forward, sample, measure, position),
            _maps(backward, [(target, source) for source, target in sample], measure, position),
            strict=True,
        )
        if None not in maps
    ]
    if not both:
        raise NothingToChoose(NO_PAIR)
    links = [
        {run: [_best(maps[side], run) for maps in both] for run in _runs(cross_layers(lens))}
        for side, lens in enumerate((forward, backward))
    ]
    scored = {(one, two): _agreement(links[0][one], links[1][two]) for one, two in product(links[0], links[1])}
    one, two = max(scored, key=lambda key: scored[key])
    why = f"the two directions agree most there ({100 * scored[one, two]:.1f} % of the links)"
    return Choice(one, why), Choice(two, why)


def _maps(lens: Lens, pairs: Sequence[Pair], measure: Measure, position: Position) -> Iterator[Maps | None]:
    return each_map(lens, pairs, [Reading(measure, position, layer) for layer in cross_layers(lens)])


def _runs(layers: Sequence[int]) -> list[tuple[int, ...]]:
    return [tuple(layers[i:j]) for i in range(len(layers)) for j in range(i + 1, len(layers) + 1)]


def _best(maps: Maps | None, run: Sequence[int]) -> np.ndarray:
    assert maps is not None
    return shares([array for reading, array in maps.items() if reading.layer in run]).argmax(axis=1)


def _agreement(forward: Sequence[np.ndarray], backward: Sequence[np.ndarray]) -> float:
    """Twice the links in both, over the links of either."""
    same = sum(int((back[front] == np.arange(len(front))).sum()) for front, back in zip(forward, backward, strict=True))
    return 2 * same / max(1, sum(len(front) + len(back) for front, back in zip(forward, backward, strict=True)))
