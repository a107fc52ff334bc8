"""What each result becomes in a report: sentences, tables, figures.

Room: one row per study, and findings gone through in reading order. How a part is made is known elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from normlens.reports import pictures, rows, words
from normlens.reports.kinds import ordered
from normlens.reports.pictures.canvas import Picture
from normlens.reports.rows.row import Row
from normlens.studies import STUDIES
from normlens.studies.results import Categories, Correlation, Dispersion, Findings, Frequency, Result


@dataclass(frozen=True, slots=True)
class Parts:
    """How the result of one study is told, tabulated and drawn."""

    words: Callable[[Any], list[str]]
    rows: Callable[[Any], dict[str, list[Row]]]
    pictures: Callable[[Any], list[Picture]]
    headlines: int  # sentences that go to the top


PARTS: dict[type[Result], Parts] = {
    Dispersion: Parts(words.dispersion, rows.dispersion, pictures.dispersion, headlines=1),
    Categories: Parts(words.categories, rows.categories, pictures.categories, headlines=2),
    Correlation: Parts(words.correlation, rows.correlation, pictures.correlation, headlines=1),
    Frequency: Parts(words.frequency, rows.frequency, pictures.frequency, headlines=1),
}


def results(findings: Findings, study: str) -> dict[str, Result]:
    """What one study found, by kind of attention, in reading order."""
    found = getattr(findings, study)
    return {kind: found[kind] for kind in ordered(found)}


def said(result: Result) -> list[str]:
    """The sentences of one study and one kind of attention, the most telling first."""
    return PARTS[type(result)].words(result)


def tables_of(result: Result) -> dict[str, list[Row]]:
    """The tables of one study and one kind of attention, those to read before those to compute with."""
    return PARTS[type(result)].rows(result)


def pictures_of(result: Result) -> list[Picture]:
    """The figures of one study and one kind of attention, in reading order."""
    return PARTS[type(result)].pictures(result)


def headlines(findings: Findings) -> dict[str, list[str]]:
    """By kind of attention: the first sentences of every study."""
    by_kind: dict[str, list[str]] = {}
    for study in STUDIES:
        for kind, result in results(findings, study).items():
            by_kind.setdefault(kind, []).extend(said(result)[: PARTS[type(result)].headlines])
    return {kind: by_kind[kind] for kind in ordered(by_kind) if by_kind[kind]}


def tables(findings: Findings) -> dict[str, list[Row]]:
    """Every table by name, `what_kind`: dispersion_self, categories_layers_cross ..."""
    return {
        f"{name}_{kind}": rows
        for study in STUDIES
        for kind, result in results(findings, study).items()
        for name, rows in tables_of(result).items()
    }
