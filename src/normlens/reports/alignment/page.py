"""The comparison as one page that stands alone.

Room: results to HTML. The words on method and the style are the real files in assets/, put in as they are. Nothing is
fetched (a content security policy in the page forbids it), nothing is random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from normlens.alignment.table import Compared
from normlens.reports.alignment import section
from normlens.reports.alignment.paper import SETTING
from normlens.reports.alignment.scores import SAMPLES, Scored, directions, gold_links
from normlens.reports.alignment.telling import CHANCE, WAYS
from normlens.reports.alignment.words import sentences
from normlens.reports.exhibits import Numbering, figure
from normlens.reports.markup import asset, bullets, escaped, filled, pairs
from normlens.reports.numbers import count, many, span
from normlens.reports.pictures import Drawn


def page(
    compared: Compared, scores: Sequence[Scored], drawn: Mapping[str, Drawn], *, text: str = "", samples: int = SAMPLES
) -> str:
    """One self-contained HTML page; `drawn` holds every figure by its name."""
    numbering = Numbering()
    maps = [name for name in drawn if name.startswith("figure-8-")]
    return filled(
        asset("alignment.html"),
        {
            "model": escaped(" and ".join(dict.fromkeys(found.name for found in directions(compared).values()))),
            "style": asset("report.css"),
            "facts": pairs(_facts(compared, text)),
            "found": bullets(sentences(compared)),
            "methods": section.methods(compared, scores, numbering),
            "samples": count(samples),
            "chance": f"{CHANCE:g}",
            "layers": figure(drawn["figure-7"], numbering) + section.layers(compared, numbering),
            "heads": "".join(figure(drawn[name], numbering) for name in drawn if name.startswith("heads"))
            + section.heads(compared, numbering),
            "examples_entry": '<li><a href="#examples">What does it look like?</a></li>' if maps else "",
            "examples": _examples(compared, drawn, numbering) if maps else "",
            "setting": escaped(SETTING),
            "paper": section.paper(compared, numbering),
            "signatures": "".join(f'<p class="signature">{escaped(line)}</p>' for line in _signatures(compared)),
        },
    )


def _facts(compared: Compared, text: str) -> list[tuple[str, str]]:
    models = [
        (
            "model" if compared.backward is None else WAYS[name],
            f"{found.name}, {span(found.layers)} of {many(found.norms.shape[1], 'head')} each",
        )
        for name, found in directions(compared).items()
    ]
    sure = many(gold_links(compared.methods), "sure link")
    looked = f"{many(compared.sentences, 'sentence pair')}, {sure} in the gold"
    ways = [way for way in (compared.plan.forward, compared.plan.backward) if way is not None]
    return [
        *models,
        *([("text", text)] if text else []),
        ("looked at", looked),
        *(("read without gold", str(way)) for way in ways),
    ]


def _examples(compared: Compared, drawn: Mapping[str, Drawn], numbering: Numbering) -> str:
    """For each example the chosen layer, the others folded."""
    parts = [
        '<section id="examples">',
        "<h2>What does it look like?</h2>",
        '<p class="question">What each target word takes from each source word, by weights and by norms, beside the '
        f"links made by hand. Shown is layer {compared.shown}, one that is read without gold; the other layers are "
        "folded. Compare Figures 8 and 13 to 17 of the paper.</p>",
    ]
    for number, example in enumerate(compared.examples, start=1):
        name = f"figure-8-{number}"
        first = figure(drawn[name], numbering) if name in drawn else '<p class="small">Too long to be drawn.</p>'
        others = [figure(drawn[one], numbering) for one in drawn if one.startswith(f"{name}-layer-")]
        parts += [
            f"<h3>Example {number}</h3>",
            f'<p class="kind">{escaped(" ".join(example.source))}<br>{escaped(" ".join(example.target))}</p>',
            first,
            f"<details><summary>The other layers</summary>{''.join(others)}</details>" if others else "",
        ]
    return "\n".join([*parts, "</section>"])


def _signatures(compared: Compared) -> list[str]:
    return [str(compared.plan.signature), *(str(found.signature) for found in directions(compared).values())]
