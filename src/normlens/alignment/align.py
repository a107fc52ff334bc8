"""Word alignment from a translation model, or from two.

Room: the door. Sentence pairs in, links out, in order and in bounded memory.

One model gives each target word the source word that brings it most. With a second model for the other direction the
two soft maps are multiplied before any link is cut, so that a link stands only where both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, tee, zip_longest
from pathlib import Path
from typing import Any

from normlens.alignment.choice import SAMPLE
from normlens.alignment.links import NONE, Alignment
from normlens.alignment.pharaoh import write_pharaoh
from normlens.alignment.plan import plan
from normlens.alignment.stream import BATCH_TOKENS, Maps, Pair, each_map
from normlens.alignment.way import Plan
from normlens.alignment.words import Splitter, splitter
from normlens.lens import Lens
from normlens.models import InputError
from normlens.signature import Signature

Sentence = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Aligned(Sequence[Alignment]):
    """The alignment of every sentence pair, in order, and how it was made."""

    alignments: list[Alignment]
    plan: Plan
    left_out: dict[int, str] = field(default_factory=dict)  # pairs that have no alignment, by number, and why

    @property
    def signature(self) -> Signature:
        """What makes these links reproducible."""
        return self.plan.signature

    def save(self, path: Path | str, *, confidence: bool = False) -> None:
        """One line per pair, Pharaoh format."""
        write_pharaoh(self.alignments, path, confidence=confidence)

    def __getitem__(self, index: Any) -> Any:
        return self.alignments[index]

    def __len__(self) -> int:
        return len(self.alignments)


def align(
    lens: Lens,
    sources: Iterable[Sentence],
    targets: Iterable[Sentence],
    *,
    reverse: Lens | None = None,
    words: Splitter | str = "whitespace",
    batch_tokens: int = BATCH_TOKENS,
    **choices: Any,
) -> Aligned:
    """Align sentences with their translations: texts, or sequences of words.

    `reverse` is a model of the other direction. `choices` are those of `plan`: measure, position, layers,
    reverse_layers, head, combine, min_confidence, second_link; without them the layers are chosen and the choice is
    told.
    """
    pairs = list(paired(sources, targets, words))
    named = words if isinstance(words, str) else "own"
    decided = plan(lens, reverse, pairs[:SAMPLE], words=named, **choices)
    left_out: dict[int, str] = {}
    found = list(each_alignment(decided, pairs, batch_tokens=batch_tokens, left_out=left_out.__setitem__))
    return Aligned(found, decided, left_out)


def each_alignment(
    decided: Plan,
    pairs: Iterable[Pair],
    *,
    batch_tokens: int = BATCH_TOKENS,
    left_out: Callable[[int, str], None] = lambda index, why: None,
) -> Iterator[Alignment]:
    """The links of each pair as soon as its shard is done; none for a pair that the model cannot read."""
    for maps in planned_maps(decided, pairs, batch_tokens=batch_tokens, left_out=left_out):
        yield NONE if maps is None else decided.links(*maps)


def planned_maps(
    decided: Plan,
    pairs: Iterable[Pair],
    *,
    batch_tokens: int = BATCH_TOKENS,
    left_out: Callable[[int, str], None] = lambda index, why: None,
) -> Iterator[tuple[Maps, Maps | None] | None]:
    """The maps from which a plan makes links: those of each direction; None for a pair that a model cannot read."""
    told: set[int] = set()

    def once(index: int, why: str) -> None:
        if index not in told:
            told.add(index)
            left_out(index, why)

    one, two = tee(pairs)
    maps = each_map(decided.forward.lens, one, decided.forward.readings, batch_tokens=batch_tokens, left_out=once)
    if decided.backward is None:
        yield from (None if forward is None else (forward, None) for forward in maps)
        return
    others = each_map(
        decided.backward.lens,
        ((target, source) for source, target in two),
        decided.backward.readings,
        batch_tokens=batch_tokens,
        left_out=lambda index, why: once(index, _other_way(why)),
    )
    for forward, backward in zip(maps, others, strict=True):
        yield None if forward is None or backward is None else (forward, backward)


def paired(sources: Iterable[Sentence], targets: Iterable[Sentence], words: Splitter | str) -> Iterator[Pair]:
    """Sentence beside sentence, split into words; refused when one side ends before the other."""
    split = splitter(words)
    absent: Any = object()
    for number, (source, target) in enumerate(zip_longest(sources, targets, fillvalue=absent)):
        if source is absent or target is absent:
            raise InputError(_uneven("sources" if source is absent else "targets", number))
        yield _words(source, split), _words(target, split)


def peek(pairs: Iterable[Pair], count: int = SAMPLE) -> tuple[list[Pair], Iterator[Pair]]:
    """The first pairs, and all of them."""
    rest = iter(pairs)
    first = list(islice(rest, count))
    return first, chain(first, rest)


def _words(sentence: Sentence, split: Splitter) -> Sequence[str]:
    if isinstance(sentence, str):
        return split(sentence)
    wrong = next((word for word in sentence if not isinstance(word, str) or not word or word.split() != [word]), None)
    if wrong is not None:
        raise InputError(
            f"This is not a word: {wrong!r:.60}.",
            do="give words without spaces in them, or a text.",
        )
    return list(sentence)


def _other_way(why: str) -> str:
    """A reason of the model of the other direction, whose source is the target."""
    return why.replace("target", "\0").replace("source", "target").replace("\0", "source")


def _uneven(side: str, count: int) -> str:
    return (
        f"There are only {count} {side}, and the other side goes on.\n"
        "  Usual cause: a line break inside a sentence, or a file cut short.\n"
        "  Do: give one target for each source, line by line."
    )
