"""The chapters of a comparison: methods, layers, heads, examples, and the numbers of the paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from normlens.alignment.compared import Compared
from normlens.alignment.report.figures import example_figures, heads_figure, layers_figure
from normlens.alignment.report.paper import SETTING
from normlens.alignment.report.sentences import ARROWS, CHANCE, aer, layer_sentences, method_sentences, names
from normlens.alignment.report.tables import GOLD, heads_table, layers_table, methods_table, paper_tables
from normlens.exhibits import Article, Chapter, Document, Section, count, many, span, text_table, write
from normlens.views import visible_line

SAMPLES = 1000  # resamples behind an interval
LEAD = (
    "A translation model is not told which word translates which, but its cross-attention can be read as a word "
    "alignment. The attention weight α says how much attention a source word receives; the norm ‖Σαf(x)‖ says how much "
    "it contributes to the output. Here every target word is linked to the source word with the largest weight, or "
    "with the largest norm, and these links are compared with links made by hand, the gold. The alignment error rate "
    "(AER) is 0 % when they are the same and 100 % when they have nothing in common: lower is better. A row of the "
    "cross-attention may belong to the word that the decoder was given (AWI) or to the word that it writes next (AWO); "
    "both are measured in every layer."
)
CLOSING = (
    "The paper counts layers from 1. The method is that of Kobayashi, Kuribayashi, Yokoi and Inui, “Attention is Not "
    "Only a Weight: Analyzing Transformers with Vector Norms”, EMNLP 2020, called “the paper” here. Numbers of figures "
    "and tables of the paper are those of its first version, arXiv 2004.10102v1."
)


def alignment_document(compared: Compared, *, text: str = "", samples: int = SAMPLES) -> Document:
    """Everything a report of this comparison shows; `text` says what the sentence pairs are."""
    return Document(
        title=f"Word alignment with {' and '.join(dict.fromkeys(one.name for one in compared.directions.values()))}",
        lead=LEAD,
        facts=_facts(compared, text),
        chapters=(
            _methods(compared, samples),
            _layers(compared),
            _heads(compared),
            *_examples(compared),
            _paper(compared),
        ),
        signatures=(
            str(compared.aligner.signature),
            *(str(direction.signature) for direction in compared.directions.values()),
        ),
        closing=CLOSING,
    )


def write_alignment(compared: Compared, folder: Path | str, *, text: str = "", samples: int = SAMPLES) -> Path:
    """Write report.html, figures/ and tables/ into the folder; the path of the page."""
    return write(alignment_document(compared, text=text, samples=samples), Path(folder))


def alignment_text(compared: Compared, *, samples: int = SAMPLES) -> str:
    """The table of methods for a terminal, like Table 3 of the 2020 paper, and the choice made without gold."""
    table, best = replace(methods_table(compared, samples), title=""), compared.lowest()
    return "\n".join(
        [
            _measured(compared),
            "",
            text_table(table, rows=None, line=None),
            f"* lowest error of its group   {GOLD} its layer or head was chosen with the gold",
            "→ source to target, ← target to source; L1H2: layer 1, head 2, counted from 0; AWI, AWO: a row is the "
            "word that the decoder was given, or writes",
            *([f"lowest of all: {visible_line(names(best))}, {aer(best[0].aer)}"] if best else []),
            visible_line(f"chosen without gold: {_chosen(compared)}: {aer(compared.chosen.aer)}"),
            "",
            visible_line(str(compared.aligner.signature)),
            "",
        ]
    )


def _chosen(compared: Compared) -> str:
    aligner = compared.aligner
    combined = f"; {aligner.combine}" if aligner.backward is not None else ""
    return "; ".join(map(str, aligner.directions)) + combined


def _measured(compared: Compared) -> str:
    return f"{many(compared.sentences, 'sentence pair')}, {many(compared.sure_links, 'sure link')} in the gold"


def _facts(compared: Compared, text: str) -> tuple[tuple[str, str], ...]:
    models = [
        (
            "model" if compared.backward is None else ARROWS[name],
            f"{direction.name}, {span(direction.layers)} of {many(direction.norms.shape[1], 'head')} each",
        )
        for name, direction in compared.directions.items()
    ]
    return (
        *models,
        *((("text", text),) if text else ()),
        ("measured", _measured(compared)),
        *(("without gold", str(direction)) for direction in compared.aligner.directions),
    )


def _methods(compared: Compared, samples: int) -> Chapter:
    sentences = method_sentences(compared)
    section = Section(sentences, [methods_table(compared, samples)])
    return Chapter(
        "methods",
        "Which aligner makes the fewest errors?",
        (Article(section, headlines=len(sentences)),),
        question="Every aligner is scored on the same sentences. One direction: links read from one model, layer by "
        "layer. Gradients: how much the probability of a target word changes with a source word. Both directions: two "
        "models that translate in opposite directions, combined. Statistical: aligners that learn from the text "
        "itself. Compare Table 3 of the paper.",
        caution="where a layer or head was chosen with the gold, its error is somewhat too good, and so is a test that "
        "it wins.",
        method=(
            "The gold has sure links S, which an aligner must find, and possible links P, S among them, which it may "
            "find. With A the links of the aligner, AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|), precision = |A ∩ P| / "
            "|A|, recall = |A ∩ S| / |S|; counts are summed over all sentences before they are divided. The mean of "
            "the layers’ errors is not an aligner, so it has no counts.",
            f"The interval holds the AER of 95 % of {count(samples)} resamples: as many sentences drawn again from "
            "these. The paired test swaps the links of two aligners in random sentences and counts how often the "
            f"difference gets at least as large; p below {CHANCE:g} is called more than chance explains.",
            "Words are joined from pieces: sums over the pieces of a source word, means over those of a target word. "
            "Weights are means over heads, norms those of the sum over heads. A target word whose strongest source is "
            "</s> has no link. Maps multiplied: in each direction rows are scaled to 1 without </s> and averaged over "
            "the chosen layers, the two maps are multiplied and the root is taken, and words are linked that are each "
            "other’s strongest. Intersection, union and grow-diag combine the links of the two directions.",
        ),
    )


def _layers(compared: Compared) -> Chapter:
    section = Section(layer_sentences(compared), [layers_figure(compared), layers_table(compared)])
    return Chapter(
        "layers",
        "Which layer aligns?",
        (Article(section, headlines=len(compared.directions)),),
        question="A decoder is given one word and writes the next. Its cross-attention can therefore belong to either: "
        "AWI, “alignment with input”, takes the word given; AWO, “alignment with output”, the word written. Layers "
        "near the input often align under AWI, layers near the output under AWO. Compare Figure 7 of the paper.",
    )


def _heads(compared: Compared) -> Chapter:
    figures = [heads_figure(name, direction) for name, direction in compared.directions.items()]
    return Chapter(
        "heads",
        "Which head aligns?",
        (Article(Section((), [*figures, heads_table(compared)])),),
        question="Each head alone, and the mean norm of its contributions. If heads with larger contributions align "
        "better, the norm shows without gold which ones to read.",
    )


def _examples(compared: Compared) -> list[Chapter]:
    articles = []
    for order, example in enumerate(compared.examples, start=1):
        figures = example_figures(example, order, compared.shown)
        notes = () if figures else ("Too long to be drawn.",)
        lead = f"{' '.join(example.source)} — {' '.join(example.target)}"
        articles.append(Article(Section((), figures, notes), title=f"Example {order}", lead=lead))
    if not any(article.figures for article in articles):
        return []
    chapter = Chapter(
        "examples",
        "Examples",
        tuple(articles),
        question="How much each source word contributes to each target word, by weights and by norms, beside the links "
        f"made by hand. The first figure of an example is layer {compared.shown}, one that is used without gold; the "
        "other layers are folded. Compare Figures 8 and 13 to 17 of the paper.",
    )
    return [chapter]


def _paper(compared: Compared) -> Chapter:
    return Chapter(
        "paper",
        "The numbers of the paper",
        (Article(Section((), paper_tables(compared))),),
        caution=f"the data and the models are others. {SETTING} Compare the order of the rows, not the digits.",
    )
