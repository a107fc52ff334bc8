"""Cut a text where its attention says so. Suggested by Halevi et al. (2025); the procedure is ours.

separators: tokens that receive much attention in the last layers stand at the end of a segment;
similarity: between two segments the vectors that heads write become unlike.

Either gives every token a score for a cut after it. A cut is a local peak above the mean and k standard deviations of
the scores of its window, moved to the end of its word. Long texts go through the model in windows that overlap by half,
and a token is scored where it is farthest from the ends of its window.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from normlens import algebra
from normlens.errors import NormlensError
from normlens.exhibits import many, plain
from normlens.lens import Block, Lens
from normlens.models import longest
from normlens.signature import Signature
from normlens.studies.cuts import CutScores, joined, scored, units
from normlens.views import visible_line

SIGNALS = {"separators": "attention received", "similarity": "similarity of head outputs"}
MEASURES = ("weights", "norms")
BATCH = 2048  # tokens run at once


class SegmentError(NormlensError):
    """A text that cannot be cut as asked."""


@dataclass(frozen=True, slots=True)
class Cutting:
    """How a text is cut: every choice is ours and a parameter of `segment`."""

    by: str = "separators"
    measure: str = "weights"  # α, or the contributions ‖αf(x)‖; for separators
    layers: int | None = None  # so many of the last layers; by default a third
    threshold: float = 1.0  # standard deviations above the mean of the window
    segments: int | None = None  # instead of the threshold: the highest peaks, as many as make so many segments
    punctuation: bool = False  # only after a word that ends in a punctuation mark
    reach: int = 8  # tokens on each side of a cut that are compared; for similarity
    window: int = 128  # tokens the model reads at once

    def __post_init__(self) -> None:
        for name, known in (("by", tuple(SIGNALS)), ("measure", MEASURES)):
            if getattr(self, name) not in known:
                raise SegmentError(f"no {name} '{getattr(self, name)}'.", do=f"choose {' or '.join(known)}.")
        for name, least in (("layers", 1), ("segments", 1), ("reach", 1), ("window", 8)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise SegmentError(f"{name} must be at least {least} (got {value}).")


@dataclass(frozen=True, slots=True, eq=False)
class Segmented:
    """A text, its cuts, and the score of every token."""

    text: str
    cuts: tuple[int, ...]  # in words: a cut of 3 is after the third
    tokens: tuple[str, ...]
    scores: Float[np.ndarray, " token"]  # standard deviations above the mean of the window
    words: Int[np.ndarray, " token"]  # the word each token is in
    signature: Signature

    @property
    def segments(self) -> list[str]:
        """The text in pieces, in their order, without the space between them."""
        spans = units(self.text)
        ends = [0, *self.cuts, len(spans)]
        return [self.text[spans[a][0] : spans[b - 1][1]] for a, b in pairwise(ends)]

    def score(self, segments: Sequence[str]) -> CutScores:
        """How good the cuts are when these were the segments of the text."""
        text, cuts = joined(segments)
        if "".join(text.split()) != "".join(self.text.split()):
            raise SegmentError(
                "the known segments are not those of this text.",
                got=f"{visible_line(text[:40])} … against {visible_line(self.text[:40])} …",
                do="give the text in pieces, nothing left out and nothing added.",
            )
        return scored(self.cuts, cuts, len(units(text)))

    def to_json(self) -> dict[str, Any]:
        """Segments, their places in the text, and the scores, for a program."""
        spans, ends = units(self.text), [0, *self.cuts, len(units(self.text))]
        return {
            "signature": str(self.signature),
            "segments": [
                {"start": int(spans[a][0]), "end": int(spans[b - 1][1]), "text": text}
                for (a, b), text in zip(pairwise(ends), self.segments, strict=True)
            ],
            "tokens": list(self.tokens),
            "scores": [plain(score) for score in self.scores],
        }

    def show(self, width: int = 100) -> str:
        """One segment a paragraph."""
        lines = [textwrap.fill(visible_line(segment), width) for segment in self.segments]
        return "\n\n".join([*lines, f"{many(len(lines), 'segment')} | {self.signature}"]) + "\n"

    def __repr__(self) -> str:
        return self.show()


def segment(lens: Lens, text: str, **choices: Any) -> Segmented:
    """Cut a text where attention says so; `choices` are the fields of `Cutting`.

    `by="separators"`: after tokens that receive much attention in the last layers (`measure="norms"`: contributions).
    `by="similarity"`: where the vectors that heads write become unlike. `segments=5` asks for five pieces.
    """
    cutting = Cutting(**choices)
    windows = _windows(lens, text, min(cutting.window, longest(lens.subject) or cutting.window))
    scores = np.full(len(windows.tokens), np.nan)
    for rows in windows.batches():
        found = _scores(lens, cutting, windows, rows)
        for row, values in zip(rows, found, strict=True):
            own = windows.owned[row]
            scores[windows.first[row] + np.flatnonzero(own)] = values[own]
    words = words_of(text, windows.ends)
    facts = {
        "cut by": cutting.by,
        **({"measure": cutting.measure} if cutting.by == "separators" else {"reach": str(cutting.reach)}),
        "last layers": str(_layers(lens, cutting)[0]),
        **({"segments": str(cutting.segments)} if cutting.segments else {"threshold": f"{cutting.threshold:g}"}),
        **({"punctuation": "only"} if cutting.punctuation else {}),
        "window": str(windows.size),
    }
    uncut = Segmented(text, (), windows.tokens, scores, words, lens.signature.adding(**facts))
    return replace(uncut, cuts=tuple(cut_again(uncut, cutting)))


def words_of(text: str, ends: Int[np.ndarray, " token"]) -> Int[np.ndarray, " token"]:
    """The word in which each token ends; that before it for a token of white space, -1 where there is none.

    >>> words_of("a cat\\n\\nThe", np.array([1, 5, 6, 7, 10])).tolist()
    [0, 1, 1, 1, 2]
    """
    filled = np.array([0, *(at + 1 if not letter.isspace() else 0 for at, letter in enumerate(text))])
    last = np.maximum.accumulate(filled)[ends]
    return np.where(last > 0, np.searchsorted(units(text)[:, 1], last, side="left"), -1)


def cut_again(segmented: Segmented, cutting: Cutting) -> list[int]:
    """The cuts that the same scores give with another threshold or number of segments."""
    text = segmented.text
    spelled = [text[a:b] for a, b in units(text)]
    return _cuts(segmented.scores, segmented.words, cutting, spelled)


@dataclass(frozen=True, slots=True, eq=False)
class _Windows:
    """The text as the model reads it: overlapping windows, each with its special tokens."""

    size: int
    tokens: tuple[str, ...]  # of the text, special ones left out
    ends: Int[np.ndarray, " token"]  # where each ends in the text
    ids: list[list[int]]  # of each window, special ones included
    real: list[Bool[np.ndarray, " _"]]  # positions of a window that are the text's
    first: list[int]  # number of the first token of each window
    owned: list[Bool[np.ndarray, " _"]]  # tokens of a window that are scored there

    def batches(self) -> Iterator[list[int]]:
        """Windows of equal length together."""
        by_length: dict[int, list[int]] = {}
        for row, ids in enumerate(self.ids):
            by_length.setdefault(len(ids), []).append(row)
        for length, rows in by_length.items():
            step = max(1, BATCH // length)
            yield from (rows[start : start + step] for start in range(0, len(rows), step))


def _windows(lens: Lens, text: str, size: int) -> _Windows:
    tokenizer: Any = getattr(lens.subject.tokenizer, "tokenizer", lens.subject.tokenizer)
    if lens.subject.is_seq2seq or not getattr(tokenizer, "is_fast", False):
        raise SegmentError(
            f"'{lens.subject.name}' cannot cut a text.",
            cause="it translates, or its tokenizer does not say where tokens stand in the text.",
            do="use an encoder or a decoder with a fast tokenizer, such as the bundled MiniLM.",
        )
    if not isinstance(text, str):
        raise SegmentError(f"one text is cut at a time, not a {type(text).__name__}.", do="call segment for each text.")
    if not text.strip():
        raise SegmentError("there is no text to cut.", got=repr(text)[:40], do="give a text.")
    special = tokenizer.num_special_tokens_to_add()
    if size < special + 4:
        raise SegmentError(f"a window of {size} tokens is too short.", do=f"use at least {special + 4}.")
    whole = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    stride = (size - special) // 2
    with _cutting_the_end(tokenizer):
        cut = tokenizer(
            text,
            truncation=True,
            max_length=size,
            stride=stride,
            return_overflowing_tokens=True,
            return_special_tokens_mask=True,
        )
    real = [~np.array(mask, bool) for mask in cut["special_tokens_mask"]]
    step, total = size - special - stride, len(whole["input_ids"])
    first = [row * step for row in range(len(real))]
    deepest, owner = np.full(total, -1), np.zeros(total, np.int64)  # of each token: how far from the nearer end, where
    for row, (start, mask) in enumerate(zip(first, real, strict=True)):
        place = np.arange(int(mask.sum()))
        there = slice(start, start + len(place))
        left = place if start else place + total
        right = place[::-1] if there.stop < total else place[::-1] + total
        depth = np.minimum(left, right)
        owner[there] = np.where(depth > deepest[there], row, owner[there])
        deepest[there] = np.maximum(depth, deepest[there])
    owned = [owner[start : start + int(m.sum())] == row for row, (start, m) in enumerate(zip(first, real, strict=True))]
    names = tuple(str(token) for token in tokenizer.convert_ids_to_tokens(whole["input_ids"]))
    ends = np.array([end for _, end in whole["offset_mapping"]], np.int64)
    return _Windows(size, names, ends, list(cut["input_ids"]), real, first, owned)


@contextmanager
def _cutting_the_end(tokenizer: Any) -> Iterator[None]:
    """A tokenizer that cuts texts at their beginning would give the windows from the last to the first."""
    side, tokenizer.truncation_side = tokenizer.truncation_side, "right"
    try:
        yield
    finally:
        tokenizer.truncation_side = side


def _layers(lens: Lens, cutting: Cutting) -> tuple[int, list[int]]:
    exact = sorted({wire.layer for wire in lens.wires if wire.exact and wire.kind in ("self", "decoder", "encoder")})
    count = cutting.layers or max(1, len(exact) // 3)
    if count > len(exact):
        raise SegmentError(f"no {count} layers: the model has {len(exact)}.", do=f"use at most {len(exact)}.")
    return count, exact[-count:]


def _scores(lens: Lens, cutting: Cutting, windows: _Windows, rows: Sequence[int]) -> list[Float[np.ndarray, " _"]]:
    """For each window the score of a cut after each of its tokens, in standard deviations above their mean."""
    ids = torch.tensor([windows.ids[row] for row in rows])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    similar = cutting.by == "similarity"
    fields = ("head_vectors",) if similar else ("weights", "transformed_norms", "visible")
    reduce = _alike if similar else _received_norms if cutting.measure == "norms" else _received
    blocks = lens.each_block(reduce, inputs, layers=_layers(lens, cutting)[1], fields=fields)
    mean = torch.stack(blocks).mean(dim=0).cpu().double().numpy()
    found = []
    for index, row in enumerate(rows):
        real = np.flatnonzero(windows.real[row])
        values = novelty(mean[index][np.ix_(real, real)], cutting.reach) if similar else mean[index][real]
        spread = values.std()
        found.append((values - values.mean()) / spread if spread > 0 else np.zeros_like(values))
    return found


def _received(block: Block) -> Float[Tensor, "batch src"]:
    """Attention that each key receives, over what it would receive if every query attended equally to all it sees."""
    return _relative(block.weights.float(), block["visible"])


def _received_norms(block: Block) -> Float[Tensor, "batch src"]:
    """The same of the contributions, each query's divided by their sum."""
    norms = block.weighted_norms.float()
    shares = norms / norms.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(norms.dtype).tiny)
    return _relative(shares, block["visible"])


