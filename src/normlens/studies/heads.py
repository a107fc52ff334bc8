"""The profile of every head of a model: all studies of heads in one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from normlens.corpora import Corpus, default_corpus
from normlens.corpora import corpus as as_corpus
from normlens.lens import Lens
from normlens.studies.importance import ImportanceStudy, check_precision
from normlens.studies.losses import class_of, loss_for
from normlens.studies.report import Report, study
from normlens.studies.study import Study, StudyError
from normlens.views import check

HEAD_STUDIES = ("maps", "targets", "patterns", "distances", "similarity", "sinks", "importance")


def heads(
    lens: Lens,
    corpus: Any = None,
    *,
    studies: Sequence[str | Study[Any]] = HEAD_STUDIES,
    loss: str | None = None,
    out: str | Path | None = None,
    **options: Any,
) -> Report:
    """The profile of every head over a corpus: `.heads` has one row each, `.to_dataframe()` the same as a frame.

    `corpus`, `out` and `options` are those of `normlens.report`. `studies` may hold some of your own: what their
    `per_head` returns is in the profile. The importance of heads needs a `loss`, by default the one the model was made
    for; where there is none the column is empty and a note says why.
    """
    if out is not None:
        check()
    texts = default_corpus() if corpus is None else corpus if isinstance(corpus, Corpus) else as_corpus(corpus)
    named: list[Any] = [studies] if isinstance(studies, str) else list(studies)
    notes: tuple[str, ...] = ()
    if "importance" in named:
        named[named.index("importance")], notes = _importance(lens, texts, loss)
    found = study(lens, texts, studies=named, folder=out, **options)
    report = Report(replace(found, run=replace(found.run, notes=(*found.run.notes, *notes))))
    if out is not None:
        report.save(out)
    return report


def _importance(lens: Lens, corpus: Corpus, loss: str | None) -> tuple[ImportanceStudy, tuple[str, ...]]:
    """The study by this loss; without a loss where none was asked for and there is none, and why."""
    try:
        task = loss_for(lens, loss)
        check_precision(lens)
        first = next(iter(corpus), None)
        if task == "classification" and first is not None:
            class_of(lens, first)
        return ImportanceStudy(loss=task if loss is not None else None), ()
    except StudyError as error:
        if loss is not None:
            raise
        why = f"The importance of heads is left out: {error.what}"
        return ImportanceStudy(loss="none"), (f"{why} To have it: {error.do}" if error.do else why,)
