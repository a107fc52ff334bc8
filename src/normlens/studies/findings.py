"""What the studies of one corpus found, and the same as a document to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from normlens.exhibits import Article, Chapter, Document, Section, many, number, plain, show
from normlens.studies.kinds import explained, title
from normlens.studies.maps import MapsStudy
from normlens.studies.per_head import PerHead
from normlens.studies.profile import chapter, described, profiles
from normlens.studies.seen import Facts
from normlens.studies.study import Study, StudyError, named
from normlens.views import visible_line

FILE, HEADS = "findings.json", "heads.json"
LEAD = (
    "An attention weight α says how much attention a token receives. Its contribution to the output is α·f(x), the "
    "weight times its transformed vector. A token can receive much attention and contribute almost nothing, because "
    "its f(x) is short. This report measures both for every attention head of one model on one corpus: the attention "
    "weights α, and the norms ‖αf(x)‖ of the contributions."
)
CLOSING = (
    "The method is that of Kobayashi, Kuribayashi, Yokoi and Inui, “Attention is Not Only a Weight: Analyzing "
    "Transformers with Vector Norms”, EMNLP 2020, called “the paper” here. Numbers of figures and tables of the paper "
    "are those of its first version, arXiv 2004.10102v1."
)


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """Everything the studies found for one model and one corpus: `findings["categories"]["self"]` is a result."""

    run: Facts
    studies: tuple[Study[Any], ...]
    results: dict[str, dict[str, Any]]  # by study and kind of attention

    def __getitem__(self, study: str) -> dict[str, Any]:
        """The results of one study by kind of attention; none where it was not run."""
        return self.results.get(study, {})

    @property
    def heads(self) -> dict[str, PerHead]:
        """The profile of every head by kind of attention: the columns of all studies."""
        return profiles(self)

    def document(self) -> Document:
        """Every section in its place; the profile of the heads first, with their maps."""
        run, heads = self.run, chapter(self, self.heads)
        apart = [study for study in self.studies if heads is None or not isinstance(study, MapsStudy)]
        cut = f"at most {many(run.length, 'token')} each, {number(run.mean_length)} on average"
        return Document(
            title=f"Attention and contributions in {run.model}",
            lead=LEAD,
            facts=(
                ("model", run.model),
                ("corpus", run.corpus),
                ("measured", f"{many(run.items, 'item')}, {many(run.tokens, 'token')}; {cut}"),
                (
                    "exactness",
                    f"the parts rebuild every attention block to {number(run.error, 2)} (relative, the worst)",
                ),
                *(("note", note) for note in run.notes),
            ),
            chapters=(
                *(() if heads is None else (heads,)),
                *(self._chapter(study) for study in apart if self[study.name]),
            ),
            signatures=(str(run.signature),),
            settings=run.signature.facts,
            closing=CLOSING,
            files=(FILE,),
        )

    def _chapter(self, study: Study[Any]) -> Chapter:
        articles = [
            Article(
                section=self._section(study, result),
                name=kind,
                title=title(kind),
                lead=explained(kind, study.causal if kind in self.run.causal else ""),
                headlines=study.headlines,
            )
            for kind, result in self[study.name].items()
        ]
        return Chapter(study.name, study.title, tuple(articles), study.question, study.caution, study.method)

    def _section(self, study: Study[Any], result: Any) -> Section:
        with named(study, "section"):
            section = study.section(result, self.run)
            if not isinstance(section, Section):
                raise StudyError("what it returns is no Section.", got=repr(section)[:80])
            return section

    def show(self) -> str:
        """A summary for the terminal."""
        run = self.run
        measured = f"{many(run.items, 'item')}, {many(run.tokens, 'token')}, at most {many(run.length, 'token')} each"
        lead = (
            f"{visible_line(run.model)} on {visible_line(run.corpus)}\n"
            f"{measured}; the parts rebuild every block to {number(run.error, 2)}\n"
        )
        notes = "".join(f"Note: {visible_line(note)}\n" for note in run.notes)
        return show(self.document(), lead + notes)

    def heads_json(self) -> dict[str, Any] | None:
        """The profile of every head as a reader sees it, for the explorer; None where no study describes heads."""
        heads = self.heads
        if not heads:
            return None
        return {
            "model": self.run.model,
            "corpus": self.run.corpus,
            "kinds": {
                kind: {
                    "columns": [[column.group, column.heading] for column in profile.headed[1:]],
                    "heads": {
                        str(row["head_name"]): {
                            "says": described(row),
                            "values": [column.written(row) for column in profile.headed[1:]],
                        }
                        for row in profile.rows()
                    },
                }
                for kind, profile in heads.items()
            },
        }

    def _headlines(self, document: Document) -> dict[str, list[str]]:
        """The main results by kind of attention."""
        by_kind: dict[str, list[str]] = {}
        for article in document.articles():
            by_kind.setdefault(article.name, []).extend(article.section.sentences[: article.headlines])
        return by_kind

    def to_json(self) -> dict[str, Any]:
        """The main results for a program: facts, sentences, and the short tables of every study and kind."""
        run, document = self.run, self.document()
        return {
            "signature": str(run.signature),
            "settings": dict(run.signature.facts),
            "model": run.model,
            "corpus": run.corpus,
            "items": run.items,
            "tokens": run.tokens,
            "squares": run.squares,
            "mean_length": plain(run.mean_length),
            "length": run.length,
            "causal": list(run.causal),
            "error": plain(run.error),
            "notes": list(run.notes),
            "found": self._headlines(document),
            "studies": {
                chapter.name: {
                    article.name: {
                        "sentences": list(article.section.sentences),
                        **{table.name: list(table.rows) for table in article.tables if table.is_summary},
                    }
                    for article in chapter.articles
                }
                for chapter in document.chapters
            },
        }
