"""Word alignment from a translation model, or from two: sentence pairs in, links out, in order and in bounded memory.

One model links each target word to the source word that contributes most to it. With a second model for the other
direction the two soft maps are multiplied before any link is cut, so that two words are linked only where both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, product, tee
from pathlib import Path
from typing import Any, Literal, get_args

from normlens.alignment.aligner import Aligner, Combine, ModelLayers
from normlens.alignment.layers import BOTH, SAMPLE, Choice, cross_layers, largest_norm, most_agreed, self_agreed
from normlens.alignment.links import NONE, Alignment
from normlens.alignment.maps import BATCH_TOKENS, Maps, Measure, Position, Reading, check, each_map
from normlens.alignment.pharaoh import write_pharaoh
from normlens.alignment.words import Pair, Sentence, Splitter, paired
from normlens.lens import Lens
from normlens.models import InputError
from normlens.signature import Signature

Layers = int | Sequence[int] | Literal["auto", "norm", "all"]
Rows = Literal["auto", "input", "output", "both"]
POSITIONS: dict[str, tuple[Position, ...]] = {"input": ("input",), "output": ("output",), "both": BOTH}
SECOND_LINK = 0.8  # of the strength of the first


@dataclass(frozen=True, slots=True)
class Aligned(Sequence[Alignment]):
    """The alignment of every sentence pair, in order, and the choices behind it."""

    alignments: list[Alignment]
    plan: Aligner  # the layers chosen, and how their maps became links
    left_out: dict[int, str] = field(default_factory=dict)  # pairs that have no alignment, by number, and why

    @property
    def signature(self) -> Signature:
        """The facts needed to repeat these links: models, layers, measure, version."""
        return self.plan.signature

    def save(self, path: Path | str, *, confidence: bool = False) -> None:
        """Write one line per pair, in Pharaoh format."""
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

    `reverse` is a model of the other direction. `choices` are those of `choose`: measure, position, layers,
    reverse_layers, head, combine, min_confidence, second_link. Layers that are not named are chosen without gold, and
    `plan` says why.
    """
    pairs = list(paired(sources, targets, words))
    named = words if isinstance(words, str) else "own"
    aligner = choose(lens, reverse, pairs[:SAMPLE], words=named, **choices)
    left_out: dict[int, str] = {}
    alignments = list(each_alignment(aligner, pairs, batch_tokens=batch_tokens, left_out=left_out.__setitem__))
    return Aligned(alignments, aligner, left_out)


def each_alignment(
    aligner: Aligner,
    pairs: Iterable[Pair],
    *,
    batch_tokens: int = BATCH_TOKENS,
    left_out: Callable[[int, str], None] = lambda index, why: None,
) -> Iterator[Alignment]:
    """The links of each pair as soon as its shard is done; none for a pair that the model cannot read."""
    for maps in each_maps(aligner, pairs, batch_tokens=batch_tokens, left_out=left_out):
        yield NONE if maps is None else aligner.links(*maps)


def each_maps(
    aligner: Aligner,
    pairs: Iterable[Pair],
    *,
    batch_tokens: int = BATCH_TOKENS,
    left_out: Callable[[int, str], None] = lambda index, why: None,
) -> Iterator[tuple[Maps, Maps | None] | None]:
    """The maps of each direction, from which an aligner makes links; None for a pair that a model cannot read."""
    known: set[int] = set()

    def once(index: int, why: str) -> None:
        if index not in known:
            known.add(index)
            left_out(index, why)

    one, two = tee(pairs)
    maps = each_map(aligner.forward.lens, one, aligner.forward.readings, batch_tokens=batch_tokens, left_out=once)
    if aligner.backward is None:
        yield from (None if forward is None else (forward, None) for forward in maps)
        return
    others = each_map(
        aligner.backward.lens,
        ((target, source) for source, target in two),
        aligner.backward.readings,
        batch_tokens=batch_tokens,
        left_out=lambda index, why: once(index, _swapped(why)),
    )
    for forward, backward in zip(maps, others, strict=True):
        yield None if forward is None or backward is None else (forward, backward)


