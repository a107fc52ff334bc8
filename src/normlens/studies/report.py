"""Run studies over a corpus, and hold the report: read it, save it, take its tables."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from normlens.corpora import Categories, Category, Corpus, FrequencyRanks, default_corpus
from normlens.corpora import corpus as as_corpus
from normlens.errors import NormlensError, nearest
from normlens.exhibits import as_json, drawn, page, write
from normlens.lens import Lens, import_pandas
from normlens.studies.amplification import AmplificationStudy
from normlens.studies.categories import CategoriesStudy
from normlens.studies.changes import ChangesStudy
from normlens.studies.contrast import ContrastStudy
from normlens.studies.correlation import CorrelationStudy
from normlens.studies.dispersion import DispersionStudy
from normlens.studies.distances import DistancesStudy
from normlens.studies.expansion import ExpansionStudy
from normlens.studies.findings import FILE, HEADS, Findings
from normlens.studies.forgetting import ForgettingStudy
from normlens.studies.frequency import FrequencyStudy
from normlens.studies.importance import ImportanceStudy
from normlens.studies.linearity import LinearityStudy
from normlens.studies.maps import MapsStudy
from normlens.studies.masks import MasksStudy
from normlens.studies.mixing import MixingStudy
from normlens.studies.patterns import PatternsStudy
from normlens.studies.redundancy import RedundancyStudy
from normlens.studies.relations import RelationsStudy
from normlens.studies.request import request
from normlens.studies.retrieval import RetrievalStudy
from normlens.studies.run import Run
from normlens.studies.similarity import SimilarityStudy
from normlens.studies.sinks import SinksStudy
from normlens.studies.study import Needs, Study, StudyError, named
from normlens.studies.sums import Sums
from normlens.studies.targets import TargetsStudy
from normlens.views import check

STATISTICS = "run.safetensors"
STUDIES: dict[str, Study[Any]] = {
    study.name: study
    for study in (
        DispersionStudy(),
        CategoriesStudy(),
        CorrelationStudy(),
        FrequencyStudy(),
        MapsStudy(),
        TargetsStudy(),
        ContrastStudy(),
        PatternsStudy(),
        DistancesStudy(),
        RelationsStudy(),
        SimilarityStudy(),
        SinksStudy(),
        RetrievalStudy(),
        MasksStudy(),
        ForgettingStudy(),
        ImportanceStudy(),
        ChangesStudy(),
        MixingStudy(),
        ExpansionStudy(),
        RedundancyStudy(),
        LinearityStudy(),
        AmplificationStudy(),
    )
}
DEFAULT = ("dispersion", "categories", "correlation", "frequency")  # those of the 2020 paper


class NoTable(NormlensError, LookupError):
    """A table that this report does not have."""


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """What was found, ready to be read. In a notebook it is the page itself."""

    findings: Findings

    @property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Every table by its name, as rows."""
        return {name: list(table.rows) for name, table in self.findings.document().tables().items()}

    @property
    def heads(self) -> list[dict[str, Any]]:
        """The profile of every head: one row for each kind of attention, layer and head, with the same columns."""
        rows = [{"kind": kind, **row} for kind, profile in self.findings.heads.items() for row in profile.rows()]
        columns = dict.fromkeys(name for row in rows for name in row)
        return [{name: row.get(name) for name in columns} for row in rows]

    def to_dataframe(self, name: str = "heads") -> Any:
        """The profile of every head, or one of the tables."""
        tables = self.tables | {"heads": heads} if (heads := self.heads) else self.tables
        if name not in tables:
            what = "This report has no profile of heads." if name == "heads" else f"There is no table '{name}'."
            raise NoTable(
                what, got=f"the tables {', '.join(tables)}.", do=nearest(name, tables) or "choose one of these."
            )
        return import_pandas().DataFrame(tables[name])

    def save(self, folder: str | Path) -> Path:
        """Write report.html, findings.json, heads.json, figures/ and tables/; the path of the page."""
        beside = {FILE: as_json(self.findings.to_json())}
        if (heads := self.findings.heads_json()) is not None:
            beside[HEADS] = as_json(heads)
        return write(self.findings.document(), Path(folder), beside=beside)

    def show(self) -> str:
        """The findings in words and small tables, for a terminal."""
        return self.findings.show()

    def __repr__(self) -> str:
        return self.show()

    def _repr_html_(self) -> str:
        document = self.findings.document()
        whole = html.escape(page(document, drawn(document)))
        frame = f'<iframe title="normlens report" srcdoc="{whole}" style="width:100%;height:900px;border:0"></iframe>'
        return f"{frame}<details><summary>the same as text</summary><pre>{html.escape(self.show())}</pre></details>"


