"""What was found, in sentences that follow from the numbers.

Room: results to words. Every sentence is a branch on its own numbers and stays true for any model; where a number is
not defined there is no sentence, or one that says why.
"""

from __future__ import annotations

from normlens.reports.kinds import ordered
from normlens.reports.words.categories import categories
from normlens.reports.words.correlation import correlation
from normlens.reports.words.dispersion import dispersion
from normlens.reports.words.frequency import frequency
from normlens.studies.results import Categories, Correlation, Dispersion, Findings, Frequency

STUDIES = ("dispersion", "categories", "correlation", "frequency")
HEADLINES = {"dispersion": 1, "categories": 2, "correlation": 1, "frequency": 1}  # sentences that go to the top


def results(findings: Findings, study: str) -> dict[str, Dispersion | Categories | Correlation | Frequency]:
    """What one study found, by kind of attention, in reading order."""
    found = getattr(findings, study)
    return {kind: found[kind] for kind in ordered(found)}


def said(result: Dispersion | Categories | Correlation | Frequency) -> list[str]:
    """The sentences of one study and one kind of attention, the most telling first."""
    if isinstance(result, Dispersion):
        return dispersion(result)
    if isinstance(result, Categories):
        return categories(result)
    if isinstance(result, Correlation):
        return correlation(result)
    return frequency(result)


def headlines(findings: Findings) -> dict[str, list[str]]:
    """By kind of attention: the first sentences of every study."""
    by_kind: dict[str, list[str]] = {}
    for study in STUDIES:
        for kind, result in results(findings, study).items():
            by_kind.setdefault(kind, []).extend(said(result)[: HEADLINES[study]])
    return {kind: by_kind[kind] for kind in ordered(by_kind) if by_kind[kind]}
