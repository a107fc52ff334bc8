"""Run the studies of the 2020 paper on a corpus and gather what they found.

Room: studies. The functions users call: all studies at once, or one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from normlens.corpora import Categories, Category, Corpus, FrequencyRanks
from normlens.corpora import corpus as as_corpus
from normlens.lens import Lens, singular_values
from normlens.lens.doctor import NoProbe
from normlens.lens.wiring import SIDES
from normlens.studies import results
from normlens.studies.categories import categories as categories_result
from normlens.studies.correlation import correlation as correlation_result
from normlens.studies.dispersion import dispersion as dispersion_result
from normlens.studies.frequency import frequency as frequency_result
from normlens.studies.frequency import spelled
from normlens.studies.run import Run
from normlens.studies.setting import STUDIES, Setting, StudyError, setting

STATE = "run.safetensors"


def study(
    lens: Lens,
    corpus: Any,
    *,
    names: Sequence[str] = STUDIES,
    categories: Categories | Sequence[Category] | Mapping[str, Any] | None = None,
    ranks: FrequencyRanks | str | Path | None = None,
    length: int = 128,
    limit: int | None = None,
    seed: int = 0,
    batch_tokens: int = 4096,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> results.Findings:
    """Run studies over a corpus: a path, a list of texts or pairs, or what `normlens.corpora.corpus` gives.

    `categories` maps names to tokens or patterns; `ranks` is a file of frequency ranks, "vocabulary", or "corpus" to
    count them here. With a `folder` the run is saved as it goes, and `resume` continues it.
    """
    if resume and folder is None:
        raise StudyError(
            "There is nothing to resume without the folder of the run.",
            do="give it: --out, or out=.",
        )
    one = setting(
        lens,
        corpus if isinstance(corpus, Corpus) else as_corpus(corpus),
        studies=names,
        categories=categories,
        ranks=ranks,
        length=length,
        limit=limit,
        seed=seed,
        batch_tokens=batch_tokens,
    )
    run = Run(one, None if folder is None else Path(folder) / STATE, resume=resume)
    try:
        run.go((lambda items: None) if progress is None else (lambda items: progress(items, one.items)))
        return findings(one, run)
    except KeyboardInterrupt as stopped:
        stopped.add_note(run.left())
        raise


def findings(setting: Setting, run: Run) -> results.Findings:
    """Everything the run counted, as results."""
    state, names, wanted = run.settled(), setting.categories.names, setting.studies
    singular, reasons, notes = {}, {}, list(setting.corpus.notes)
    if "dispersion" in wanted:
        try:
            found = singular_values(setting.lens)
            singular, reasons = found.values, found.reasons
        except NoProbe as error:
            notes.append(str(error))
    notes += [f"{block} is left out: {reason}." for block, reason in sorted(run.facts.get("left_out", {}).items())]
    notes += [f"{w.kind} L{w.layer} is left out: {w.reason}." for w in setting.lens.wires if w.reason]
    tokenizer = setting.lens.subject.tokenizer
    return results.Findings(
        model=f"{setting.lens.subject.name}@{setting.lens.subject.revision}",
        corpus=setting.corpus.describe(),
        items=run.facts["items"],
        tokens=run.facts["tokens"],
        squares=run.facts["squares"],
        mean_length=run.facts["tokens"] / max(1, run.facts["items"]),
        length=setting.length,
        causal=tuple(run.facts["causal"]),
        error=run.facts["error"],
        notes=tuple(notes),
        signature=setting.signature,
        dispersion={k: dispersion_result(state, k, singular, reasons) for k in state.kinds("dispersion")},
        categories={k: categories_result(state, k, names, _loose(run, k)) for k in state.kinds("categories")},
        correlation={k: correlation_result(state, k, names) for k in state.kinds("correlation")},
        frequency={
            k: frequency_result(state, k, names, setting.ranks, tokenizer)
            for k in state.kinds("frequency")
            if setting.ranks
        },
    )


def _loose(run: Run, kind: Any) -> dict[str, int]:
    """The special tokens among the "other" tokens that attention of this kind looks at, by name."""
    found = run.facts["loose"].get(SIDES[kind][1], {})
    names = spelled(run.setting.lens.subject.tokenizer, [int(token) for token in found])
    return dict(zip(names, found.values(), strict=True))
