"""Which attribution is faithful on this model: every method on the same texts, by what is lost when tokens go.

A method puts the tokens of a text in an order. Where what it puts first is what the prediction rests on, the
prediction falls when the first tokens are removed, and stays when only they are kept. Normalising by the best and the
worst order of each text is after Edin et al. (2024), the two measures after DeYoung et al. (2020).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.stats import rankdata
from torch import Tensor

from normlens import statistics
from normlens.attribution import METHODS, REMOVALS, Asked, Method, Question, ask, logits_without
from normlens.capture import run_untapped
from normlens.corpora import Item, survey
from normlens.corpora import corpus as as_corpus
from normlens.errors import NormlensError, nearest
from normlens.lens import Lens
from normlens.models import encode
from normlens.studies.faithful_result import Faithfulness
from normlens.studies.orders import RANDOM, SHARES, Drops, bounds, check_shares, counts_of, first_of, order_of
from normlens.studies.saved import begun, left
from normlens.studies.study import StudyError

FAITHFUL_VALUES = ("logit", "log_probability")  # of the prediction, to be explained
FILE = "faithfulness.safetensors"
REFERENCES = ("gradient_x_input", "integrated_gradients")  # that agreement is measured with, beside leave-one-out
ORDERS = 5  # random orders of each text
SAVE = 20.0  # seconds between two saves


@dataclass(frozen=True, slots=True)
class Asking:
    """The choices of a comparison: what would make its numbers others."""

    methods: tuple[str, ...]
    removal: str
    value: str
    shares: tuple[float, ...]
    width: int
    length: int
    seed: int


def faithfulness(
    lens: Lens,
    corpus: Any,
    *,
    methods: Sequence[str] | None = None,
    removal: str = "mask",
    value: str = "logit",
    shares: Sequence[float | int] = SHARES,
    width: int = 3,
    length: int = 64,
    limit: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Faithfulness:
    """Compare methods of attribution on the predictions of a model for the texts of a corpus.

    What is explained is the `value` of the model's own prediction: its class, its next token after the text, or one
    token of its translation, chosen by `seed`. `removal` says how tokens are removed: "mask" (hidden from attention),
    "delete", "mask_token" or "mean". With `out` the run is saved there as it goes, and `resume` goes on with it.
    """
    asking = Asking(_named(methods), removal, value, tuple(shares), width, length, seed)
    _check(asking)
    corpus = as_corpus(corpus)
    surveyed = survey(corpus, limit)
    signature = lens.signature.adding(
        corpus=f"{corpus.describe()}@{surveyed.digest}",
        items=str(surveyed.items),
        removal=removal,
        value=value,
        shares=",".join(f"{share:g}" for share in shares),
        width=str(width),
        length=str(length),
        seed=str(seed),
    )
    run = _Run(lens, asking, None if out is None else Path(out) / FILE)
    run.begin(dict(signature.facts) | {"methods": ", ".join(asking.methods)}, resume)
    if progress is not None:
        progress(run.done, surveyed.items)
    try:
        for number, item in enumerate(islice(corpus, surveyed.items)):
            if number < run.done:
                continue
            run.add(item, number)
            if progress is not None:
                progress(1, surveyed.items)
        run.save(finished=True)
    except KeyboardInterrupt as stopped:
        stopped.add_note(left(run.file, run.saved, surveyed.items))
        raise
    result = Faithfulness.of(run.records, signature, asking.shares, titles_of(asking.methods), run.refused, seed)
    if out is not None:
        result.save(out)
    return result


class _Run:
    """The texts that were compared so far."""

    def __init__(self, lens: Lens, asking: Asking, file: Path | None) -> None:
        self.lens, self.asking, self.file = lens, asking, file
        self.records: list[dict[str, Any]] = []
        self.refused: dict[str, str] = {}  # methods, and why
        self.saved, self.identity, self._last = 0, {}, time.monotonic()

    @property
    def done(self) -> int:
        return len(self.records)

    def begin(self, identity: Mapping[str, str], resume: bool) -> None:
        """Go on from what an earlier run left, where there is one."""
        self.identity = identity
        if self.file is not None and (before := begun(self.file, identity, resume=resume)) is not None:
            self.records, self.refused = before[1]["records"], before[1]["refused"]
            self.saved = self.done

    def add(self, item: Item, number: int) -> None:
        """Compare the methods on one text."""
        self.records.append(self._record(item, np.random.default_rng([self.asking.seed, number])))
        if time.monotonic() - self._last > SAVE:
            self.save()

    def save(self, *, finished: bool = False) -> None:
        """Keep what is done."""
        if self.file is not None:
            facts = {"records": self.records, "refused": self.refused, "items": self.done, "finished": finished}
            statistics.write(self.file, {}, facts | {"identity": self.identity})
        self.saved, self._last = self.done, time.monotonic()

    def _record(self, item: Item, chance: np.random.Generator) -> dict[str, Any]:
        asked = question_of(self.lens, item, self.asking.length, chance)
        question, free = asked.question, removable(asked.question)
        record = {"text": " ".join(item.texts), "target": asked.target, "tokens": int(free.sum())}
        if free.sum() < 2:
            return record
        scores, seconds = self._scores(question, free)
        drops = Drops(lambda sets: self._drops(question, free, sets), int(free.sum()))
        counts = counts_of(self.asking.shares, drops.tokens)
        orders = {name: order_of(values, chance) for name, values in scores.items()}
        random = {f"{RANDOM} {seed}": chance.permutation(drops.tokens) for seed in range(ORDERS)}
        firsts = {name: first_of(order, counts) for name, order in (orders | random).items()}
        drops.of(
            np.concatenate([np.eye(drops.tokens, dtype=bool), *firsts.values(), *(~sets for sets in firsts.values())])
        )
        removed = {name: drops.of(sets) for name, sets in firsts.items()}
        kept = {name: drops.of(~sets) for name, sets in firsts.items()}
        means = [values.mean() for values in removed.values()]
        worst, best = bounds(drops, counts, self.asking.width)
        references = {"leave_one_out": drops.single} | {name: scores[name] for name in REFERENCES if name in scores}
        agreement = {
            name: {other: _agreement(values, against, METHODS[name]) for other, against in references.items()}
            for name, values in scores.items()
        }
        for parts in (removed, kept):
            parts[RANDOM] = np.mean([parts.pop(name) for name in random], axis=0)
        return record | {
            "bounds": [min(worst, *means), max(best, *means)],
            "removed": {name: values.tolist() for name, values in removed.items()},
            "kept": {name: values.tolist() for name, values in kept.items()},
            "agreement": agreement,
            "seconds": seconds
            | {"forward": _seconds(lambda: run_untapped(question.watcher.subject.model, question.inputs))},
        }

    def _scores(self, question: Question, free: Bool[Tensor, " source"]) -> tuple[dict[str, Any], dict[str, float]]:
        """The scores of every method that gives any, and how long each took; one that refuses is asked no more."""
        scores, seconds = {}, {}
        for name in self.asking.methods:
            if name in self.refused:
                continue
            started = time.perf_counter()
            try:
                values = METHODS[name].compute(question).values.detach()[free].double().cpu().numpy()
            except NormlensError as error:
                self.refused[name] = error.what
                continue
            seconds[name] = time.perf_counter() - started
            if np.isfinite(values).all():
                scores[name] = values
            else:
                self.refused[name] = "Its scores are no numbers."
        return scores, seconds

    def _drops(
        self, question: Question, free: Bool[Tensor, " source"], sets: Bool[np.ndarray, "set token"]
    ) -> Float[np.ndarray, " set"]:
        removed = torch.zeros(len(sets) + 1, question.sources, dtype=torch.bool)
        removed[1:, free] = torch.from_numpy(sets)
        logits = logits_without(question, removed, by=self.asking.removal).double()
        if self.asking.value == "log_probability":
            logits = logits.log_softmax(dim=-1)
        values = replace(question, row=None).logit(logits).cpu().numpy()
        return values[0] - values[1:]


def question_of(lens: Lens, item: Item, length: int, chance: np.random.Generator) -> Asked:
    """The model's own prediction for a text; one token of its translation, not the first, is chosen by chance."""
    if not item.texts:
        raise StudyError(f"{item.where} is no text.", do="give texts: token sequences cannot be compared.")
    subject = lens.subject
    single = subject.is_seq2seq or len(item.texts) == 1
    encoded = encode(subject, item.texts[0] if single else item.texts, truncate=True, length=length)
    answer = item.texts[1] if subject.is_seq2seq and len(item.texts) == 2 else None
    (steps,) = ask(lens, encoded.inputs, None, answer=answer)
    later = steps[1:] or steps  # before the first token there is nothing to remove on the decoder's side
    return later[int(chance.integers(len(later)))]


