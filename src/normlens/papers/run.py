"""The experiments of the 2020 paper, run as it ran them.

Room: the setting. Sequences of 128 tokens at most, four categories, ranks by the order of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from normlens.corpora import Categories, Category
from normlens.errors import NormlensError
from normlens.lens import Lens
from normlens.models import Subject
from normlens.papers.compare import Comparison, compare
from normlens.papers.data import Data
from normlens.papers.expected import CLS, LENGTH, MODEL, SEP, STOPS
from normlens.studies import Findings, study


class ReproductionError(NormlensError):
    """A paper that cannot be run again as asked."""


def reproduce(
    lens: Lens,
    data: Data,
    *,
    ranks: str | Path | None = None,
    limit: int | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Findings, Comparison]:
    """Run every study of the paper on the data and hold what was found against what was printed.

    `ranks` is a file of frequency ranks in place of the paper's rule. With a `folder` the run is saved as it goes.
    """
    tokenizer: Any = getattr(lens.subject.tokenizer, "tokenizer", lens.subject.tokenizer)
    if lens.subject.is_seq2seq:
        raise ReproductionError(
            f"'{lens.subject.name}' has an encoder and a decoder, and the paper's experiments are about one text.",
            do="give bert-base-uncased, or a stand-in that reads one text.",
        )
    if data.checksums is not None and hasattr(tokenizer, "get_vocab"):
        _check_vocabulary(lens.subject.name, tokenizer)
    findings = study(
        lens,
        data.corpus,
        categories=_categories(tokenizer),
        ranks="vocabulary" if ranks is None else Path(ranks),
        length=LENGTH,
        limit=limit,
        folder=folder,
        resume=resume,
        progress=progress,
    )
    return findings, compare(findings, other_model=_other_model(lens.subject))


def _categories(tokenizer: Any) -> Categories:
    """The paper's four, by its names, with the tokens that serve as [CLS] and [SEP] here."""
    marks = {name: getattr(tokenizer, part, None) or name for name, part in ((CLS, "cls_token"), (SEP, "sep_token"))}
    named = [Category(name, frozenset({str(mark)})) for name, mark in marks.items()]
    return Categories((*named, Category(STOPS, frozenset({",", "."}))))


def _other_model(subject: Subject) -> str:
    """Why a model cannot be bert-base-uncased, by its configuration."""
    for name, value in MODEL.items():
        got = getattr(subject.config, name, None)
        if got != value:
            return f"its {name} is {got}, and that of bert-base-uncased {value}"
    return ""


def _check_vocabulary(name: str, tokenizer: Any) -> None:
    known = tokenizer.get_vocab()
    unknown = [mark for mark in (CLS, SEP) if mark not in known]
    if unknown:
        raise ReproductionError(
            f"The data is wordpieces of BERT, and '{name}' has no token {' or '.join(unknown)}.",
            cause="a model with another tokenizer, which would read every token as unknown.",
            do="give bert-base-uncased, or another model with its vocabulary; or data that is text.",
        )
