"""The profile of every head: the columns of all studies joined, one row for each (kind, layer, head), and its role.

A role is what a head clearly does, by stated bounds of ours. A head may have several, or none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normlens.exhibits import Article, Chapter, Exhibit, Row, Section, count, listing, many, percent
from normlens.studies.kinds import explained, title
from normlens.studies.maps import MapsStudy, difference, thumbnails
from normlens.studies.patterns import PATTERNS
from normlens.studies.per_head import MEASURES, HeadColumn, PerHead
from normlens.studies.places import phrase
from normlens.studies.study import StudyError, named
from normlens.studies.targets import MOST

if TYPE_CHECKING:
    from normlens.studies.findings import Findings

NAME, TITLE = "heads", "What does each head do?"
OWN = ("head_name", "kind", "layer", "head", "role")  # columns that are there in every profile
PLAIN = "heterogeneous"  # the pattern whose maps have no coloured frame
SHARES = {  # columns of `targets` that make a role from MOST on
    "current": "token itself",
    "previous": "previous token",
    "next": "next token",
    "special": "special tokens",
    "punctuation": "punctuation",
    "duplicate": "copies",
    "induction": "induction",
}
FEW = 10  # items, below which roles are said with a caution
COPIES = 15.0  # high pairs are copies of a token so many times as often as all pairs
SAME_SENTENCE = 1.2  # high pairs are of one sentence so many times as often as pairs equally far apart
ONE_TOKEN = 0.6  # share of the high pairs that the dominant token takes part in
METHOD = (
    "One row for each head, with what every study of this report says of it. Columns are named after the study; the "
    "chapters below say how each is computed.",
    "Roles are ours. A head has the role of a target (the token itself, the previous or next token, special tokens, "
    f"punctuation, copies of the token, induction) when its share is above {percent(MOST)}; where this holds by α "
    "or by ‖αf(x)‖ only, the role says so. A sink is named with its kind and place. A head pairs copies when its "
    f"repetition lift is at least {COPIES:g}, and tokens of one sentence when the lift over pairs equally far apart "
    f"is at least {SAME_SENTENCE:g}. It is built around one token when the dominant token takes part in "
    f"{percent(ONE_TOKEN)} of its high pairs or more, at least halfway from chance to all of them; the token is "
    "named when it is the same in most texts.",
)


def profiles(findings: Findings) -> dict[str, PerHead]:
    """By kind of attention the columns of all studies, in their order, and before them the role."""
    by_kind: dict[str, dict[str, PerHead]] = {}
    for study in findings.studies:
        for kind, result in findings[study.name].items():
            with named(study, "per_head"):
                heads = study.per_head(result)
                if heads is not None and not isinstance(heads, PerHead):
                    raise StudyError("what it returns is no PerHead.", got=repr(heads)[:80])
            if heads is not None and heads.columns:
                by_kind.setdefault(kind, {})[study.name] = heads
    return {kind: _with_roles(joined(parts)) for kind, parts in by_kind.items()}


def joined(parts: Mapping[str, PerHead]) -> PerHead:
    """The columns of several studies, by the name of the study, as one."""
    layers = tuple(sorted({layer for heads in parts.values() for layer in heads.layers}))
    width = max(column.values.shape[1] for heads in parts.values() for column in heads.columns)
    columns: dict[str, HeadColumn] = {}
    for study, heads in parts.items():
        for column in heads.at(layers, width).columns:
            if column.name in columns or column.name in OWN:
                other = f"the study '{columns[column.name].study}'" if column.name in columns else "the profile itself"
                raise StudyError(
                    f"The study '{study}' and {other} both have a column '{column.name}' for every head.",
                    do="give each column of per_head() a name of its own.",
                )
            columns[column.name] = replace(column, study=study)
    return PerHead(layers, tuple(columns.values()))


def role_of(row: Row) -> str:
    """What a head clearly does, in a few words; "" where nothing is clear."""
    return "; ".join([*_sink(row), *_shares(row), *_pairs(row)])


def described(row: Row) -> str:
    """A head in a sentence: its role, then its pattern by α and by ‖αf(x)‖."""
    patterns = [f"{row[f'pattern_{m}']} by {symbol}" for m, symbol in MEASURES.items() if row.get(f"pattern_{m}")]
    return "; ".join(part for part in (str(row["role"] or "no clear role"), ", ".join(patterns)) if part)


def chapter(findings: Findings, heads: Mapping[str, PerHead]) -> Chapter | None:
    """The first chapter of a report in which several studies describe the heads."""
    if all(len({column.study for column in profile.columns} - {""}) < 2 for profile in heads.values()):
        return None
    maps = next((study for study in findings.studies if isinstance(study, MapsStudy)), None)
    articles = [
        Article(
            Section(_sentences(findings, kind, profile), _exhibits(findings, kind, profile)),
            name=kind,
            title=title(kind),
            lead=explained(kind, ""),
            headlines=2,
        )
        for kind, profile in heads.items()
    ]
    method = METHOD if maps is None else (*METHOD, *maps.method)
    return Chapter(NAME, TITLE, tuple(articles), method=method, caution="" if maps is None else maps.caution)


def _with_roles(heads: PerHead) -> PerHead:
    roles = np.full((len(heads.layers), heads.columns[0].values.shape[1]), "", dtype=object)
    for row in heads.rows():
        place: Any = heads.layers.index(row["layer"]), row["head"]
        roles[place] = role_of(row)
    return PerHead(heads.layers, (HeadColumn("role", "role", roles, "text"), *heads.columns))


def _sink(row: Row) -> list[str]:
    kind = row.get("sink_kind")
    if not kind:
        return []
    named_sink = "sink" if kind == "neither" else f"{kind} sink"
    return [f"{named_sink} at {phrase(str(row['sink_position']))}"]


def _shares(row: Row) -> list[str]:
    roles = []
    for name, words in SHARES.items():
        above = [symbol for measure, symbol in MEASURES.items() if _number(row, f"{name}_{measure}") > MOST]
        if above:
            roles.append(words if len(above) == len(MEASURES) else f"{words} by {above[0]} only")
    return roles


def _pairs(row: Row) -> list[str]:
    roles = []
    if _number(row, "repetition_lift") >= COPIES:
        roles.append("pairs copies")
    if _number(row, "same_sentence_lift_at_distance") >= SAME_SENTENCE:
        roles.append("pairs tokens of one sentence")
    if _number(row, "dominant_share") >= max(ONE_TOKEN, (1 + _number(row, "dominant_by_chance")) / 2):
        is_same = _number(row, "dominant_texts") > MOST
        roles.append(f"built around “{row['dominant_token']}”" if is_same else "built around one token of each text")
    return roles


def _number(row: Row, name: str) -> float:
    value: Any = row.get(name)
    return float("-inf") if value is None else float(value)


def _sentences(findings: Findings, kind: str, heads: PerHead) -> list[str]:
    rows = heads.rows()
    sentences = []
    roles = Counter(role for row in rows if row["role"] for role in str(row["role"]).split("; "))
    if roles:
        clear = sum(bool(row["role"]) for row in rows)
        said = [f"{role} ({number})" for role, number in roles.most_common()]
        sentences.append(f"{clear} of {many(len(rows), 'head')} have a clear role by our bounds: {listing(said)}.")
        if findings.run.items < FEW:
            sentences.append(f"{many(findings.run.items, 'item')} only: roles may change with more text.")
    else:
        studies = dict.fromkeys(column.study for column in heads.columns if column.study)
        sentences.append(f"{many(len(rows), 'head')}, described by {listing(list(studies))}; none has a clear role.")
    if "maps" in findings.results and kind in findings["maps"]:
        sentences.append(difference(findings["maps"][kind]))
    if rows and "pattern_weights" in rows[0]:
        changed = [row for row in rows if row["pattern_weights"] != row["pattern_norms"]]
        if changed:
            changed.sort(key=lambda row: -_number(row, "difference"))
            said = [
                f"{row['head_name']} ({row['pattern_weights']} by α, {row['pattern_norms']} by ‖αf(x)‖)"
                for row in changed
            ]
            more = f" and {count(len(said) - 3)} more" if len(said) > 3 else ""
            sentences.append(
                f"{many(len(changed), 'head')} {'has' if len(changed) == 1 else 'have'} another pattern by "
                f"contributions than by weights: {listing(said[:3]) if not more else ', '.join(said[:3]) + more}."
            )
    return sentences


def _exhibits(findings: Findings, kind: str, heads: PerHead) -> list[Exhibit]:
    exhibits: list[Exhibit] = []
    if kind in findings["maps"]:
        columns = {column.name: column.values for column in heads.columns}
        result = findings["maps"][kind]
        places = [heads.layers.index(layer) for layer in result.layers]
        patterns = {
            measure: tuple(
                tuple(name if name != PLAIN else "" for name in row) for row in columns[f"pattern_{measure}"][places]
            )
            for measure in MEASURES
            if f"pattern_{measure}" in columns
        }
        exhibits += [replace(figure, names=PATTERNS) for figure in thumbnails(result, patterns)]
    exhibits.append(heads.table(NAME, "The profile of every head"))
    return exhibits