def peek(pairs: Iterable[Pair], count: int = SAMPLE) -> tuple[list[Pair], Iterator[Pair]]:
    """The first pairs, and all of them."""
    rest = iter(pairs)
    first = list(islice(rest, count))
    return first, chain(first, rest)


def _swapped(why: str) -> str:
    """A reason of the model of the other direction, whose source is the target."""
    return why.replace("target", "\0").replace("source", "target").replace("\0", "source")


def choose(
    lens: Lens,
    reverse: Lens | None,
    sample: Sequence[Pair],
    *,
    measure: Measure | str = "norms",
    position: Rows | str = "auto",
    layers: Layers = "auto",
    reverse_layers: Layers | None = None,
    head: int | None = None,
    combine: Combine | str = "soft",
    min_confidence: float = 0.0,
    second_link: float = SECOND_LINK,
    words: str = "whitespace",
    own: int | None = None,
) -> Aligner:
    """How to align: what the user asked for, and for what is left "auto" a choice on the sample, without gold.

    Layers: "auto" by agreement, "norm" that of the largest mean norm, "all", or numbers. Rows of layers that are not
    chosen by agreement are read as the decoder's input, AWI, unless `position` says otherwise. `words` goes into the
    signature. Of the sample the first `own` pairs are the user's, if not all are.
    """
    for one in (lens, reverse):
        if one is not None:
            check(one)
    measured: Measure = _one_of("measure", measure, Measure)
    rows: Rows = _one_of("position", position, Rows)
    joined: Combine = _one_of("combine", combine, Combine)
    _check_thresholds(min_confidence, second_link)
    forward = _chosen(lens, layers, rows, sample)
    backward = None
    if reverse is None:
        forward = forward or self_agreed(lens, sample, measure=measured, positions=POSITIONS.get(rows, BOTH))
    else:
        swapped = [(target, source) for source, target in sample]
        backward = _chosen(reverse, reverse_layers or layers, rows, swapped)
        positions = POSITIONS.get(rows, BOTH if forward is backward is None else ("input",))
        if forward is None or backward is None:
            agreed = most_agreed(lens, reverse, sample, measure=measured, positions=positions, own=own)
            forward, backward = forward or agreed[0], backward or agreed[1]
    directions = [
        ModelLayers(one, tuple(Reading(measured, *place, head) for place in choice.places), choice.why, choice.weights)
        for one, choice in ((lens, forward), (reverse, backward))
        if one is not None and choice is not None
    ]
    backward_layers = directions[1] if reverse is not None else None
    return Aligner(directions[0], backward_layers, joined, min_confidence, second_link, words)


def _check_thresholds(min_confidence: float, second_link: float) -> None:
    if not 0 <= min_confidence < 1:
        raise InputError(f"min_confidence must be at least 0 and below 1 (got {min_confidence:g}).")
    if not 0 < second_link <= 1:
        raise InputError(f"second_link must be above 0 and at most 1 (got {second_link:g}).")


def _chosen(lens: Lens, layers: Layers, rows: Rows, sample: Sequence[Pair]) -> Choice | None:
    there, positions = cross_layers(lens), POSITIONS.get(rows, ("input",))
    if layers == "auto":
        return None
    if layers == "norm":
        return largest_norm(lens, sample, positions)
    if layers == "all":
        return Choice(tuple(product(positions, there)), "all layers, as asked")
    asked = (layers,) if isinstance(layers, int) else tuple(layers)
    wrong = [layer for layer in asked if not isinstance(layer, int) or layer not in there]
    if wrong or not asked:
        raise InputError(
            f"No layer {wrong[0]}: the cross-attention of '{lens.subject.name}' has layers {there[0]} to {there[-1]}."
            if wrong
            else "No layers are named.",
            got=list(asked),
            do="name some of its layers, counted from 0, or leave the choice to normlens: --layers auto.",
        )
    return Choice(tuple(product(positions, asked)), "as asked")


def _one_of(name: str, value: str, allowed: Any) -> Any:
    if value not in get_args(allowed):
        raise InputError(
            f"There is no {name} '{value}'.",
            do=f"choose one of {', '.join(get_args(allowed))}.",
        )
    return value
