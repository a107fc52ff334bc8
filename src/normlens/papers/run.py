"""The experiments of a paper, run as it ran them, and compared with it: those of Kobayashi et al., 2020 and 2021.

Both read the same 992 sequences, of 128 tokens at most, with ranks by the order of the vocabulary. Only plain
self-attention is compared, the one kind these papers have.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from normlens.corpora import Categories, Category, Corpus, CorpusError, corpus
from normlens.errors import NormlensError
from normlens.lens import Lens
from normlens.models import Subject
from normlens.papers import kobayashi2021
from normlens.papers.comparison import Cell, Comparison, figure, missing
from normlens.papers.kobayashi2020 import (
    CLS,
    DATA,
    HEAD_DIM,
    HEADS,
    LAYERS,
    LENGTH,
    MODEL,
    OTHER,
    SEP,
    STOPS,
    TABLE_2,
    cells_of,
)
from normlens.studies import ExpansionStudy, Findings, MixingStudy, Report, study

PAPERS = ("kobayashi2020", "kobayashi2021")
FILE = "unlabeled_attn.pkl"


class DataMissing(CorpusError):
    """The data of the paper is not there."""


@dataclass(frozen=True, slots=True)
class Data:
    """A corpus to run, and its checksums where they can be counted without a tokenizer."""

    corpus: Corpus
    checksums: dict[str, int] | None  # None for texts, whose tokens are not known yet

    @property
    def stand_in(self) -> str:
        """Why this is not the paper's data; empty when it is."""
        if self.checksums is None:
            return f"It is not the paper's 992 sequences: {self.corpus.describe()} holds texts, and those are tokens."
        return unlike(self.checksums)


def read(source: str | os.PathLike[str], limit: int | None = None) -> Data:
    """Clark et al.'s file, or any corpus in its place; single texts are taken two by two, to have the paper's form."""
    if source == "-":
        return Data(corpus(source, pairs=True), None)
    if not Path(source).exists():
        raise DataMissing(
            f"There is no data '{source}'. The paper ran on the 992 sequences in '{FILE}' of Clark et al. "
            "(2019), which are theirs to give.",
            do=(
                'get it as https://github.com/clarkkev/attention-analysis describes (README, "Attention '
                f'Analysis"), and give --data path/to/{FILE}; any other corpus (text, .jsonl, .csv, .pkl) '
                "works as a stand-in."
            ),
        )
    texts = corpus(source)
    items = []
    for item in texts:
        if item.tokens is None:
            paired = corpus(source, pairs=True) if len(item.texts) == 1 else texts
            return Data(paired, None)
        items.append(item)
    kept = replace(texts, start=lambda: iter(items))  # Clark et al.'s file is gigabytes of maps around few tokens
    return Data(kept, _counted(item.tokens or () for item in items[:limit]))


def unlike(sums: Mapping[str, int | None]) -> str:
    """What tells these checksums, as far as they were counted, from the paper's; empty when nothing does."""
    counted = [(name, got, paper) for name, paper in DATA.items() if (got := sums.get(name)) is not None]
    wrong = [one for one in counted if one[1] != one[2]]
    if not wrong:
        return ""
    parts = [f"{got:,} {name}, not {paper:,}" for name, got, paper in wrong[:2]]
    more = f"; {len(wrong)} of {len(counted)} checksums differ" if len(wrong) > 2 else ""
    return f"It is not the paper's 992 sequences: {'; '.join(parts)}{more}."


def _counted(sequences: Iterable[tuple[str, ...]]) -> dict[str, int]:
    counts = dict.fromkeys(DATA, 0)
    for whole in sequences:
        tokens = whole[:LENGTH]
        size = len(tokens)
        of = {CLS: tokens.count(CLS), SEP: tokens.count(SEP), STOPS: tokens.count(",") + tokens.count(".")}
        of[OTHER] = size - sum(of.values())
        counts["sequences"] += 1
        counts["tokens"] += size
        counts["Σ n² over sequences"] += size * size
        for name in (CLS, SEP):
            counts[f"{name} tokens"] += of[name]
        for name, count in of.items():
            counts[f"pairs per head, {name}"] += size * count
    return counts


class ReproductionError(NormlensError):
    """A paper that cannot be run again as asked."""


