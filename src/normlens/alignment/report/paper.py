"""AER in percent that Kobayashi et al. (2020) published, to read beside one's own; their data and models are others."""

from __future__ import annotations

from dataclasses import dataclass

SETTING = (
    "German to English, 508 sentence pairs with gold links (Vilar et al., 2006). First version: 6+6 layers with 8 "
    "heads, trained on WMT16. Later code: 6+6 layers with 4 heads, trained on Europarl, lower-cased, five seeds."
)
SOURCE = "the first version of the paper, arXiv 2004.10102v1, Table 3"
LATER = "means over five seeds, printed by the code that the authors published with the final version"


@dataclass(frozen=True, slots=True)
class Printed:
    """One printed number, by weights and by norms."""

    what: str
    weights: float
    norms: float


@dataclass(frozen=True, slots=True)
class Seeds:
    """The five-seed means under AWI or AWO."""

    mean: Printed
    best: Printed
    largest: float  # the layer of largest mean norm
    rho: float  # between the error of a head and its mean norm


TABLE_3 = (
    ("attention weights, best layer", 51.9),
    ("attention weights, mean of layers", 81.4),
    ("norms, best layer", 28.3),
    ("norms, mean of layers", 61.6),
    ("SmoothGrad of Li et al. (2016)", 36.4),
    ("SmoothGrad of Ding et al. (2019)", 36.4),
    ("fast_align, as reported by Zenkel et al. (2019)", 28.4),
    ("GIZA++, as reported by Zenkel et al. (2019)", 21.0),
)
SEEDS = {
    "AWI": Seeds(
        mean=Printed("mean of layers", 68.54, 60.45),
        best=Printed("best layer", 29.77, 24.98),
        largest=24.98,
        rho=-0.436,
    ),
    "AWO": Seeds(
        mean=Printed("mean of layers", 68.43, 62.86), best=Printed("best layer", 47.74, 41.36), largest=83.03, rho=0.556
    ),
}
