"""Where in a text a key is: position 0, another special token, one of the next positions, punctuation, or elsewhere.

The places do not overlap: a key has the first that fits. Which places are told apart is our choice.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from normlens.studies.batches import Group
from normlens.studies.marks import punctuation

PHRASES = {"special": "special tokens", "punctuation": "punctuation", "other": "other tokens"}


def place_names(positions: int) -> tuple[str, ...]:
    """The places, where the first `positions` of a text are told apart by their number."""
    return ("0", "special", *map(str, range(1, positions)), "punctuation", "other")


def places(group: Group, positions: int) -> Int[np.ndarray, "batch token"]:
    """The place of each token, as its number among `place_names`; -1 for padding."""
    return group.once(f"places {positions}", lambda group: _places(group, positions))


def phrase(place: str) -> str:
    """A place as part of a sentence."""
    return PHRASES.get(place) or f"position {place}"


def _places(group: Group, positions: int) -> Int[np.ndarray, "batch token"]:
    at = np.broadcast_to(np.arange(group.ids.shape[1]), group.ids.shape)
    names = place_names(positions)
    found = np.select(
        [at == 0, group.special, at < positions, punctuation(group)],
        [0, names.index("special"), at + 1, names.index("punctuation")],
        names.index("other"),
    )
    return np.where(group.categories >= 0, found, -1)
