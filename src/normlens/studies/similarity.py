"""Which tokens does a head make alike? After Halevi et al. (2025), from their abstract; every rule here is ours.

z_i = Σ_j α_ij v(x_j) is what a head writes for token i. The context similarity matrix of the head holds z_i · z_j. Its
high pairs are asked four questions: are they copies of a token, how far apart are they, are they of one sentence, and
does one token take part in most of them? Beside it, what separators receive and contribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

import numpy as np
from jaxtyping import Float

from normlens import algebra
from normlens.exhibits import Section
from normlens.statistics import Moments, Ranks, Statistic
from normlens.studies.high_pairs import Pairs, Rule, Unit, distinct, dominant, high_pairs, pairs_of, shuffled
from normlens.studies.high_pairs import similarities as similarities_of
from normlens.studies.marks import sentence_ends
from normlens.studies.per_head import PerHead
from normlens.studies.request import StudyError
from normlens.studies.run import spelled
from normlens.studies.seen import Facts, Seen
from normlens.studies.similarity_section import exhibits, per_head, sentences
from normlens.studies.study import Needs, Study
from normlens.studies.sums import Sums, padded

SPACES = {"heads": "head_vectors", "output": "head_outputs"}
CHOICES = {
    "space": tuple(SPACES),
    "measure": ("product", "cosine"),
    "rule": get_args(Rule),
    "unit": get_args(Unit),
}
DISTANCES = 1 << 12  # bins of distance in a head: exact up to so many tokens
VOCABULARY = 1 << 24  # token ids are counted one by one


@dataclass(frozen=True, slots=True, eq=False)
class Similarity:
    """What the high pairs of every head are, and what separators receive; NaN where there is none."""

    kind: str
    layers: tuple[int, ...]
    texts: int
    near: int
    pairs: float  # that may be high
    same_token: float  # share of them that are two copies of a token
    same_sentence: float  # share of them within a sentence
    distance: float  # their mean distance
    uniform_distance: float  # (n + 1) / 3, mean over the same pairs
    near_share: float  # share of them at most `near` tokens apart
    high: Float[np.ndarray, "layer head"]  # number of high pairs
    high_same_token: Float[np.ndarray, "layer head"]  # shares of the high pairs
    high_same_sentence: Float[np.ndarray, "layer head"]
    high_expected_sentence: Float[np.ndarray, "layer head"]  # what equally distant pairs have
    high_distance: Float[np.ndarray, "layer head"]
    high_median: Float[np.ndarray, "layer head"]
    high_near: Float[np.ndarray, "layer head"]
    recall: Float[np.ndarray, "layer head"]  # share of all copies that are high pairs
    dominant_share: Float[
        np.ndarray, "layer head"
    ]  # share of the high pairs that touch the dominant token, mean of texts
    shuffled_share: Float[np.ndarray, "layer head"]
    dominant_token: tuple[tuple[str | None, ...], ...]  # by layer and head: the one of most texts
    dominant_texts: Float[np.ndarray, "layer head"]  # share of the texts in which it is that token
    distinct: Float[np.ndarray, " layer"]  # dominant tokens of a text that differ between heads
    shuffled_distinct: Float[np.ndarray, " layer"]
    separator_tokens: Float[np.ndarray, " separator"]  # share of all tokens; sentence ends, then special separators
    separators: Mapping[str, Float[np.ndarray, "layer head separator"]]  # by weights and by norms: share received

    @property
    def repetition_lift(self) -> Float[np.ndarray, "layer head"]:
        """How many times as often as among all pairs a high pair is two copies of a token."""
        return _ratio(self.high_same_token, self.same_token)

    @property
    def same_sentence_lift(self) -> Float[np.ndarray, "layer head"]:
        return _ratio(self.high_same_sentence, self.same_sentence)

    @property
    def same_sentence_lift_at_distance(self) -> Float[np.ndarray, "layer head"]:
        """The same against pairs that are as far apart, so that nearness alone gives 1."""
        return _ratio(self.high_same_sentence, self.high_expected_sentence)

    def by_layer(self, values: Float[np.ndarray, "layer head"]) -> Float[np.ndarray, " layer"]:
        """Mean over all high pairs of a layer: heads pooled."""
        return _ratio(np.nansum(values * self.high, axis=1), np.nansum(self.high, axis=1))


@dataclass(frozen=True)
class SimilarityStudy(Study[Similarity]):
    """The study, and every choice it leaves open."""

    space: str = "heads"  # z before the output matrix, or Σ_j α f(x_j) after it
    measure: str = "product"  # z_i · z_j, or their cosine
    rule: str = "top"  # what makes a pair high; see `high_pairs`
    threshold: float = 0.01
    special: bool = False  # whether special tokens may be in a pair
    unit: str = "type"  # whether the copies of a token are one token when it is dominant
    near: int = 8  # tokens apart that are called near

    name, title = "similarity", "Which tokens does each head make alike?"
    paper = "Halevi et al. (2025), from the abstract; thresholds, nulls and rules are ours"
    headlines = 2
    question = (
        "Halevi et al. compare the vectors that a head writes for two tokens. Of a 12-layer BERT they report that "
        "attention gathers on separators in the last layers; that some heads pair copies of a token; that similar "
        "pairs are far apart in the first layers and of one sentence in the last; that each head builds its pairs "
        "around one token of its own."
    )
    caution = (
        "only the abstract of the paper was at hand. What a high pair is, how sentences end, what chance gives and "
        "when a claim holds are our rules. A scalar product is large for long vectors, whatever their direction."
    )
    causal = (
        "This attention is causal: a query sees only itself and earlier tokens. Two queries then average over "
        "different keys, and neighbours share almost all of theirs."
    )
    method = (
        "z_i = Σ_j α_ij v(x_j) is the vector of a head before the output matrix. The similarity of two tokens is z_i · "
        "z_j. Pairs are i < j, without special tokens and padding. By default the pairs at or above the largest 1 % of "
        "their own matrix (one head, one text) are high. Other choices are parameters of SimilarityStudy: the space "
        "after the output matrix, the cosine, an absolute threshold, a share of the largest, the mean plus k standard "
        "deviations.",
        "Repetition: the share of high pairs that are two copies of one token id, divided by that share of all pairs "
        "(lift); recall is the share of all copies that are high. Same sentence: the same division for pairs of one "
        "sentence; a sentence ends after . ! ? … and after a special token. Since near pairs share a sentence more "
        "often, the share is also divided by that of pairs equally far apart in the same text.",
        "Distance: the mean of j − i over the high pairs, beside the mean of all pairs and (n + 1) / 3, the mean of "
        "two tokens placed anywhere among n. A layer is the mean over the high pairs of all its heads. First and last "
        "layers are the first and the last third.",
        "The dominant token of a head in a text takes part in the most high pairs; copies of a token are one token. "
        "For the null, as many pairs are drawn at random for every head and text.",
        "Separators: tokens that end a sentence, and special tokens that end a text ([SEP], </s>). The share of α is "
        "the mean over queries, then texts; the share of ‖αf(x)‖ is that of the sum over queries.",
    )

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise StudyError(
                    f"no {name} '{getattr(self, name)}' in the study 'similarity'.",
                    do=f"choose {' or '.join(known)}.",
                )
        if self.rule == "top" and not 0 < self.threshold <= 1:
            raise StudyError(
                f"threshold must be above 0 and at most 1 with the rule 'top' (got {self.threshold:g}).",
                do="give the share of pairs that are high, such as 0.01.",
            )

    @property
    def needs(self) -> Needs:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Needs(quantities=(SPACES[self.space],))

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        pairs = seen.tgt.once(
            f"pairs of {self.name}", lambda group: pairs_of(group, special=self.special, unit=cast(Unit, self.unit))
        )
        products = algebra.similarity(seen[SPACES[self.space]])
        values = similarities_of(products, pairs, cosine=self.measure == "cosine")
        high = high_pairs(values, rule=cast(Rule, self.rule), threshold=self.threshold)
        where, distance = (high.batch, high.pair), pairs.distance[high.pair]
        features = [
            high.summed(),
            high.summed(pairs.same_token[where]),
            high.summed(pairs.same_sentence[where]),
            high.summed(pairs.same_sentence_at_distance[where]),
            high.summed(distance),
            high.summed(distance <= self.near),
        ]
        counts = features[0].astype(np.int64)
        chance = seen.tgt.once(
            f"{self.name} by chance {counts.tobytes()!r}",
            lambda group: dominant(pairs, shuffled(pairs, high, group, seen.run.seed)),
        )
        tokens, share = dominant(pairs, high)
        there = tokens >= 0
        heads = np.broadcast_to(np.arange(counts.shape[1]), counts.shape)
        ids = np.take_along_axis(pairs.ids, np.maximum(tokens, 0), axis=1)
        shares = np.stack([share, chance[1]], axis=-1)
        return {
            "pairs": Moments.of(self._features(pairs)),
            "high": Moments.of(np.stack(features, axis=-1)),
            "distances": Ranks.of(high.head, distance, size=(1024, DISTANCES)),
            "dominant": Moments.of(np.nan_to_num(shares), np.isfinite(shares)),
            "dominant_tokens": Ranks.of(heads[there], ids[there], size=(1024, VOCABULARY)),
            "distinct": Moments.of(np.stack([distinct(tokens), distinct(chance[0])], axis=-1)[there.any(axis=1)]),
            **_separators(seen),
        }

    def _features(self, pairs: Pairs) -> Float[np.ndarray, "batch feature"]:
        """Of all pairs what is counted of the high ones, and the distance that pairs placed anywhere would have."""
        number, distance = pairs.allowed.sum(axis=1), pairs.distance
        columns = [
            number,
            pairs.same_token.sum(axis=1),
            pairs.same_sentence.sum(axis=1),
            pairs.allowed @ distance,
            pairs.allowed @ (distance <= self.near).astype(np.int64),
            number * (pairs.tokens + 1) / 3,
        ]
        return np.stack(columns, axis=-1).astype(np.float64)

    def result(self, sums: Sums, run: Facts) -> Similarity:
        layers, moments = sums.by_layer("pairs")
        all_pairs = _totals(moments[0], but=5)
        base = _ratio(all_pairs[1:], all_pairs[0])
        high = [_totals(m, but=3) for m in sums.by_layer("high")[1]]
        shares = padded([_ratio(h[:, 1:], h[:, :1]) for h in high])
        shares_dominant = padded([_defined(m) for m in sums.by_layer("dominant")[1]])
        tokens = [
            _most_frequent(t, len(h), run) for t, h in zip(sums.by_layer("dominant_tokens")[1], high, strict=True)
        ]
        unlike = np.array([_defined(m) for m in sums.by_layer("distinct")[1]])
        separators = padded([_defined(m) for m in sums.by_layer("separators")[1]])
        return Similarity(
            kind=sums.kind,
            layers=layers,
            texts=int(moments[0].count[0]),
            near=self.near,
            pairs=float(all_pairs[0]),
            same_token=float(base[0]),
            same_sentence=float(base[1]),
            distance=float(base[2]),
            near_share=float(base[3]),
            uniform_distance=float(base[4]),
            high=padded([h[:, 0] for h in high]),
            high_same_token=shares[..., 0],
            high_same_sentence=shares[..., 1],
            high_expected_sentence=shares[..., 2],
            high_distance=shares[..., 3],
            high_near=shares[..., 4],
            high_median=padded([_medians(t, len(h)) for t, h in zip(sums.by_layer("distances")[1], high, strict=True)]),
            recall=padded([_ratio(h[:, 1], all_pairs[1]) for h in high]),
            dominant_share=shares_dominant[..., 0],
            shuffled_share=shares_dominant[..., 1],
            dominant_token=tuple(names for names, _ in tokens),
            dominant_texts=padded([share for _, share in tokens]),
            distinct=unlike[:, 0],
            shuffled_distinct=unlike[:, 1],
            separator_tokens=sums.by_layer("separator_tokens")[1][0].mean,
            separators={"weights": separators[..., 0], "norms": separators[..., 1]},
        )

    def per_head(self, result: Similarity) -> PerHead:
        return per_head(result)

    def section(self, result: Similarity, run: Facts) -> Section:
        return Section(sentences(result), exhibits(result))


def separator_ids(tokenizer: Any | None) -> list[int]:
    """The special tokens that end a text or a part of it, and begin none."""
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    ends, begins = (
        {getattr(tokenizer, f"{name}_token_id", None) for name in names} for names in (("sep", "eos"), ("bos", "cls"))
    )
    return sorted(number for number in ends - begins if number is not None)


def _separators(seen: Seen) -> dict[str, Statistic]:
    """What sentence ends and special separators receive of the attention, and their share of the contributions."""
    special = separator_ids(seen.run.lens.subject.tokenizer if seen.run.lens is not None else None)
    src = seen.src
    members = np.stack([sentence_ends(src), src.special & np.isin(src.ids, special)], axis=-1).astype(np.float64)
    weights = seen.attention.sum(dim=2).cpu().double().numpy() / seen.queries[:, None, None]
    norms = seen.received_norms(np.float64)
    total = norms.sum(axis=-1, keepdims=True)
    norms = np.divide(norms, total, out=np.full_like(norms, np.nan), where=total > 0)
    shares = np.stack([weights @ members, norms @ members], axis=-1)
    return {
        "separators": Moments.of(np.nan_to_num(shares), np.isfinite(shares)),
        "separator_tokens": Moments.of(members.sum(axis=1) / src.lengths[:, None]),
    }


def _most_frequent(table: Ranks, heads: int, run: Facts) -> tuple[tuple[str | None, ...], Float[np.ndarray, " head"]]:
    """For each head the token that is dominant in most texts (the lowest id of equals), and its share of the texts."""
    names: list[str | None] = [None] * heads
    shares = np.full(heads, np.nan)
    tokenizer = run.lens.subject.tokenizer if run.lens is not None else None
    ids = table.y_values.astype(np.int64)
    for row, head in enumerate(table.x_values.astype(np.int64)):
        most = int(table.counts[row].argmax())
        names[head] = spelled(tokenizer, [int(ids[most])])[0]
        shares[head] = table.counts[row, most] / table.counts[row].sum()
    return tuple(names), shares


def _medians(table: Ranks, heads: int) -> Float[np.ndarray, " head"]:
    medians = np.full(heads, np.nan)
    for row, head in enumerate(table.x_values.astype(np.int64)):
        counts = np.cumsum(table.counts[row])
        medians[head] = table.y_values[np.searchsorted(counts, counts[-1] / 2)]
    return medians


def _totals(moments: Moments, *, but: int) -> Float[np.ndarray, "*cell feature"]:
    """Sums over the texts: whole numbers, but for one feature."""
    totals = moments.mean * moments.count
    return np.where(np.arange(totals.shape[-1]) == but, totals, np.rint(totals))


def _defined(moments: Moments) -> Float[np.ndarray, "*cell"]:
    return np.where(moments.count > 0, moments.mean, np.nan)


def _ratio(part: Any, whole: Any) -> Any:
    """part / whole; NaN where there is nothing to divide by."""
    part, whole = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
