"""Word links of one sentence pair, (source word, target word) from 0, and two directions made one.

Each direction of an aligner finds other links. Their intersection is precise, their union is complete, and the
heuristics of Koehn et al. (2005) grow the one towards the other:

    grow-diag   from the intersection, add links of the union that touch a link already there, diagonals included,
                as long as they link a word that has no link
    final-and   then add what is left of either direction where both words have none
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from normlens.errors import NormlensError

Link = tuple[int, int]
Links = frozenset[tuple[int, int]]

# In (target, source), in the order in which the published heuristic tries them.
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


class LinksError(NormlensError):
    """Links, or a file of them, that cannot be what they claim to be."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """The links of one sentence pair, ascending, each with the confidence in it."""

    links: tuple[tuple[int, int], ...]
    confidence: tuple[float, ...]  # from 0 to 1, one per link

    def __post_init__(self) -> None:
        if len(self.links) != len(self.confidence):
            raise LinksError(
                f"An alignment of {len(self.links)} links has {len(self.confidence)} confidences.",
                do="give one to each link; Alignment.of({(0, 0): 0.9}) keeps them together.",
            )
        if any(one >= other for one, other in zip(self.links, self.links[1:], strict=False)):
            raise LinksError(
                "The links of an alignment do not ascend, or one stands twice.",
                do="let Alignment.of sort them.",
            )

    @staticmethod
    def of(links: Mapping[tuple[int, int], float] | Links) -> Alignment:
        """From links with their confidences, or from links alone, which are then taken as certain."""
        ordered = tuple(sorted(links))
        return Alignment(ordered, tuple(float(links[one]) if isinstance(links, Mapping) else 1.0 for one in ordered))

    @property
    def hard(self) -> Links:
        """The links alone."""
        return frozenset(self.links)

    def above(self, min_confidence: float) -> Alignment:
        """The links of at least this confidence."""
        kept = zip(self.links, self.confidence, strict=True)
        return Alignment.of({link: confidence for link, confidence in kept if confidence >= min_confidence})

    def reversed(self) -> Alignment:
        """The same links from the target's side."""
        return Alignment.of(
            {(target, source): sure for (source, target), sure in zip(self.links, self.confidence, strict=True)}
        )


NONE = Alignment((), ())


def reverse(links: Links) -> Links:
    """(source, target) as (target, source)."""
    return frozenset((target, source) for source, target in links)


def intersection(forward: Links, backward: Links) -> Links:
    """What both directions say. Links of both are (source, target)."""
    return forward & backward


def union(forward: Links, backward: Links) -> Links:
    """What either direction says."""
    return forward | backward


def grow_diag(forward: Links, backward: Links) -> Links:
    """The intersection, grown into the union through neighbours."""
    return frozenset(_grown(forward & backward, forward | backward))


def grow_diag_final_and(forward: Links, backward: Links) -> Links:
    """grow_diag, and then links between words still without any: first those of source → target, then the others."""
    links = _grown(forward & backward, forward | backward)
    sources, targets = {source for source, _ in links}, {target for _, target in links}
    for direction in (forward, backward):
        for source, target in sorted(direction, key=_by_target):
            if source not in sources and target not in targets:
                links.add((source, target))
                sources.add(source)
                targets.add(target)
    return frozenset(links)


SYMMETRISATIONS: dict[str, Callable[[Links, Links], Links]] = {
    "intersection": intersection,
    "union": union,
    "grow-diag": grow_diag,
    "grow-diag-final-and": grow_diag_final_and,
}


def symmetrised(forward: Alignment, backward: Alignment, how: str = "grow-diag-final-and") -> Alignment:
    """Two directions as one; the confidence in a link is the mean of both, 0 where a direction does not have it."""
    if how not in SYMMETRISATIONS:
        raise LinksError(
            f"There is no symmetrisation '{how}'.",
            do=f"choose one of {', '.join(SYMMETRISATIONS)}.",
        )
    one, other = (dict(zip(side.links, side.confidence, strict=True)) for side in (forward, backward))
    links = SYMMETRISATIONS[how](forward.hard, backward.hard)
    return Alignment.of({link: (one.get(link, 0.0) + other.get(link, 0.0)) / 2 for link in links})


def _grown(links: Links, allowed: Links) -> set[tuple[int, int]]:
    """Passes over the links by target, then source, until one adds nothing.

    A neighbour refused once stays refused, since no word loses its links, so each link is looked around only once.
    """
    grown = set(links)
    sources, targets = {source for source, _ in grown}, {target for _, target in grown}
    later = [_by_target(link) for link in grown]
    while later:
        now, later = later, []
        heapify(now)
        while now:
            here = heappop(now)
            for down, right in NEIGHBOURS:
                target, source = there = here[0] + down, here[1] + right
                if (source, target) not in allowed or (source in sources and target in targets):
                    continue
                grown.add((source, target))
                sources.add(source)
                targets.add(target)
                if there > here:
                    heappush(now, there)
                else:
                    later.append(there)
    return grown


def _by_target(link: tuple[int, int]) -> tuple[int, int]:
    return link[1], link[0]
