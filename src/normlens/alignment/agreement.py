"""Which layers of a model to read when there is no gold: those that agree.

Room: choosing, from what the models say of themselves.

A row of a decoder layer is about the word it was given (AWI) or about the word it will write (AWO): lower layers
tend to the one, upper layers to the other. One direction: the two sets of layers that, read in these two ways, agree
most on the links. Two directions: those on which two models, which never saw each other, agree most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np

from normlens.alignment.choice import BOTH, NO_PAIR, SAMPLE, Choice, NothingToChoose, Place, Places, cross_layers, named
from normlens.alignment.extract import shares
from normlens.alignment.soft import Measure, Position, Reading
from normlens.alignment.stream import Maps, Pair, each_map
from normlens.lens import Lens


def self_agreed(
    lens: Lens, sentences: Sequence[Pair], *, measure: Measure, positions: Sequence[Position] = BOTH
) -> Choice:
    """The run of layers read as AWI and another run read as AWO whose strongest links agree on most words."""
    maps = [found for found in _maps(lens, sentences, measure) if found is not None]
    if not maps:
        raise NothingToChoose(NO_PAIR)
    given, written = (_links(maps, measure, _runs(lens, position)) for position in BOTH)
    words = sum(min(array.shape[0], array.shape[1] - 1) for array in (next(iter(found.values())) for found in maps))
    scored = {
        (one, two): len(np.unique(given[one][given[one] == written[two]])) / words
        for one, two in product(given, written)
        if not {layer for _, layer in one} & {layer for _, layer in two}
    }
    if not scored:
        return Choice(tuple((position, cross_layers(lens)[0]) for position in positions[:1]), "there is no other layer")
    one, two = max(scored, key=lambda key: scored[key])
    chosen = tuple(place for place in (*one, *two) if place[0] in positions)
    return Choice(chosen, f"{named(one)} and {named(two)} agree most ({100 * scored[one, two]:.1f} % of the words)")


def most_agreed(
    forward: Lens,
    backward: Lens,
    sentences: Sequence[Pair],
    *,
    measure: Measure,
    positions: Sequence[Position] = BOTH,
    together: bool = False,
) -> tuple[Choice, Choice]:
    """For each direction the layers on whose strongest links both directions agree most.

    A run of layers is found for each way to read rows; where there are two ways, their mean is a third candidate, and
    `together` the only one.
    """
    swapped = [(target, source) for source, target in sentences]
    both = list(zip(_maps(forward, sentences, measure), _maps(backward, swapped, measure), strict=True))
    seen = [(one, other) for one, other in both if one is not None and other is not None]
    ones, others = [one for one, _ in seen], [other for _, other in seen]
    if not ones:
        raise NothingToChoose(NO_PAIR)

    def agreement(one: Places, other: Places) -> float:
        front, back = _links(ones, measure, [one])[one], _links(others, measure, [other])[other]
        return _agreement(front, back)

    best: list[tuple[Places, Places]] = []
    for position in positions:
        front, back = (
            _links(ones, measure, _runs(forward, position)),
            _links(others, measure, _runs(backward, position)),
        )
        best.append(max(product(front, back), key=lambda runs: _agreement(front[runs[0]], back[runs[1]])))
    if len(best) > 1:
        joined = tuple(place for run, _ in best for place in run), tuple(place for _, run in best for place in run)
        best = [joined] if together else [*best, joined]
    scored = {pair: agreement(*pair) for pair in best}
    chosen = max(scored, key=lambda pair: scored[pair])
    rest = "".join(f"; {named(one)} with {named(two)}: {100 * scored[one, two]:.1f} %" for one, two in best[:-1])
    why = f"the two directions agree most there ({100 * scored[chosen]:.1f} % of the links{rest})"
    return Choice(chosen[0], why), Choice(chosen[1], why)


def _maps(lens: Lens, pairs: Sequence[Pair], measure: Measure) -> list[Maps | None]:
    readings = [Reading(measure, position, layer) for position in BOTH for layer in cross_layers(lens)]
    return list(each_map(lens, pairs[:SAMPLE], readings))


def _runs(lens: Lens, position: Position) -> list[Places]:
    places: list[Place] = [(position, layer) for layer in cross_layers(lens)]
    return [tuple(places[i:j]) for i in range(len(places)) for j in range(i + 1, len(places) + 1)]


def _links(maps: Sequence[Maps], measure: Measure, runs: Iterable[Places]) -> dict[Places, np.ndarray]:
    """The strongest partner of every word of the sample, words numbered through."""
    found: dict[Places, np.ndarray] = {}
    for run in runs:
        before, links = 0, []
        for one in maps:
            soft = shares([one[Reading(measure, *place)] for place in run])
            links.append(soft.argmax(axis=1) + before)
            before += soft.shape[1]
        found[run] = np.concatenate(links)
    return found


def _agreement(forward: np.ndarray, backward: np.ndarray) -> float:
    """Twice the links in both, over the links of either."""
    same = int((backward[forward] == np.arange(len(forward))).sum())
    return 2 * same / max(1, len(forward) + len(backward))
