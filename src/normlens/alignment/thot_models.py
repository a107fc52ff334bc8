"""fast_align, the HMM and IBM-4 by expectation maximisation, through the Thot library (package `sil-thot`, LGPL).

Room: numbered words in, links out. The library is imported where it is used, and is an extra: `normlens[aligners]`.

A model starts from a simpler one, whose iterations come first:

    fast_align  5 iterations, by itself
    hmm         IBM-1 5, HMM 5
    ibm4        IBM-1 5, HMM 5, IBM-3 3, IBM-4 3, all words in one class
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from normlens.alignment.links import Links, reverse
from normlens.errors import NormlensError

CASCADES = {
    "fast_align": (("FastAlignModel", 5),),
    "hmm": (("Ibm1AlignmentModel", 5), ("HmmAlignmentModel", 5)),
    "ibm4": (
        ("Ibm1AlignmentModel", 5),
        ("HmmAlignmentModel", 5),
        ("Ibm3AlignmentModel", 3),
        ("Ibm4AlignmentModel", 3),
    ),
}
ABSENT = "fast_align, hmm and ibm4 need the library sil-thot, which is not installed.\n"
INSTALL = "  Do: pip install 'normlens[aligners]'."


class ThotMissing(NormlensError, ImportError):
    """sil-thot is not installed."""


def missing() -> str | None:
    """Why these aligners cannot run here; None when they can."""
    try:
        _library()
    except ThotMissing as error:
        return str(error)
    return None


def cascade(name: str) -> Callable[..., tuple[list[Links], list[Links]]]:
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
    found = last.get_best_alignments(sources[:count], targets[:count])
    return [
        frozenset((source - 1, target) for target, source in enumerate(matrix.to_list()) if source)
        for _, matrix in found
    ]


def _library() -> Any:
    try:
        import thot.alignment
    except ImportError as error:
        raise ThotMissing(ABSENT + INSTALL) from error
    return thot.alignment
