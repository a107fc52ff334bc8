"""Which layers of a model to read when there is no gold: those that agree, or that of the largest norm.

A row of a decoder layer is about the word it was given (AWI) or about the word it will write (AWO): lower layers
tend to the one, upper layers to the other. One direction: the two sets of layers that, read in these two ways, agree
most on the links. Two directions: those on which two models, which never saw each other, agree most. The layer of the
largest norm, under AWI, was the best of every model of the authors of the 2020 paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from jaxtyping import Float

from normlens.alignment.aligner import Place, Places, named, shares
from normlens.alignment.maps import ROWS, Maps, Measure, Position, Reading, each_map, shards, watch
from normlens.alignment.words import Pair
from normlens.errors import NormlensError
from normlens.lens import Block, Lens

SAMPLE = 256  # pairs that the choice is made from
BOTH: tuple[Position, Position] = ("input", "output")
FEW = 20  # pairs
LITTLE = 0.25  # of the links: weak models have more on text that fits, strong ones less on text that does not


class NothingToChoose(NormlensError):
    """No sentence pair from which layers could be chosen."""

    def __init__(self) -> None:
        super().__init__(
            "There is no sentence pair to choose layers from.",
            cause="every source or target is empty or too long.",
            do="check the text, or name the layers: --layers 1 (layers=1 in Python).",
        )


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
        raise NothingToChoose
    return np.stack([total[layer] / cells for layer in sorted(total)])


def largest_norm(lens: Lens, sentences: Sequence[Pair], positions: Sequence[Position] = ("input",)) -> Choice:
    """The layer with the largest mean norm, heads added up."""
    norms = mean_norms(lens, sentences[:SAMPLE]).sum(axis=1)
    layers = cross_layers(lens)
    best = layers[int(norms.argmax())]
    listed = ", ".join(f"L{layer} {norm:.3f}" for layer, norm in zip(layers, norms, strict=True))
    return Choice(tuple((position, best) for position in positions), f"which has the largest mean norm ({listed})")


def self_agreed(
    lens: Lens, sentences: Sequence[Pair], *, measure: Measure, positions: Sequence[Position] = BOTH
) -> Choice:
    """The run of layers read as AWI and another run read as AWO whose strongest links agree on most words."""
    maps = [soft for soft in _maps(lens, sentences, measure) if soft is not None]
    if not maps:
        raise NothingToChoose
    given, written = (_links(maps, measure, _runs(lens, position)) for position in BOTH)
    words = sum(min(array.shape[0], array.shape[1] - 1) for array in (next(iter(soft.values())) for soft in maps))
    scored = {
        (one, two): len(np.unique(given[one][given[one] == written[two]])) / words
        for one, two in product(given, written)
        if not {layer for _, layer in one} & {layer for _, layer in two}
    }
    if not scored:
        return Choice(
            tuple((position, cross_layers(lens)[0]) for position in positions[:1]), "which has no other layer"
        )
    one, two = max(scored, key=lambda key: scored[key])
    chosen = tuple(place for place in (*one, *two) if place[0] in positions)
    share = f"{100 * scored[one, two]:.1f} % of the words of {len(maps)} pairs{_doubt(None, len(maps))}"
    return Choice(chosen, f"where {named(one)} and {named(two)} agree most ({share})")


def most_agreed(
    forward: Lens,
    backward: Lens,
    sentences: Sequence[Pair],
    *,
    measure: Measure,
    positions: Sequence[Position] = BOTH,
    own: int | None = None,
) -> tuple[Choice, Choice]:
    """For each direction the run of layers on whose strongest links both directions agree most.

    There is one for AWI and one for AWO. Where both are asked for, their mean is read, weighted by the agreement, so
    that rows which are not about the word count for little. The first `own` sentences are the user's: whether source
    and target may be swapped is asked of these alone.
    """
    swapped = [(target, source) for source, target in sentences]
    both = list(zip(_maps(forward, sentences, measure), _maps(backward, swapped, measure), strict=True))
    seen = [(one, other) for one, other in both if one is not None and other is not None]
    if not seen:
        raise NothingToChoose
    mine = seen[: sum(one is not None and other is not None for one, other in both[:own])]
    ahead, behind = (sum(len(next(iter(pair[side].values()))) for pair in mine) for side in (0, 1))
    runs: list[tuple[Places, Places]] = []
    agreed: list[float] = []
    among_own: list[float] = []
    for position in positions:
        front = _links([one for one, _ in seen], measure, _runs(forward, position))
        back = _links([other for _, other in seen], measure, _runs(backward, position))
        scored = {pair: _agreement(front[pair[0]], back[pair[1]]) for pair in product(front, back)}
        runs.append(max(scored, key=lambda pair: scored[pair]))
        agreed.append(scored[runs[-1]])
        among_own.append(_agreement(front[runs[-1][0]][:ahead], back[runs[-1][1]][:behind]))
    listed = ", ".join(f"{ROWS[rows]} {100 * share:.1f} %" for rows, share in zip(positions, agreed, strict=True))
    doubt = _doubt(None, len(seen)) or _doubt(max(among_own) if len(mine) >= FEW else None, len(seen))
    why = f"where both directions agree most (links of {len(seen)} pairs: {listed}{doubt})"
    return _mixed([one for one, _ in runs], agreed, why), _mixed([two for _, two in runs], agreed, why)


def _doubt(agreed: float | None, pairs: int) -> str:
    if pairs < FEW:
        return "; with so few pairs the choice is uncertain"
    if agreed is not None and agreed < LITTLE:
        return (
            f"; in your text {100 * agreed:.1f} %, so little that source and target may be swapped, or not be"
            " translations of each other"
        )
    return ""


def _mixed(runs: Sequence[Places], agreed: Sequence[float], why: str) -> Choice:
    weighted = [(place, share / len(run)) for run, share in zip(runs, agreed, strict=True) for place in run]
    return Choice(tuple(place for place, _ in weighted), why, tuple(weight for _, weight in weighted))


def _maps(lens: Lens, pairs: Sequence[Pair], measure: Measure) -> list[Maps | None]:
    readings = [Reading(measure, position, layer) for position in BOTH for layer in cross_layers(lens)]
    return list(each_map(lens, pairs[:SAMPLE], readings))


def _runs(lens: Lens, position: Position) -> list[Places]:
    places: list[Place] = [(position, layer) for layer in cross_layers(lens)]
    return [tuple(places[i:j]) for i in range(len(places)) for j in range(i + 1, len(places) + 1)]


def _links(maps: Sequence[Maps], measure: Measure, runs: Iterable[Places]) -> dict[Places, np.ndarray]:
    """The strongest partner of every word of the sample, words numbered through."""
    partners: dict[Places, np.ndarray] = {}
    for run in runs:
        before, links = 0, []
        for one in maps:
            soft = shares([one[Reading(measure, *place)] for place in run])
            links.append(soft.argmax(axis=1) + before)
            before += soft.shape[1]
        partners[run] = np.concatenate(links)
    return partners


def _agreement(forward: np.ndarray, backward: np.ndarray) -> float:
    """Twice the links in both, over the links of either."""
    same = int((backward[forward] == np.arange(len(forward))).sum())
    return 2 * same / max(1, len(forward) + len(backward))