def reproduce(
    lens: Lens,
    data: Data,
    *,
    paper: str = "kobayashi2020",
    ranks: str | Path | None = None,
    limit: int | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Findings, Comparison]:
    """Run every study of a paper on the data and compare the results with what was printed.

    `ranks` is a file of frequency ranks in place of the paper's rule. With a `folder` the run is saved as it goes.
    """
    if paper not in PAPERS:
        raise ReproductionError(f"There is no paper '{paper}'.", do=f"choose {' or '.join(PAPERS)}.")
    tokenizer: Any = getattr(lens.subject.tokenizer, "tokenizer", lens.subject.tokenizer)
    if lens.subject.is_seq2seq:
        raise ReproductionError(
            f"'{lens.subject.name}' has an encoder and a decoder, and the paper's experiments are about one text.",
            do="give bert-base-uncased, or a stand-in that reads one text.",
        )
    if data.checksums is not None and hasattr(tokenizer, "get_vocab"):
        _check_vocabulary(lens.subject.name, tokenizer)
    options: dict[str, Any] = {
        "ranks": "vocabulary" if ranks is None else Path(ranks),
        "length": LENGTH,
        "limit": limit,
        "resume": resume,
    }
    if paper == "kobayashi2020":
        categories = _categories(tokenizer)
        findings = study(lens, data.corpus, categories=categories, folder=folder, progress=progress, **options)
        return findings, compare(findings, other_model=_other_model(lens.subject))
    options["categories"] = kobayashi2021.categories(tokenizer)
    halves = [None, None] if progress is None else [_part(progress, number, 2) for number in range(2)]
    inside = None if folder is None else Path(folder) / "masked"
    masking = (MixingStudy(masked=kobayashi2021.MASKED),)
    masked = study(lens, data.corpus, studies=masking, folder=inside, progress=halves[0], **options)
    if inside is not None:
        Report(masked).save(inside)
    studies = (MixingStudy(), ExpansionStudy(variant="authors"))
    plain = study(lens, data.corpus, studies=studies, folder=folder, progress=halves[1], **options)
    return plain, compare_mixing(plain, masked, model=kobayashi2021.model_of(lens.subject.config))


def _part(progress: Callable[[int, int], None], number: int, parts: int) -> Callable[[int, int], None]:
    """The progress of one of several runs over the same items."""
    return lambda done, items: progress(number * items + done, parts * items)


def compare_mixing(plain: Findings, masked: Findings, *, model: str | None) -> Comparison:
    """Compare findings without and with masks with the paper of 2021; `model`: which of its models this is."""
    run = plain.run
    sums: dict[str, int | None] = {
        "sequences": run.items,
        "tokens": run.tokens,
        "Σ n² over sequences": run.squares,
    }
    other_data = unlike(sums)
    other_model = "" if model else f"{run.model} has the shape of none of {', '.join(kobayashi2021.SHAPES)}"
    drawn = (
        f"Which {100 * kobayashi2021.MASKED:g} % of the tokens are masked is drawn by a seed of ours; the paper's draw "
        "is not known, so the last digits of Table 1 and Figure 3 may differ for that alone."
    )
    return Comparison(
        paper=kobayashi2021.PAPER,
        model=run.model,
        data=run.corpus,
        signature=str(run.signature),
        error=max(run.error, masked.run.error),
        other_data=other_data,
        other_model=other_model,
        notes=(*_reading(sums, other_data, other_model, model or ""), drawn, *run.notes),
        cells=(*_data(sums), *kobayashi2021.cells_of(plain, masked, model)),
    )


def compare(findings: Findings, *, other_model: str = "") -> Comparison:
    """Compare findings with the paper.

    `other_model` says why the model is not bert-base-uncased, if that is known; else its shape decides. Numbers of
    a stand-in stand beside the paper's without a verdict.
    """
    sums, run = checksums(findings), findings.run
    other_data, other_model = unlike(sums), other_model or _other_shape(findings)
    return Comparison(
        paper="Kobayashi et al. (2020), arXiv 2004.10102v1",
        model=run.model,
        data=run.corpus,
        signature=str(run.signature),
        error=run.error,
        other_data=other_data,
        other_model=other_model,
        notes=(*_reading(sums, other_data, other_model), *_notes(findings)),
        cells=(*_data(sums), *cells_of(findings, is_other=bool(other_model))),
    )


