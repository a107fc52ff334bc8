"""What the studies of one corpus found, as plain numbers.

Room: records between counting and showing. No model, no counting, no pictures.

Axes: `category layer head`. Models whose layers differ in their number of heads leave NaN where there is no head, and a
category that no token fell into has NaN and a count of 0; nothing else is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from normlens.signature import Signature


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Mean, standard deviation, coefficient of variation (deviation / mean) and range of some lengths, cell by cell."""

    count: Int[np.ndarray, "*cell"]
    mean: Float[np.ndarray, "*cell"]
    deviation: Float[np.ndarray, "*cell"]
    low: Float[np.ndarray, "*cell"]
    high: Float[np.ndarray, "*cell"]

    @property
    def variation(self) -> Float[np.ndarray, "*cell"]:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.mean > 0, self.deviation / self.mean, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class Dispersion:
    """How much ‖f(x)‖ differs from token to token: Tables 1 and 4, Figure 9 of the 2020 paper."""

    kind: str  # "self", "encoder", "decoder" or "cross"
    layers: tuple[int, ...]  # numbers of the layers, from 0
    transformed: Spread  # ‖f(x)‖, (layer, head)
    inputs: Spread | None  # ‖x‖ of what the layer is given, (layer,); None when the model does not show it
    singular: Float[np.ndarray, "layer head value"] | None  # singular values of f as a linear map, descending
    notes: tuple[str, ...]  # what is missing, and why


@dataclass(frozen=True, slots=True, eq=False)
class Categories:
    """What each category of tokens draws (α) and gives (‖αf‖): Figures 3, 4, 10, 11, 12."""

    kind: str
    names: tuple[str, ...]
    layers: tuple[int, ...]
    sequences: Int[np.ndarray, " category"]  # sequences with at least one token of the category
    total: int  # all sequences
    tokens: Int[np.ndarray, " category"]  # tokens of the category in the corpus
    weights: Float[np.ndarray, "category layer head"]  # Σ over its tokens of α; mean over queries, then sequences
    norms: Float[np.ndarray, "category layer head"]  # the same of ‖αf‖
    transformed: Float[np.ndarray, "category layer head"]  # mean ‖f‖ of its tokens, per sequence, then over sequences
    loose: dict[str, int]  # special tokens that no category but "other" took, and how many of each

    @property
    def weights_by_layer(self) -> Float[np.ndarray, "category layer"]:
        """Figure 3a: mean over heads; the categories add up to 1 in every layer."""
        return np.nanmean(self.weights, axis=-1)

    @property
    def norms_by_layer(self) -> Float[np.ndarray, "category layer"]:
        """Figure 3b: mean over heads."""
        return np.nanmean(self.norms, axis=-1)


@dataclass(frozen=True, slots=True)
class Constant:
    """Heads of one layer whose ρ is not defined for a category, since one side is the same in all its pairs."""

    category: int
    layer: int  # its number
    heads: int
    side: str  # "‖f(x)‖" or "α"


@dataclass(frozen=True, slots=True, eq=False)
class Correlation:
    """Spearman's ρ between α and ‖f‖: Table 2 and Figure 5."""

    kind: str
    names: tuple[str, ...]
    layers: tuple[int, ...]
    pairs: Int[np.ndarray, " category"]  # (layer, head, query, key) pairs
    rho: Float[np.ndarray, " category"]  # all heads and layers pooled; NaN when one side is constant or absent
    rho_heads: Float[np.ndarray, "category layer head"]
    sample_rate: float  # share of the pairs that were drawn for Figure 5
    sample_category: Int[np.ndarray, " point"]
    sample_weight: Float[np.ndarray, " point"]  # α
    sample_norm: Float[np.ndarray, " point"]  # ‖f‖
    constant: tuple[Constant, ...]  # why ρ of some heads is NaN though they have pairs
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Frequency:
    """How α and ‖f‖ go with the frequency rank of a token: Figure 6."""

    kind: str
    source: str  # where the ranks come from
    names: tuple[str, ...]  # of the categories
    occurrences: int  # tokens counted
    excluded: int  # tokens left out because they have no rank
    rho_weight: (
        float  # Spearman(rank, α) over occurrences; α: mean over heads, layers and the queries that see the token
    )
    rho_norm: float  # Spearman(rank, ‖f‖)
    plain: int  # occurrences that are no special tokens
    rho_weight_plain: float  # over those alone
    rho_norm_plain: float
    types: int
    rho_weight_types: float  # the same with one point per type
    rho_norm_types: float
    point_rank: Int[np.ndarray, " point"]  # a seeded sample of occurrences, to draw
    point_weight: Float[np.ndarray, " point"]
    point_norm: Float[np.ndarray, " point"]
    point_category: Int[np.ndarray, " point"]
    point_special: Bool[np.ndarray, " point"]
    type_token: tuple[str, ...]  # one entry per type, most frequent first
    type_rank: Int[np.ndarray, " type"]
    type_count: Int[np.ndarray, " type"]
    type_weight: Float[np.ndarray, " type"]
    type_norm: Float[np.ndarray, " type"]


Result = Dispersion | Categories | Correlation | Frequency


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything the studies found for one model and one corpus; what was not asked for is an empty dict."""

    model: str
    corpus: str
    items: int
    tokens: int  # real tokens that were looked at, all sides
    squares: int  # Σ over sequences of n², the number of (query, key) pairs of self-attention
    mean_length: float
    length: int  # items were cut to this many tokens
    causal: tuple[str, ...]  # kinds whose queries see only earlier keys
    error: float  # how exactly the parts rebuilt the blocks, the worst of the whole run
    notes: tuple[str, ...]  # what was skipped or cut, and why
    signature: Signature
    dispersion: dict[str, Dispersion]  # by kind
    categories: dict[str, Categories]
    correlation: dict[str, Correlation]
    frequency: dict[str, Frequency]
