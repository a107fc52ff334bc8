"""A report as data: what is said, shown and listed, before it is a page, a terminal or a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, get_args

from normlens.exhibits.figures import Figure
from normlens.exhibits.table import ExhibitError, Table

Exhibit = Table | Figure
E = TypeVar("E", bound=Exhibit)


@dataclass(frozen=True, slots=True)
class Section:
    """What one study found: sentences, the most telling first; then figures and tables; then what must be known."""

    sentences: Sequence[str]
    exhibits: Sequence[Exhibit] = ()
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name, texts in (("sentences", self.sentences), ("notes", self.notes)):
            if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
                raise ExhibitError(f"The {name} of a section must be a list of texts.", got=repr(texts)[:80])
        for exhibit in self.exhibits:
            if not isinstance(exhibit, get_args(Exhibit)):
                kinds = ", ".join(kind.__name__ for kind in get_args(Exhibit))
                raise ExhibitError(
                    "An exhibit of a section must be a table or a figure.",
                    got=repr(exhibit)[:80],
                    do=f"give one of {kinds}.",
                )


@dataclass(frozen=True, slots=True)
class Article:
    """A section with its place: `name` ends the names of its files, and is empty where there is only one."""

    section: Section
    name: str = ""
    title: str = ""
    lead: str = ""
    headlines: int = 1  # of its sentences go to the top of the page

    @property
    def tables(self) -> list[Table]:
        return [exhibit for exhibit in self.section.exhibits if isinstance(exhibit, Table) and exhibit.rows]

    @property
    def figures(self) -> list[Figure]:
        return [exhibit for exhibit in self.section.exhibits if not isinstance(exhibit, Table)]

    def file(self, exhibit: Exhibit) -> str:
        """The name of an exhibit's files, without folder and suffix."""
        return f"{exhibit.name}_{self.name}" if self.name else exhibit.name


@dataclass(frozen=True, slots=True)
class Chapter:
    """One study: its question, what it found in each article, what to mind, and how it was computed."""

    name: str
    title: str
    articles: tuple[Article, ...]
    question: str = ""
    caution: str = ""
    method: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """Everything a report shows."""

    title: str
    lead: str
    facts: tuple[tuple[str, str], ...]
    chapters: tuple[Chapter, ...]
    signatures: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()
    closing: str = ""
    found: tuple[str, ...] = ()  # sentences for the top, beside the headlines of the articles
    files: tuple[str, ...] = field(default=())  # further files that stand beside the page

    def articles(self) -> Iterator[Article]:
        return (article for chapter in self.chapters for article in chapter.articles)

    def headlines(self) -> dict[str, list[str]]:
        """The first sentences of every article, under the title of the article."""
        by_title: dict[str, list[str]] = {"": list(self.found)} if self.found else {}
        for article in self.articles():
            by_title.setdefault(article.title, []).extend(article.section.sentences[: article.headlines])
        return {title: sentences for title, sentences in by_title.items() if sentences}

    def tables(self) -> dict[str, Table]:
        """Every table by the name of its files."""
        return _by_file([(article.file(table), table) for article in self.articles() for table in article.tables])

    def figures(self) -> dict[str, Figure]:
        """Every figure by the name of its files."""
        return _by_file([(article.file(figure), figure) for article in self.articles() for figure in article.figures])


def _by_file(named: list[tuple[str, E]]) -> dict[str, E]:
    """By file, where each has a name of its own that a file can have."""
    by_file: dict[str, E] = {}
    for file, exhibit in named:
        if not re.fullmatch(r"[\w-][\w.-]*", file):
            raise ExhibitError(
                f"No file can be called '{file}'.", do="name tables and figures with letters, digits, _ and -."
            )
        if file in by_file:
            raise ExhibitError(
                f"Two exhibits of the same type would be written to the same file, '{file}'.",
                do="give every table, and every figure, of a report a name of its own.",
            )
        by_file[file] = exhibit
    return by_file
