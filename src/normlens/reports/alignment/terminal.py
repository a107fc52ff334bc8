"""The comparison in the terminal: the aligners by group, their errors in columns, and what was chosen without gold.

Room: scores to characters. No colour, no files.
"""

from __future__ import annotations

from collections.abc import Sequence

from normlens.alignment.table import Compared
from normlens.reports.alignment.scores import SAMPLES, Scored, gold_links, groups, lowest, scored
from normlens.reports.alignment.telling import GOLD, aer, names
from normlens.reports.numbers import many
from normlens.views.glyphs import width
from normlens.views.text import visible_line

HEADINGS = ("AER", "95 %", "precision", "recall")
BEST = "*"


def alignment_text(compared: Compared, scores: Sequence[Scored] | None = None, *, samples: int = SAMPLES) -> str:
    """Table 3 of the 2020 paper, on these sentences. Percent; intervals by bootstrap over sentences."""
    scores = scored(compared, samples) if scores is None else scores
    lines = [["", *HEADINGS]]
    for group in groups(compared):
        lines.append([group])
        lines += [_line(one) for one in scores if one.method.group == group]
    winners, sure = lowest(compared.methods), gold_links(compared.methods)
    return "\n".join(
        [
            f"{many(compared.sentences, 'sentence pair')}, {many(sure, 'sure link')} in the gold",
            "",
            *_columns(lines),
            "",
            f"{BEST} lowest error of its group   {GOLD} its layer or head was chosen with the gold",
            "→ source to target, ← target to source; L1H2: layer 1, head 2, from 0; AWI, AWO: rows are the word that "
            "the decoder was given, or writes",
            *([f"lowest of all: {visible_line(names(winners))}, {aer(winners[0].aer)}"] if winners else []),
            _chosen(compared),
            "",
            visible_line(str(compared.plan.signature)),
            "",
        ]
    )


def _line(one: Scored) -> list[str]:
    method = one.method
    total = None if method.tally is None else method.tally.total
    name = f"{BEST if one.best else ' '} {visible_line(method.name)}{' ' + GOLD if method.needs_gold else ''}"
    interval = "" if one.interval is None else f"[{100 * one.interval.low:.1f}, {100 * one.interval.high:.1f}]"
    shares = (
        ("", "")
        if total is None
        else tuple("–" if s != s else f"{100 * s:.1f}" for s in (total.precision, total.recall))
    )
    return [name, f"{100 * method.aer:.1f}", interval, *shares]


def _columns(lines: list[list[str]]) -> list[str]:
    """Names to the left, numbers to the right."""
    full = [line for line in lines if len(line) > 1]
    widths = [max(_cells(line[place]) for line in full) for place in range(len(full[0]))]
    return [
        "  ".join(
            " " * (room - _cells(text)) + text if place else text + " " * (room - _cells(text))
            for place, (text, room) in enumerate(zip(line, widths, strict=False))
        ).rstrip()
        for line in lines
    ]


def _chosen(compared: Compared) -> str:
    ways = [str(way) for way in (compared.plan.forward, compared.plan.backward) if way is not None]
    how = f", {compared.plan.combine}" if len(ways) > 1 else ""
    return visible_line(f"chosen without gold: {'; '.join(ways)}{how} → {aer(compared.chosen.aer)}")


def _cells(text: str) -> int:
    return width(text) if text else 0
