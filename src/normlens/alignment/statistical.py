"""Statistical word aligners, to compare the alignments of a model with: fast_align, HMM, IBM-4 and eflomal.

All four learn from nothing but sentence pairs, so they are trained on the pairs to be aligned and on any more there
are. Each direction links every word of its target to one source word or to none. The first three run by expectation
maximisation in the Thot library (package `sil-thot`, LGPL, the extra `normlens[aligners]`); a model starts from a
simpler one, whose iterations come first; all words of IBM-4 are in one class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from normlens.alignment import eflomal
from normlens.alignment.links import Links, reverse
from normlens.errors import NormlensError

Name = Literal["fast_align", "hmm", "ibm4", "eflomal"]
Sentences = Sequence[Sequence[str]]
CASCADES = {
    "fast_align": (("FastAlignModel", 5),),
    "hmm": (("Ibm1AlignmentModel", 5), ("HmmAlignmentModel", 5)),
    "ibm4": (("Ibm1AlignmentModel", 5), ("HmmAlignmentModel", 5), ("Ibm3AlignmentModel", 3), ("Ibm4AlignmentModel", 3)),
}
LONGEST = {**dict.fromkeys(CASCADES, 200), "fast_align": 1024, "eflomal": eflomal.LONGEST}


class AlignerError(NormlensError, ValueError):
    """A name or a text that a statistical aligner cannot take."""


class ThotMissing(NormlensError, ImportError):
    """sil-thot is not installed."""


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
    run = eflomal.align if name == "eflomal" else _cascade(name)
    return run(left, right, count=len(sources), iterations=iterations, progress=progress)


def available() -> dict[str, NormlensError | None]:
    """Every aligner: None if it runs here, else the error that says why not and what to do."""
    missing = None
    try:
        _library()
    except ThotMissing as error:
        missing = error
    return {**dict.fromkeys(CASCADES, missing), "eflomal": eflomal.missing()}


def _check(
    name: str, sources: Sentences, targets: Sentences, also: Sequence[tuple[Sequence[str], Sequence[str]]]
) -> None:
    if len(sources) != len(targets):
        raise AlignerError(
            f"{len(sources)} source sentences and {len(targets)} target sentences.",
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
                f"{where} has {longest} words on one side; {name} links at most {LONGEST[name]} and would leave "
                "the rest without links.",
                do=f"split the pair or leave it out; fast_align links {LONGEST['fast_align']}.",
            )


def _numbered(sentences: Sentences, *, lowercase: bool) -> list[list[str]]:
    """Each word as its number, so that no word can be a blank, a line end or a sign the aligner keeps for itself."""
    numbers: dict[str, str] = {}
    fold = str.casefold if lowercase else str
    return [[numbers.setdefault(fold(word), str(len(numbers))) for word in sentence] for sentence in sentences]


def _cascade(name: str) -> Callable[..., tuple[list[Links], list[Links]]]:
    """The aligner of that name, both ways."""
    steps = CASCADES[name]

    def align(
        sources: Sequence[Sequence[str]],
        targets: Sequence[Sequence[str]],
        *,
        count: int,
        iterations: int | None,
        progress: Callable[[int, int], None],
    ) -> tuple[list[Links], list[Links]]:
        rows = [*steps[:-1], (steps[-1][0], iterations or steps[-1][1])]
        total, done = 2 * sum(times for _, times in rows), 0
        progress(done, total)

        def step() -> None:
            nonlocal done
            done += 1
            progress(done, total)

        forward = _directed(rows, sources, targets, count, step)
        backward = _directed(rows, targets, sources, count, step)
        return forward, [reverse(links) for links in backward]

    return align


def _directed(
    rows: Sequence[tuple[str, int]],
    sources: Sequence[Sequence[str]],
    targets: Sequence[Sequence[str]],
    count: int,
    step: Callable[[], None],
) -> list[Links]:
    library, models = _library(), []
    for name, _ in rows:
        models.append(getattr(library, name)(*models[-1:]))
    last = models[-1]
    for source, target in zip(sources, targets, strict=True):
        last.add_sentence_pair(source, target)  # the models of a cascade share their text
    for model, (_, times) in zip(models, rows, strict=True):
        model.start_training()
        for _ in range(times):
            model.train()
            step()
        model.end_training()
    best = last.get_best_alignments(sources[:count], targets[:count])
    return [
        frozenset((source - 1, target) for target, source in enumerate(matrix.to_list()) if source)
        for _, matrix in best
    ]


def _library() -> Any:
    try:
        import thot.alignment
    except ImportError as error:
        raise ThotMissing(
            "fast_align, hmm and ibm4 need the library sil-thot, which is not installed.",
            do="pip install 'normlens[aligners]'.",
        ) from error
    return thot.alignment