def removable(question: Question) -> Bool[Tensor, " source"]:
    """Source tokens that are compared: not the special ones, not the position that is read, nor what it cannot see."""
    encoded = question.encoded
    free = ~torch.tensor([flag for side in (*encoded.sides, *encoded.targets) for flag in side.special])
    if question.row is not None:
        read = question.sources - (question.written or question.sources) + question.row
        free[read : None if question.causal else read + 1] = False
    return free


def titles_of(names: Sequence[str]) -> dict[str, str]:
    """What the methods are called in a table."""
    return {name: METHODS[name].title for name in names}


def _agreement(
    values: Float[np.ndarray, " token"], against: Float[np.ndarray, " token"], method: Method
) -> float | None:
    """Spearman's ρ over tokens; a method without signs is compared with sizes."""
    first, second = rankdata(values), rankdata(against if method.signed else np.abs(against))
    if first.std() == 0 or second.std() == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _named(methods: Sequence[str] | None) -> tuple[str, ...]:
    known = [name for name in METHODS if name != RANDOM]
    names = tuple(known) if methods is None else (methods,) if isinstance(methods, str) else tuple(methods)
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise StudyError(
            f"There is no method '{unknown}'.", do=f"{nearest(unknown, known)}Choose among {', '.join(known)}."
        )
    return tuple(dict.fromkeys(names))


def _check(asking: Asking) -> None:
    check_shares(asking.shares, asking.width)
    for name, got, known in (("removal", asking.removal, REMOVALS), ("value", asking.value, FAITHFUL_VALUES)):
        if got not in known:
            raise StudyError(f"There is no {name} '{got}'.", do=f"choose among {', '.join(known)}.")
