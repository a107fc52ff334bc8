"""What a run was asked to do: enough to do it again, and to know whether a saved state belongs to it.

Room: studies. Decides, counts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from normlens.corpora import Categories, Category, Corpus, FrequencyRanks, frequency, make_categories, survey
from normlens.errors import NormlensError
from normlens.lens import Lens
from normlens.models import Subject, longest, vocabulary
from normlens.signature import Signature

Name = Literal["dispersion", "categories", "correlation", "frequency"]
STUDIES: tuple[Name, ...] = get_args(Name)


class StudyError(NormlensError):
    """A study that cannot be run as asked."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One run: a model, a corpus, and every choice that changes a number."""

    lens: Lens
    corpus: Corpus
    items: int  # of the corpus, after `limit`
    digest: str  # of those items
    studies: tuple[Name, ...]
    categories: Categories
    ranks: FrequencyRanks | None  # for the study of frequency
    length: int
    seed: int
    batch_tokens: int

    @property
    def signature(self) -> Signature:
        """The line that goes with every number of the run."""
        facts = {
            "corpus": f"{self.corpus.describe()}@{self.digest}",
            "items": str(self.items),
            "length": str(self.length),
            "categories": ",".join(self.categories.names),
            "seed": str(self.seed),
        }
        if self.ranks is not None:
            facts["ranks"] = self.ranks.source
        return self.lens.signature.adding(**facts)

    @property
    def identity(self) -> dict[str, str]:
        """What must be the same for a run to be continued, in words."""
        return {
            **dict(self.signature.facts),
            "studies": ", ".join(self.studies),
            "categories": "; ".join(str(category) for category in self.categories.listed),
            "batch_tokens": str(self.batch_tokens),
        }


def setting(
    lens: Lens,
    corpus: Corpus,
    *,
    studies: Sequence[str],
    categories: Categories | Sequence[Category] | Mapping[str, Any] | None,
    ranks: FrequencyRanks | str | Path | None,
    length: int,
    limit: int | None,
    seed: int,
    batch_tokens: int,
) -> Setting:
    """Look through the corpus once and settle every choice."""
    _check(studies, length, limit, batch_tokens)
    if lens.subject.tokenizer is None:
        raise StudyError(
            f"'{lens.subject.name}' was loaded without a tokenizer, so texts cannot be given to it.",
            do="give a model whose folder holds its tokenizer; in Python, normlens.load(model, tokenizer).",
        )
    found = survey(corpus, limit)
    limit_of_model = longest(lens.subject)
    cut = min(length, limit_of_model) if limit_of_model else length
    frequencies = _ranks(lens.subject, corpus, ranks, limit, cut) if "frequency" in studies else None
    return Setting(
        lens=lens,
        corpus=corpus,
        items=found.items,
        digest=found.digest,
        studies=tuple(name for name in STUDIES if name in studies),
        categories=make_categories(categories, lens.subject),
        ranks=frequencies,
        length=cut,
        seed=seed,
        batch_tokens=batch_tokens,
    )


def _check(studies: Sequence[str], length: int, limit: int | None, batch_tokens: int) -> None:
    unknown = next((name for name in studies if name not in STUDIES), None)
    if unknown is not None:
        near = get_close_matches(str(unknown), STUDIES, n=1)
        meant = f"\n  Did you mean '{near[0]}'?" if near else ""
        raise StudyError(
            f"There is no study '{unknown}'.{meant}",
            do=f"choose among {', '.join(STUDIES)}.",
        )
    if not studies:
        raise StudyError(
            "No study was named.",
            do=f"choose among {', '.join(STUDIES)}.",
        )
    for name, got, least, unit in (
        ("length", length, 2, "tokens"),
        ("limit", limit, 1, "item"),
        ("batch", batch_tokens, 1, "token"),
    ):
        if got is not None and got < least:
            raise StudyError(
                f"A {name} of {got} leaves nothing to look at.",
                do=f"give at least {least} {unit}.",
            )


def _ranks(
    subject: Subject, corpus: Corpus, ranks: FrequencyRanks | str | Path | None, limit: int | None, length: int
) -> FrequencyRanks:
    tokenizer: Any = getattr(subject.tokenizer, "tokenizer", subject.tokenizer)
    size = max(len(tokenizer), vocabulary(subject) or 0)
    if ranks is None:
        ranks = "vocabulary" if getattr(tokenizer, "cls_token", None) in ("[CLS]",) else "corpus"
    if ranks == "vocabulary":
        ranks = frequency.from_vocabulary(tokenizer)
    elif ranks == "corpus":
        ranks = frequency.from_counts(_counts(tokenizer, corpus, size, limit, length), "counts of this corpus")
    elif not isinstance(ranks, FrequencyRanks):
        ranks = frequency.from_file(Path(ranks), size)
    missing = size - len(ranks.ranks)
    if missing <= 0:
        return ranks
    last = int(ranks.ranks.max()) + 1
    return FrequencyRanks(
        ranks.source,
        np.concatenate([ranks.ranks, np.full(missing, last)]),
        np.concatenate([ranks.excluded, np.ones(missing, bool)]),
    )


def _counts(tokenizer: Any, corpus: Corpus, size: int, limit: int | None, length: int) -> np.ndarray:
    """How often each token id occurs in the corpus, cut as it will be."""
    counts = np.zeros(size, np.int64)
    for item in islice(corpus, limit):
        if item.tokens is not None:
            ids = tokenizer.convert_tokens_to_ids(list(item.tokens)[:length])
        else:
            ids = tokenizer(*item.texts, truncation=True, max_length=length)["input_ids"]
        counts += np.bincount(ids, minlength=size)
    return counts
