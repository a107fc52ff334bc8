"""The mixing ratio of every block in all its forms, counted over a corpus."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from normlens.corpora import Corpus, FrequencyRanks, Item
from normlens.lens import SIDES, Lens
from normlens.models import encode, text_tokenizer
from normlens.statistics import Moments, Ranks, Sample
from normlens.studies.batches import Group
from normlens.studies.seen import Facts, Pass, Seen
from normlens.studies.study import StudyError
from normlens.studies.sums import Sums

DRAWN, SIZE = 10_000, 1024  # occurrences kept for the picture; codes of an axis of ρ


@dataclass(frozen=True, slots=True)
class Form:
    """One way to say how much of a token comes from others."""

    name: str
    label: str  # as in the paper
    says: str
    quantity: str = ""  # of a block; none: from the weights
    part: float = 1.0  # of the weights


FORMS = {
    form.name: form
    for form in (
        Form("attn_w", "Attn-W", "by attention weights"),
        Form("attn_n", "Attn-N", "by the vectors that attention adds", "mixing_attention"),
        Form("attnres_w", "AttnRes-W", "by attention weights, half of them for the residual", part=0.5),
        Form("attnres_n", "AttnRes-N", "with the residual", "mixing_residual"),
        Form("attnresln_n", "AttnResLn-N", "after the residual and its norm", "mixing_normed"),
        Form("layer_n", "Layer-N", "at the end of the layer", "mixing_output"),
    )
}


@dataclass(frozen=True, slots=True, eq=False)
class MixingForm:
    """One form in every layer that has it."""

    form: Form
    tokens: int  # of one layer
    mean: float  # pooled over all tokens and layers
    highest: float
    lowest: float
    by_layer: Float[np.ndarray, " layer"]  # mean per sequence, then over sequences; NaN where a layer lacks it
    by_category: Float[np.ndarray, "layer category"]  # the same
    rank: float  # Spearman's ρ of the frequency rank and the ratio, its mean over layers
    plain_rank: float  # without special tokens


@dataclass(frozen=True, slots=True, eq=False)
class Mixing:
    """Every form of the mixing ratio, and which the model lacks."""

    kind: str
    layers: tuple[int, ...]
    categories: tuple[str, ...]
    forms: Mapping[str, MixingForm]  # by name
    missing: Mapping[str, str]  # forms that no layer has, by name, and why
    points: int  # occurrences behind ρ
    drawn: Float[np.ndarray, "point column"]  # a seeded sample: rank, category, then the forms in their order

    @property
    def kept(self) -> MixingForm:
        """The form that holds most of the attention part of a layer."""
        return next(self.forms[n] for n in ("attnresln_n", "attnres_n", "attn_n", "attn_w") if n in self.forms)


class MixingCounter:
    """Counts the ratios of every block, and sums them over layers for the frequency ranks."""

    def __init__(self, sums: Sums, run: Facts) -> None:
        assert run.ranks is not None
        self.sums, self.ranks, self.seed = sums, run.ranks, run.seed
        self.number = 0
        self.layers: dict[str, dict[str, tuple[int, Float[np.ndarray, "batch tgt"]]]] = {}
        self.waiting: dict[str, list[Float[np.ndarray, "token column"]]] = {}

    def see(self, seen: Seen) -> None:
        if seen.block.tgt != seen.block.src:
            return
        real, sums = seen.real_queries, self.sums.of(seen.kind)
        kinds = seen.tgt.once("mixing: categories", lambda group: _members(group, len(seen.run.categories)))
        kept = self.layers.setdefault(seen.kind, {})
        for name, ratios in of_block(seen).items():
            sums.add(f"{seen.layer}/{name}", Moments.of(ratios[real][:, None]))
            totals = np.einsum("bt,btc->bc", np.where(real, ratios, 0.0), kinds)
            tokens = kinds.sum(axis=1)
            sums.add(f"{seen.layer}/{name}_categories", Moments.of(totals / np.maximum(tokens, 1), tokens > 0))
            layers, before = kept.get(name, (0, np.zeros_like(ratios)))
            kept[name] = layers + 1, before + ratios

    def see_pass(self, passed: Pass) -> None:
        for kind, forms in self.layers.items():
            group = passed.batch.groups[SIDES[kind][0]]
            real = group.categories >= 0
            nothing = np.full(group.ids.shape, np.nan)
            means = [forms[name][1] / forms[name][0] if name in forms else nothing for name in FORMS]
            columns = group.ids, group.categories, group.special, *means
            self.waiting.setdefault(kind, []).append(np.stack([column[real] for column in columns], axis=1))
        self.layers, self.number = {}, passed.batch.number

    def shard(self) -> None:
        for kind, waiting in self.waiting.items():
            _count(self.sums.of(kind), np.concatenate(waiting), self.ranks, [self.seed, self.number])
        self.waiting = {}

    def settle(self) -> None:
        pass


def of_block(seen: Seen) -> dict[str, Float[np.ndarray, "batch tgt"]]:
    """The forms that a block has, by name."""
    found = {}
    weights = seen.attention.mean(dim=1, dtype=torch.float64)
    others = (weights.sum(dim=-1) - weights.diagonal(dim1=1, dim2=2)).clamp_min(0).cpu().numpy()
    for name, form in FORMS.items():
        if not form.quantity:
            found[name] = form.part * others
        elif form.quantity in seen.block.kept:
            found[name] = seen[form.quantity].cpu().double().numpy()
    return found


def _members(group: Group, categories: int) -> Float[np.ndarray, "batch token category"]:
    """Which category each token belongs to, and one more for all."""
    members = group.categories[:, :, None] == np.arange(categories)
    return np.concatenate([members, (group.categories >= 0)[:, :, None]], axis=2).astype(np.float64)


def _count(sums: Sums, rows: Float[np.ndarray, "token column"], ranks: FrequencyRanks, seed: list[int]) -> None:
    ids, special = rows[:, 0].astype(np.int64), rows[:, 2] > 0
    kept = ~ranks.excluded[ids]
    rank = ranks.ranks[ids].astype(np.float64)
    for place, name in enumerate(FORMS, start=3):
        if np.isfinite(rows[:, place]).all():
            for which, some in (("every", kept), ("plain", kept & ~special)):
                sums.add(f"rank/{which}/{name}", Ranks.of(rank[some], rows[some, place], size=SIZE))
    points = np.column_stack([rank, rows[:, 1], rows[:, 3:]])[kept]
    sums.add("points", Sample.of(points, size=DRAWN, random=np.random.default_rng(seed)))


def masked_corpus(corpus: Corpus, lens: Lens, length: int, share: float) -> Corpus:
    """The texts as tokens, a share of those that are not special replaced by the mask token; at least one of each."""
    subject = lens.subject
    tokenizer: Any = text_tokenizer(subject.tokenizer)
    mark = getattr(tokenizer, "mask_token", None)
    if mark is None or subject.is_seq2seq:
        raise StudyError(
            f"The texts of '{subject.name}' cannot be masked.",
            cause="its tokenizer has no mask token." if mark is None else "it has a source and a target.",
            do="leave masked= out.",
        )
    special = set(tokenizer.all_special_tokens)

    def start() -> Iterator[Item]:
        chance = random.Random(0)
        for item in corpus:
            tokens = list(item.tokens[:length]) if item.tokens is not None else _tokens(item)
            free = [place for place, token in enumerate(tokens) if token not in special]
            for place in chance.sample(free, min(len(free), max(1, int(share * len(free))))):
                tokens[place] = mark
            yield Item((), tuple(tokens), item.where)

    def _tokens(item: Item) -> list[str]:
        texts = item.texts if len(item.texts) > 1 else "".join(item.texts)
        return list(encode(subject, [texts], truncate=True, length=length).sides[0].tokens)

    return Corpus(f"{corpus.name}, {100 * share:g} % masked", start, corpus.notes)