def study(
    lens: Lens,
    corpus: Any,
    *,
    studies: Sequence[str | Study[Any]] = DEFAULT,
    categories: Categories | Sequence[Category] | Mapping[str, Any] | None = None,
    ranks: FrequencyRanks | str | Path | None = None,
    length: int = 128,
    limit: int | None = None,
    seed: int = 0,
    batch_tokens: int = 4096,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Findings:
    """Run studies over a corpus: a path, a list of texts or pairs, or what `normlens.corpora.corpus` returns.

    `studies` are names, or studies of your own; `categories` maps names to tokens or patterns; `ranks` is a file of
    frequency ranks, "vocabulary", or "corpus" to count them here. With a `folder` the run is saved as it goes, and
    `resume` continues it.
    """
    if resume and folder is None:
        raise StudyError("There is nothing to resume without the folder of the run.", do="give it: --out, or out=.")
    picked = chosen(studies)
    asked = request(
        lens,
        _prepared(as_corpus(corpus), picked, lens, length),
        studies=picked,
        categories=categories,
        ranks=ranks,
        length=length,
        limit=limit,
        seed=seed,
        batch_tokens=batch_tokens,
    )
    run = Run(asked, None if folder is None else Path(folder) / STATISTICS, resume=resume)
    try:
        run.go((lambda items: None) if progress is None else (lambda items: progress(items, asked.items)))
        return findings(run)
    except KeyboardInterrupt as stopped:
        stopped.add_note(run.left())
        raise


def _prepared(corpus: Corpus, studies: Sequence[Study[Any]], lens: Lens, length: int) -> Corpus:
    """The texts to read. A study that makes others of them must be the only one, or all would read these."""
    for one in studies:
        with named(one, "prepared"):
            texts = one.prepared(corpus, lens, length)
        if texts is corpus:
            continue
        if len(studies) > 1:
            raise StudyError(f"The study '{one.name}' changes the texts, so it runs alone.", do="run it by itself.")
        return texts
    return corpus


def findings(run: Run) -> Findings:
    """Everything the run counted, as results."""
    statistics, facts = run.settled(), run.facts()
    results: dict[str, dict[str, Any]] = {}
    for one in run.request.studies:
        sums = Sums(statistics, one.name)
        with named(one, "result"):
            results[one.name] = {kind: one.result(sums.of(kind), facts) for kind in sums.kinds}
    nothing = tuple(f"The study '{name}' counted nothing." for name, by_kind in results.items() if not by_kind)
    facts = replace(facts, notes=(*facts.notes, *nothing))
    return Findings(facts, run.request.studies, results)


def report(
    lens: Lens,
    corpus: Any = None,
    *,
    studies: Sequence[str | Study[Any]] = DEFAULT,
    out: str | Path | None = None,
    **options: Any,
) -> Report:
    """Study a corpus and report what was found; every study, or those that are named or given.

    `corpus` is a path, a list of texts or of pairs, or nothing for the bundled text. `options` are those of
    `normlens.studies.study`: categories, ranks, length, limit, seed, batch_tokens, resume, progress. With `out` the run
    is saved in that folder as it goes, and so is the report.
    """
    if out is not None:
        check()
    corpus = default_corpus() if corpus is None else corpus
    made = Report(study(lens, corpus, studies=studies, folder=out, **options))
    if out is not None:
        made.save(out)
    return made


def chosen(studies: Sequence[str | Study[Any]]) -> tuple[Study[Any], ...]:
    """Studies by name or as they are: ours in the order of the list, then those given as objects."""
    if isinstance(studies, str):
        studies = (studies,)
    registered = {id(one): name for name, one in STUDIES.items()}
    studies = [registered.get(id(one), one) for one in studies]
    names = [name for name in studies if isinstance(name, str)]
    unknown = next((name for name in names if name not in STUDIES), None)
    if unknown is not None:
        raise StudyError(
            f"There is no study '{unknown}'.", do=f"{nearest(unknown, STUDIES)}Choose among {', '.join(STUDIES)}."
        )
    own: list[Study[Any]] = []
    for one in studies:
        if not isinstance(one, str):
            _check_own(one, [*STUDIES, *names, *(other.name for other in own)])
            own.append(one)
    if not studies:
        raise StudyError("No study was named.", do=f"choose among {', '.join(STUDIES)}.")
    return (*(one for name, one in STUDIES.items() if name in names), *own)


def _check_own(own: Any, taken: list[str]) -> None:
    """Everything that can be known of a study before the run."""
    if not isinstance(own, Study):
        is_class = isinstance(own, type) and issubclass(own, Study)
        raise StudyError(
            f"{own!r} is no study.",
            do=f"give an instance of it: {own.__name__}()."
            if is_class
            else "give a name, or an instance of a subclass of normlens.Study.",
        )
    kind, name, title = type(own), getattr(own, "name", None), getattr(own, "title", None)
    if not isinstance(name, str) or not name.isidentifier() or not isinstance(title, str) or not title:
        raise StudyError(
            f"The study {kind.__name__} needs a name and a title.",
            got=f"name={name!r}, title={title!r}",
            do="set both on the class; the name is made of letters, digits and _, since files are called by it.",
        )
    ours = name in STUDIES and kind is type(STUDIES[name])  # made with other choices
    if taken.count(name) > ours:
        raise StudyError(f"There is already a study called '{name}'.", do=f"give {kind.__name__} a name of its own.")
    missing = [method for method in ("result", "section") if getattr(kind, method) is getattr(Study, method)]
    if all(getattr(kind, method) is getattr(Study, method) for method in ("see", "see_pass", "counter")):
        missing.insert(0, "see")
    if missing:
        raise StudyError(
            f"The study '{name}' has no {missing[0]}().", do="write it; normlens.Study says what it returns."
        )
    if not isinstance(own.needs, Needs):
        raise StudyError(f"What the study '{name}' needs is not given as Needs.", got=repr(own.needs)[:80])
