"""Are these the paper's 992 sequences? The data read, and counted before anything is run.

Room: reading and counting. No model.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from normlens.corpora import Corpus, CorpusError, corpus
from normlens.papers.expected import CLS, DATA, LENGTH, OTHER, SEP, STOPS

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
    found = corpus(source)
    items = []
    for item in found:
        if item.tokens is None:
            paired = corpus(source, pairs=True) if len(item.texts) == 1 else found
            return Data(paired, None)
        items.append(item)
    kept = replace(found, start=lambda: iter(items))  # Clark et al.'s file is gigabytes of maps around few tokens
    return Data(kept, _counted(item.tokens or () for item in items[:limit]))


def unlike(found: Mapping[str, int | None]) -> str:
    """What tells these checksums, as far as they were counted, from the paper's; empty when nothing does."""
    counted = [(name, got, paper) for name, paper in DATA.items() if (got := found.get(name)) is not None]
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
