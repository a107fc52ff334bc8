"""Findings and figures as one page that stands alone.

Room: results to HTML. The page itself, its style and the words on method are the real files in assets/, put in as they
are. Nothing is fetched (a content security policy in the page forbids it), nothing is random.
"""

from __future__ import annotations

import re

from normlens.reports.exhibits import Numbering
from normlens.reports.kinds import title
from normlens.reports.markup import asset, bullets, escaped, filled, pairs
from normlens.reports.numbers import many, number
from normlens.reports.parts import headlines, results
from normlens.reports.pictures import Drawn
from normlens.reports.section import section
from normlens.reports.words.categories import CLEAR as POINTS
from normlens.reports.words.dispersion import ALIKE, HARDLY
from normlens.reports.words.naming import CLEAR
from normlens.studies import STUDIES
from normlens.studies.results import Findings

LIMITS = {"clear": f"{CLEAR:g}", "points": f"{100 * POINTS:g}", "hardly": f"{HARDLY:g}", "alike": f"{ALIKE:g}"}


def page(findings: Findings, drawn: dict[str, Drawn]) -> str:
    """One self-contained HTML page; `drawn` holds every figure by its name."""
    numbering = Numbering()
    parts, contents = [], []
    for study in STUDIES:
        kinds = {kind: section(findings, study, kind, drawn, numbering) for kind in results(findings, study)}
        if kinds:
            parts.append(filled(asset(f"{study}.html"), {**LIMITS, "kinds": "".join(kinds.values())}))
            contents.append(_entry(study, list(kinds)))
    contents.append('<li><a href="#reproduce">Reproduce</a></li>')
    return filled(
        asset("report.html"),
        {
            "model": escaped(findings.model),
            "style": asset("report.css"),
            "facts": pairs(_facts(findings)),
            "found": _found(findings),
            "contents": "".join(contents),
            "studies": "".join(parts),
            "signature": escaped(str(findings.signature)),
            "settings": pairs(list(findings.signature.facts)),
        },
    )


def _facts(findings: Findings) -> list[tuple[str, str]]:
    cut = f"at most {many(findings.length, 'token')} each, {number(findings.mean_length)} on average"
    return [
        ("model", findings.model),
        ("corpus", findings.corpus),
        ("looked at", f"{many(findings.items, 'item')}, {many(findings.tokens, 'token')}; {cut}"),
        ("exactness", f"the parts rebuilt every attention block to {number(findings.error, 2)} (relative, the worst)"),
        *(("note", note) for note in findings.notes),
    ]


def _found(findings: Findings) -> str:
    by_kind = headlines(findings)
    if not by_kind:
        return "<p>No study has anything to say about this corpus.</p>"
    lists = []
    for kind, sentences in by_kind.items():
        heading = f"<h3>{escaped(title(kind))}</h3>" if len(by_kind) > 1 else ""
        lists.append(heading + bullets(sentences))
    return "".join(lists)


def _entry(study: str, kinds: list[str]) -> str:
    heading = re.search(r"<h2>(.*?)</h2>", asset(f"{study}.html"))
    assert heading is not None
    links = ", ".join(f'<a href="#{study}-{escaped(kind)}">{escaped(title(kind).lower())}</a>' for kind in kinds)
    return f'<li><a href="#{study}">{heading[1]}</a>' + (f" <span>{links}</span></li>" if len(kinds) > 1 else "</li>")
