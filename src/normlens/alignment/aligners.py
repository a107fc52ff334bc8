"""Statistical word aligners, to stand beside the alignments of a model: fast_align, HMM, IBM-4 and eflomal.

Room: the door. Checks the text, numbers its words, runs one aligner both ways. Knows neither models nor gold.

All four learn from nothing but sentence pairs, so they are trained on the pairs to be aligned and on any more there
are. Each direction links every word of its target to one source word or to none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from normlens.alignment import eflomal, thot_models
from normlens.alignment.links import Links
from normlens.errors import NormlensError

Name = Literal["fast_align", "hmm", "ibm4", "eflomal"]
Sentences = Sequence[Sequence[str]]
LONGEST = {**dict.fromkeys(thot_models.CASCADES, 200), "fast_align": 1024, "eflomal": eflomal.LONGEST}


class AlignerError(NormlensError, ValueError):
    """A name or a text that a statistical aligner cannot take."""


def statistical(
    name: Name | str,
    sources: Sentences,
    targets: Sentences,
    *,
    also: Iterable[tuple[Sequence[str], Sequence[str]]] = (),
    lowercase: bool = True,
    iterations: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[Links], list[Links]]:
    """Links of every pair by the source → target model, and by the target → source model; all are (source, target).

    `also` are more pairs to learn from; those longer than the aligner takes are left out. `iterations` are those of
    the last model of a cascade. eflomal draws at random, so its links differ a little from run to run.
    """
    if name not in LONGEST:
        raise AlignerError(
            f"There is no statistical aligner '{name}'.",
            do=f"choose one of {', '.join(LONGEST)}.",
        )
    if iterations is not None and iterations < 1:
        raise AlignerError(
            f"{iterations} iterations train nothing.",
            do="give 1 or more, or leave it to the aligner.",
        )
    also = list(also)
    _check(name, sources, targets, also)
    if not sources:
        return [], []
    also = [pair for pair in also if max(map(len, pair)) <= LONGEST[name]]
    left = _numbered([*sources, *(one for one, _ in also)], lowercase=lowercase)
    right = _numbered([*targets, *(other for _, other in also)], lowercase=lowercase)
    run = eflomal.align if name == "eflomal" else thot_models.cascade(name)
    return run(left, right, count=len(sources), iterations=iterations, progress=progress)


def available() -> dict[str, str | None]:
    """Every aligner: None if it runs here, else the reason why not and what to do."""
    missing = thot_models.missing()
    return {**dict.fromkeys(thot_models.CASCADES, missing), "eflomal": eflomal.missing()}


def _check(
    name: str, sources: Sentences, targets: Sentences, also: Sequence[tuple[Sequence[str], Sequence[str]]]
) -> None:
    if len(sources) != len(targets):
        raise AlignerError(
            f"{len(sources)} source sentences stand beside {len(targets)} target sentences.",
            cause="a line is missing in one of the files.",
            do="give both the same number of lines.",
        )
    for number, pair in enumerate([*zip(sources, targets, strict=True), *also], start=1):
        where = f"Pair {number}" if number <= len(sources) else f"Pair {number - len(sources)} of the added text"
        if any(isinstance(side, str) for side in pair):
            raise AlignerError(
                f"{where} is a text, not words.",
                do="split it into words first.",
            )
        if not all(map(len, pair)):
            raise AlignerError(
                f"{where} has {len(pair[0])} source and {len(pair[1])} target words, and an aligner needs both.",
                cause="an empty line.",
                do="leave the pair out.",
            )
        longest = max(map(len, pair))
        if number <= len(sources) and longest > LONGEST[name]:
            raise AlignerError(
                f"{where} has {longest} words on one side; {name} links at most {LONGEST[name]} and would say "
                "nothing of the rest.",
                do=f"split the pair or leave it out; fast_align links {LONGEST['fast_align']}.",
            )


def _numbered(sentences: Sentences, *, lowercase: bool) -> list[list[str]]:
    """Each word as its number, so that no word can be a blank, a line end or a sign the aligner keeps for itself."""
    numbers: dict[str, str] = {}
    fold = str.casefold if lowercase else str
    return [[numbers.setdefault(fold(word), str(len(numbers))) for word in sentence] for sentence in sentences]
