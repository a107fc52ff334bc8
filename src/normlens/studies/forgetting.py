"""What may a cache forget? The keys of the lowest scores are hidden, and the change of the output is measured.

Four scores of a key k in one head, r_k being the mean attention weight that it receives from the queries that see it:

    weights      r_k                      received weight
    vatp         r_k · ‖v(x_k)‖₁          weight times value (VATP)
    criticalkv   (r_k + 1e-4) · ‖f(x_k)‖₁   weight times transformed vector, in the norm p = 1 (CriticalKV)
    norms        r_k · ‖f(x_k)‖           received norm: the mean of ‖αf(x_k)‖

and random scores as the floor. What is hidden, from whom, is our choice: see `method`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from normlens.exhibits import (
    Column,
    LinePanel,
    Lines,
    Row,
    Section,
    Series,
    Table,
    count,
    listing,
    many,
    number,
    percent,
    plain,
)
from normlens.lens import Lens, observe_hiding
from normlens.statistics import Moments, Statistic
from normlens.studies.output_change import CHANGES, changed
from normlens.studies.seen import Facts, Pass, Seen
from normlens.studies.study import Needs, Study, StudyError
from normlens.studies.sums import Sums

SCORES = {  # for readers
    "weights": "received weight",
    "vatp": "VATP",
    "criticalkv": "CriticalKV",
    "norms": "received norm",
    "random": "random order",
}
STUDIED = ("self", "cross")  # where keys are hidden


@dataclass(frozen=True, slots=True, eq=False)
class Forgetting:
    """How much the output changes, means over sequences, and the same less that of received weights."""

    kind: str
    shares: tuple[float, ...]
    sequences: int
    change: Mapping[str, Float[np.ndarray, "score share"]]  # by name of CHANGES
    gap: Mapping[str, Float[np.ndarray, "score share"]]  # less that of "weights" in the same sequence, mean
    error: Mapping[str, Float[np.ndarray, "score share"]]  # standard error of that mean; NaN of one sequence


class ForgettingStudy(Study[Forgetting]):
    name, title = "forgetting", "What may a cache forget?"
    paper = "the scores of VATP (Guo et al., 2024) and CriticalKV; what is hidden, and the comparison, are ours"
    needs = Needs(quantities=("value_sums", "transformed_sums"), hidden_states=True, whole_pass=True, transformed=True)
    question = (
        "A cache of keys and values is shortened by dropping the keys that matter least. Received attention weights, "
        "weights times the size of the value, and received norms each say which keys these are. The best score is the "
        "one whose lowest keys can be hidden with the least change of the output."
    )
    caution = (
        "hiding a key gives its attention weight to the other keys, so hiding a sink that contributes nothing still "
        "changes the output. VATP’s published runs always keep the first tokens; here none is kept unless `first` says "
        "so."
    )

    def __init__(
        self,
        *,
        shares: tuple[float, ...] = (0.25, 0.5, 0.75),  # of the keys that are hidden
        prompt: float = 0.5,  # of a text that is in the cache where attention is causal
        first: int = 0,  # first tokens that are never hidden
        floor: float = 1e-4,  # CriticalKV's
        tokens: int = 8,  # shorter sequences are left out
    ) -> None:
        if not shares or not all(0 < share < 1 for share in shares) or not 0 < prompt < 1:
            raise StudyError(
                "shares and prompt must be above 0 and below 1.", got=f"shares={shares}, prompt={prompt:g}"
            )
        self.shares, self.prompt, self.first, self.floor, self.tokens = tuple(shares), prompt, first, floor, tokens
        kept = f"The first {first} tokens are never hidden. " if first else ""
        self.method = (
            "Every layer and head has scores of its own: the mean attention weight that a key receives from the "
            f"queries that see it, alone or times ‖v(x)‖₁, times ‖f(x)‖₁ after {floor:g} was added, or times ‖f(x)‖. "
            "Heads that share keys and values share the mean of their scores.",
            f"Where attention is causal, the cache is the first {percent(prompt)} of a text. Only queries of this part "
            "score its keys. Then the keys of the lowest scores are hidden from all later queries, as after a prompt; "
            "the part itself is read in full. The change is measured at the later tokens.",
            "Elsewhere every query scores every key, the lowest are hidden from all queries, and the change is "
            "measured at all tokens. In a translation model these are the keys of cross-attention; its other attention "
            "stays as it is.",
            "A hidden key gets no weight in the softmax, which is proved in every block, and the other keys get its "
            f"weight. {kept}Texts of fewer than {tokens} tokens are left out. All these choices are ours.",
            "Relative change: ‖y′ − y‖/‖y‖ of the last hidden state of a token. Divergence: KL(p‖p′) of the model’s "
            "prediction, where it makes one. Means over tokens, then every sequence counts once. A difference between "
            "two scores is called clear when its mean over sequences is more than two standard errors from 0.",
        )

    def see_pass(self, passed: Pass) -> Mapping[tuple[str, int], Mapping[str, Statistic]]:
        lens = passed.run.lens
        if lens is None:
            return {}
        return {
            (kind, 0): counted
            for kind in STUDIED
            if (blocks := [seen for seen in passed.blocks if seen.kind == kind])
            and (counted := self._kind(passed, lens, blocks))
        }

    def _kind(self, passed: Pass, lens: Lens, blocks: list[Seen]) -> Mapping[str, Statistic]:
        first = blocks[0]
        long_enough = first.src.lengths >= self.tokens
        if not long_enough.any():
            return {}
        cut = np.floor(self.prompt * first.src.lengths).astype(int) if first.causal else None
        later = _later(first, cut)
        scores = {(seen.kind, seen.layer): self._scores(seen, cut, groups_of(lens, seen)) for seen in blocks}
        changes: dict[str, list[np.ndarray]] = {}  # one for each score and share
        for score in SCORES:
            for share in self.shares:
                keys = {cell: torch.from_numpy(lowest(by_name[score], share)) for cell, by_name in scores.items()}
                hidden = {cell: mask[:, :, None] & later[:, None, :, None] for cell, mask in keys.items()}
                if cut is not None:  # no more is seen than before
                    after = torch.ones(later.shape[1], later.shape[1], dtype=torch.bool).triu(1)
                    hidden = {cell: mask | after for cell, mask in hidden.items()}
                output = observe_hiding(lens, passed.batch.encoded, hidden, hidden_states=True)
                for name, values in changed(passed.output, output, first.kind, later).items():
                    changes.setdefault(name, []).append(values[long_enough])
        statistics: dict[str, Statistic] = {}
        for name, values in changes.items():
            cells = np.stack(values, axis=1).reshape(-1, len(SCORES), len(self.shares))
            statistics |= {name: Moments.of(cells), f"{name}_gap": Moments.of(cells - cells[:, :1])}
        return statistics

    def _scores(
        self, seen: Seen, cut: Int[np.ndarray, " batch"] | None, group: int
    ) -> dict[str, Float[np.ndarray, "batch head src"]]:
        """Every score of every key; infinite where the key may not be hidden."""
        keys = np.arange(seen.weights.shape[3])
        may = seen.real & (keys >= self.first)
        sizes, seen_by = seen.sizes, seen.seen_by
        scaled = seen.received_norms(np.float64) if seen.is_scaled else None
        if cut is not None:
            may &= keys < cut[:, None]
            early = torch.from_numpy(np.arange(seen.weights.shape[2]) < cut[:, None]).to(seen.weights)
            sizes = torch.matmul(early[:, None, None], seen.weights.abs())[:, :, 0].cpu().numpy()
            if scaled is not None:
                scaled = torch.matmul(early[:, None, None], seen.weighted_norms)[:, :, 0].cpu().double().numpy()
            seen_by = torch.matmul(early[:, None], seen.pairs.to(early))[:, 0].cpu().numpy()
        received = sizes.astype(np.float64) / np.maximum(seen_by, 1)[:, None]
        values, transformed = (seen[name].cpu().double().numpy() for name in ("value_sums", "transformed_sums"))
        scores = {
            "weights": received,
            "vatp": received * values,
            "criticalkv": (received + self.floor) * transformed,
            "norms": received * seen.norms if scaled is None else scaled / np.maximum(seen_by, 1)[:, None],
            "random": _random(seen),
        }
        return {name: np.where(may[:, None], shared(score, group), np.inf) for name, score in scores.items()}

    def result(self, sums: Sums, run: Facts) -> Forgetting:
        names = [name for name in CHANGES if sums.get(f"0/{name}") is not None]
        moments, gaps = ({n: sums[f"0/{n}{end}"] for n in names} for end in ("", "_gap"))
        return Forgetting(
            kind=sums.kind,
            shares=self.shares,
            sequences=int(moments[names[0]].count.max()),
            change={name: found.mean for name, found in moments.items()},
            gap={name: found.mean for name, found in gaps.items()},
            error={
                name: np.where(found.count > 1, found.deviation / np.sqrt(np.maximum(found.count - 1, 1)), np.nan)
                for name, found in gaps.items()
            },
        )

    def section(self, result: Forgetting, run: Facts) -> Section:
        notes = [
            f"{many(result.sequences, 'sequence')} of {count(run.items)} had at least {many(self.tokens, 'token')}."
        ]
        return Section(_sentences(result), [_figure(result), *_tables(result)], notes)


def _random(seen: Seen) -> Float[np.ndarray, "batch head src"]:
    """Chance that depends on the seed, the layer and the text alone, whatever batch the text is in."""
    values = np.zeros((len(seen.src.ids), seen.weights.shape[1], seen.weights.shape[3]))
    for row, length in enumerate(seen.src.lengths):
        random = np.random.default_rng([seen.run.seed, seen.layer, *seen.src.ids[row, :length].tolist()])
        values[row, :, :length] = random.random((seen.weights.shape[1], length))
    return values


def _later(seen: Seen, cut: Int[np.ndarray, " batch"] | None) -> Bool[Tensor, "batch tgt"]:
    """The queries that may not see hidden keys, and whose change is measured."""
    queries = np.arange(seen.weights.shape[2])
    return torch.from_numpy((queries < seen.tgt.lengths[:, None]) & (queries >= (0 if cut is None else cut[:, None])))


def lowest(scores: Float[np.ndarray, "batch head src"], share: float) -> Bool[np.ndarray, "batch head src"]:
    """The keys of the lowest scores, this share of those that may be hidden, rounded down; of equals the earlier."""
    order = np.argsort(np.argsort(scores, axis=2, kind="stable"), axis=2, kind="stable")
    return order < np.floor(share * np.isfinite(scores).sum(axis=2, keepdims=True))


def shared(scores: Float[np.ndarray, "batch head src"], group: int) -> Float[np.ndarray, "batch head src"]:
    """The mean over each `group` of heads in a row, for each of them."""
    batch, heads, keys = scores.shape
    means = scores.reshape(batch, heads // group, group, keys).mean(axis=2, keepdims=True)
    return np.broadcast_to(means, (batch, heads // group, group, keys)).reshape(scores.shape)


def groups_of(lens: Lens, seen: Seen) -> int:
    """How many heads in a row share their keys and values."""
    config: Any = getattr(lens.subject.config, "get_text_config", lambda: lens.subject.config)()
    own, heads = getattr(config, "num_key_value_heads", None), seen.weights.shape[1]
    return heads // own if isinstance(own, int) and 0 < own < heads and heads % own == 0 else 1


def _sentences(result: Forgetting) -> list[str]:
    names, lines = list(SCORES), []
    for measure, values in result.change.items():
        best = [
            f"{SCORES[names[int(values[:, at].argmin())]]} at {percent(share)} ({number(values[:, at].min())}; random "
            f"{number(values[names.index('random'), at])})"
            for at, share in enumerate(result.shares)
        ]
        lines.append(f"The smallest {CHANGES[measure]}, by share of the keys that are hidden: {listing(best)}.")
    if result.sequences < 2:
        return [*lines, "One sequence has no standard error, so no difference to received weight is called clear."]
    measure = "divergence" if "divergence" in result.change else "change"
    for at, name in enumerate(names[1:], start=1):
        gaps = list(zip(result.shares, result.gap[measure][at], result.error[measure][at], strict=True))
        better = [percent(share) for share, gap, error in gaps if gap < -2 * error]
        worse = [percent(share) for share, gap, error in gaps if gap > 2 * error]
        told = [f"clearly {how} with {listing(at)} hidden" for how, at in (("better", better), ("worse", worse)) if at]
        lines.append(f"Against received weight, {SCORES[name]} is {' and '.join(told) or 'not clearly different'}.")
    return lines


def _figure(result: Forgetting) -> Lines:
    x = np.array(result.shares)
    return Lines(
        "forgetting",
        "Change of the output when the keys of the lowest scores are hidden, by share of the keys. Lower is better. "
        "VATP is weight × ‖v‖₁, CriticalKV (weight + 10⁻⁴) × ‖f‖₁.",
        "Lines over the share of hidden keys. "
        + " ".join(
            f"{what[0].upper()}{what[1:]}, at {percent(x[-1])}: "
            + listing([f"{SCORES[n]} {number(v)}" for n, v in zip(SCORES, result.change[m][:, -1], strict=True)])
            + "."
            for m, what in CHANGES.items()
            if m in result.change
        ),
        tuple(
            LinePanel(what, tuple(Series(SCORES[n], row, x) for n, row in zip(SCORES, result.change[m], strict=True)))
            for m, what in CHANGES.items()
            if m in result.change
        ),
        x="share of the keys that are hidden",
        names=tuple(SCORES.values()),
    )


def _tables(result: Forgetting) -> list[Table]:
    rows: list[Row] = []
    short: list[Row] = []
    for at, name in enumerate(SCORES):
        short.append({"score": name, "score_name": SCORES[name]})
        for place, share in enumerate(result.shares):
            row: Row = {"score": name, "hidden": plain(share)}
            for measure, values in result.change.items():
                row[measure] = plain(values[at, place])
                row[f"{measure}_gap"] = plain(result.gap[measure][at, place])
                row[f"{measure}_error"] = plain(result.error[measure][at, place])
                short[-1][f"{measure}_{100 * share:g}"] = row[measure]
            rows.append(row)
    columns = [Column("score_name", "keys hidden by lowest", "text")]
    for measure in result.change:
        heading = "change" if measure == "change" else "KL"
        columns += [
            Column(f"{measure}_{100 * share:g}", f"{heading}, {percent(share)} hidden") for share in result.shares
        ]
    return [
        Table("forgetting", "Change of the output when keys are hidden", short, tuple(columns)),
        Table("forgetting_gaps", "The same, and the difference to received weight with its error", rows, shown=0),
    ]
