"""What a run was asked to do: enough to do it again, and to know whether saved statistics belong to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from normlens.corpora import Categories, Category, Corpus, FrequencyRanks, frequency, make_categories, survey
from normlens.lens import Lens
from normlens.models import Subject, longest, text_tokenizer, vocabulary
from normlens.signature import Signature
from normlens.studies.fingerprint import fingerprint
from normlens.studies.seen import Facts
from normlens.studies.study import Study, StudyError


@dataclass(frozen=True, slots=True)
class Request:
    """One run: a model, a corpus, and every choice that changes a number."""

    lens: Lens
    corpus: Corpus
    items: int  # of the corpus, after `limit`
    digest: str  # of those items
    studies: tuple[Study[Any], ...]
    categories: Categories
    ranks: FrequencyRanks | None
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
        chosen = [str(study) for study in self.studies if str(study) != study.name]
        if chosen:
            facts["choices"] = ", ".join(chosen)
        return self.lens.signature.adding(**facts)

    @property
    def identity(self) -> dict[str, str]:
        """What must be the same for a run to be continued, in words."""
        return {
            **dict(self.signature.facts),
            "studies": ", ".join(map(_identified, self.studies)),
            "categories": "; ".join(str(category) for category in self.categories.listed),
            "batch_tokens": str(self.batch_tokens),
        }

    @property
    def facts(self) -> Facts:
        """The facts of a run that has not begun."""
        return Facts(
            lens=self.lens,
            model=f"{self.lens.subject.name}@{self.lens.subject.revision}",
            corpus=self.corpus.describe(),
            signature=self.signature,
            categories=self.categories.names,
            ranks=self.ranks,
            seed=self.seed,
            length=self.length,
        )


def _identified(study: Study[Any]) -> str:
    """A study with its arguments; one of the user's own also with what tells its class from another of its name."""
    kinds = [kind for kind in type(study).__mro__ if issubclass(kind, Study)]
    own = [kind for kind in kinds if not kind.__module__.startswith("normlens.")]
    return f"{study} of {', '.join(map(fingerprint, own))}" if own else str(study)


def request(
    lens: Lens,
    corpus: Corpus,
    *,
    studies: Sequence[Study[Any]],
    categories: Categories | Sequence[Category] | Mapping[str, Any] | None = None,
    ranks: FrequencyRanks | str | Path | None = None,
    length: int = 128,
    limit: int | None = None,
    seed: int = 0,
    batch_tokens: int = 4096,
) -> Request:
    """Read through the corpus once and settle every choice."""
    _check(length, limit, batch_tokens)
    if lens.subject.tokenizer is None:
        raise StudyError(
            f"'{lens.subject.name}' was loaded without a tokenizer, so it cannot read texts.",
            do="give a model whose folder holds its tokenizer; in Python, normlens.load(model, tokenizer).",
        )
    items = survey(corpus, limit)
    limit_of_model = longest(lens.subject)
    cut = min(length, limit_of_model) if limit_of_model else length
    needs_ranks = any(study.needs.ranks for study in studies)
    return Request(
        lens=lens,
        corpus=corpus,
        items=items.items,
        digest=items.digest,
        studies=tuple(studies),
        categories=make_categories(categories, lens.subject),
        ranks=_ranks(lens.subject, corpus, ranks, limit, cut) if needs_ranks else None,
        length=cut,
        seed=seed,
        batch_tokens=batch_tokens,
    )


def _check(length: int, limit: int | None, batch_tokens: int) -> None:
    for name, got, least, unit in (
        ("length", length, 2, "tokens"),
        ("limit", limit, 1, "item"),
        ("batch_tokens", batch_tokens, 1, "token"),
    ):
        if got is not None and got < least:
            raise StudyError(f"{name} must be at least {least} {unit} (got {got}).", do=f"give at least {least}.")


def _ranks(
    subject: Subject, corpus: Corpus, ranks: FrequencyRanks | str | Path | None, limit: int | None, length: int
) -> FrequencyRanks:
    tokenizer: Any = text_tokenizer(subject.tokenizer)
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
