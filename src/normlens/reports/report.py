"""A report as a thing to hold: look at it, save it, take its tables.

Room: the door to studies and their report from Python.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from normlens.corpora import default_corpus
from normlens.errors import NormlensError
from normlens.lens import Lens
from normlens.lens.table import import_pandas
from normlens.reports.files import drawn_figures, write
from normlens.reports.page import page
from normlens.reports.parts import tables
from normlens.reports.pictures import check
from normlens.reports.terminal import show
from normlens.studies import STUDIES, Findings, study


class NoTable(NormlensError, LookupError):
    """A table that this report does not have."""


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """What was found, ready to be read. In a notebook it is the page itself."""

    findings: Findings

    @property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Every table by its name, as rows."""
        return {name: list(rows) for name, rows in tables(self.findings).items() if rows}

    def to_dataframe(self, name: str) -> Any:
        """One of the tables."""
        tables = self.tables
        if name not in tables:
            raise NoTable(
                f"There is no table '{name}'.",
                do=f"choose one of {', '.join(tables)}.",
            )
        return import_pandas().DataFrame(tables[name])

    def save(self, folder: str | Path) -> Path:
        """Write report.html, figures/ and tables/; the path of the page."""
        return write(self.findings, Path(folder))

    def show(self) -> str:
        """The findings in words and small tables, for a terminal."""
        return show(self.findings)

    def __repr__(self) -> str:
        return self.show()

    def _repr_html_(self) -> str:
        whole = html.escape(page(self.findings, drawn_figures(self.findings)))
        frame = f'<iframe title="normlens report" srcdoc="{whole}" style="width:100%;height:900px;border:0"></iframe>'
        return f"{frame}<details><summary>the same as text</summary><pre>{html.escape(self.show())}</pre></details>"


def report(lens: Lens, corpus: Any = None, *studies: str, out: str | Path | None = None, **options: Any) -> Report:
    """Study a corpus and report what was found; all four studies, or those that are named.

    `corpus` is a path, a list of texts or of pairs, or nothing for the embedded text. `options` are those of
    `normlens.studies.study`: categories, ranks, length, limit, seed, batch_tokens, resume, progress. With `out` the run
    is saved in that folder as it goes, and so is the report.
    """
    if out is not None:
        check()
    corpus = default_corpus() if corpus is None else corpus
    made = Report(study(lens, corpus, names=studies or STUDIES, folder=out, **options))
    if out is not None:
        made.save(out)
    return made