def checksums(findings: Findings) -> dict[str, int | None]:
    """What the run counted, under the names of `DATA`; None for what it did not."""
    run = findings.run
    sums: dict[str, int | None] = dict.fromkeys(DATA)
    sums |= {"sequences": run.items, "tokens": run.tokens, "Σ n² over sequences": run.squares}
    if (categories := findings["categories"].get("self")) is not None:
        for name in {CLS, SEP} & set(categories.names):
            sums[f"{name} tokens"] = int(categories.tokens[categories.names.index(name)])
    correlation = None if "self" in run.causal else findings["correlation"].get("self")  # else not every pair is seen
    if correlation is not None and (heads := len(correlation.layers) * correlation.rho_heads.shape[2]):
        for name, pairs in zip(correlation.names, correlation.pairs, strict=True):
            if name in TABLE_2 and pairs % heads == 0:
                sums[f"pairs per head, {name}"] = int(pairs) // heads
    return sums


def _data(sums: dict[str, int | None]) -> list[Cell]:
    """Exact, to the last token."""
    cells = []
    for name, got in sums.items():
        (what, _, where), paper = name.partition(", "), DATA[name]
        if got is None:
            cells.append(missing("Data", what, where, str(paper), "it was not counted"))
        else:
            cells.append(figure("Data", what, where, str(paper), got))
    return cells


def _other_shape(findings: Findings) -> str:
    """Why these cannot be the heads of bert-base-uncased."""
    result = findings["dispersion"].get("self")
    if result is None:
        return "the norms of its self-attention were not measured"
    layers, heads = result.transformed.mean.shape
    if (result.layers, heads) != (tuple(range(LAYERS)), HEADS) or not result.transformed.count.all():
        return f"{layers} layers of {heads} heads were measured, and bert-base-uncased has {LAYERS} of {HEADS}"
    if result.singular is None:
        return "the size of its heads is not known"
    size = result.singular.shape[2] - 1
    return "" if size == HEAD_DIM else f"its heads have {size} dimensions, and those of bert-base-uncased {HEAD_DIM}"


def _reading(
    sums: dict[str, int | None], other_data: str, other_model: str, shape: str = "bert-base-uncased"
) -> list[str]:
    """What must be known before any cell is read."""
    lines = []
    if other_data:
        lines.append(f"The data is a stand-in. {other_data} The cells below are not expected to agree.")
    elif None in sums.values():
        lines.append("The data may be the paper's: the checksums that were counted agree, but not all were counted.")
    else:
        lines.append(f"The data is the paper's: all {len(sums)} checksums agree.")
    if other_model:
        lines.append(
            f"The model is a stand-in: {other_model}. Its numbers are printed beside the paper's, but none is judged, "
            "and nothing follows for the paper."
        )
    else:
        lines.append(
            f"The model has the shape of {shape}. Whether its weights are the paper's is not checked: see its "
            "name and revision in the signature."
        )
    lines.append(
        "Layers and heads are counted from 1 here, as in the paper's tables: its layer 2, head 4 is L1H3 elsewhere in "
        "normlens. A number agrees when it rounds to what was printed"
        + ("; Figure 3 is read off its drawing." if len(sums) == len(DATA) else ".")
    )
    return lines


def _notes(findings: Findings) -> list[str]:
    """What the run itself has to say about these numbers."""
    results = (findings["dispersion"].get("self"), findings["correlation"].get("self"))
    return [*findings.run.notes, *(note for result in results if result is not None for note in result.notes)]


def _categories(tokenizer: Any) -> Categories:
    """The paper's four, by its names, with the tokens that serve as [CLS] and [SEP] here."""
    marks = {name: getattr(tokenizer, part, None) or name for name, part in ((CLS, "cls_token"), (SEP, "sep_token"))}
    named = [Category(name, frozenset({str(mark)})) for name, mark in marks.items()]
    return Categories((*named, Category(STOPS, frozenset({",", "."}))))


def _other_model(subject: Subject) -> str:
    """Why a model cannot be bert-base-uncased, by its configuration."""
    for name, value in MODEL.items():
        got = getattr(subject.config, name, None)
        if got != value:
            return f"its {name} is {got}, and that of bert-base-uncased {value}"
    return ""


def _check_vocabulary(name: str, tokenizer: Any) -> None:
    known = tokenizer.get_vocab()
    unknown = [mark for mark in (CLS, SEP) if mark not in known]
    if unknown:
        raise ReproductionError(
            f"The data is wordpieces of BERT, and '{name}' has no token {' or '.join(unknown)}.",
            cause="a model with another tokenizer, which would read every token as unknown.",
            do="give bert-base-uncased, or another model with its vocabulary; or data that is text.",
        )