def _relative(
    maps: Float[Tensor, "batch head tgt src"], visible: Float[Tensor, "batch tgt src"]
) -> Float[Tensor, "batch src"]:
    uniform = visible / visible.sum(dim=-1, keepdim=True).clamp_min(1)
    return maps.mean(dim=1).sum(dim=1) / uniform.sum(dim=1).clamp_min(torch.finfo(maps.dtype).tiny)


def _alike(block: Block) -> Float[Tensor, "batch tgt tgt"]:
    """The cosine of what heads write for two tokens, mean over heads."""
    return algebra.similarity(torch.nn.functional.normalize(block["head_vectors"], dim=-1)).mean(dim=1)


def novelty(alike: Float[np.ndarray, "token token2"], reach: int) -> Float[np.ndarray, " token"]:
    """After each token, how much more alike the tokens on either side are among themselves than across.

    Each side is `reach` tokens, fewer at the ends of the text; after the last token it is the mean of the others.
    """
    size = len(alike)
    sums = np.zeros((size + 1, size + 1))
    sums[1:, 1:] = alike.cumsum(axis=0).cumsum(axis=1)

    def mean(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
        return (sums[b, d] - sums[a, d] - sums[b, c] + sums[a, c]) / ((b - a) * (d - c))

    middle = np.arange(1, size)
    left, right = np.maximum(middle - reach, 0), np.minimum(middle + reach, size)
    inside = (mean(left, middle, left, middle) + mean(middle, right, middle, right)) / 2
    scores = inside - mean(left, middle, middle, right)
    return np.append(scores, scores.mean() if len(scores) else 0.0)


def _cuts(
    scores: Float[np.ndarray, " token"],
    words: Int[np.ndarray, " token"],
    cutting: Cutting,
    spelled: Sequence[str],
) -> list[int]:
    """The ends of the words in which a peak stands."""
    before, after = np.append(-np.inf, scores[:-1]), np.append(scores[1:], -np.inf)
    peaks = np.flatnonzero((scores > before) & (scores >= after))
    heights: dict[int, float] = {}
    for at in peaks:
        cut = int(words[at]) + 1
        if 0 < cut < len(spelled) and (not cutting.punctuation or not spelled[cut - 1][-1].isalnum()):
            heights[cut] = max(float(scores[at]), heights.get(cut, -np.inf))
    if cutting.segments is None:
        return sorted(cut for cut, height in heights.items() if height > cutting.threshold)
    highest = sorted(heights, key=lambda cut: (-heights[cut], cut))
    return sorted(highest[: cutting.segments - 1])
