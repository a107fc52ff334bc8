"""Soft alignments: what each target word takes from each source word, read off the cross-attention of a model.

Room: forced decoding and merging of pieces to words. No links, no gold.

A row of the decoder can be read as the word it was given (AWI, "input") or as the word it is about to write (AWO,
"output"). Pieces become words by adding up the source side and averaging over the target side. The last column is
everything on the source side that is no word, </s> above all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from normlens.lens import Block, Lens
from normlens.models import Encoded, InputError, Spelled, Subject, encode_forced

Measure = Literal["weights", "norms"]
Position = Literal["input", "output"]
ROWS: dict[Position, str] = {"input": "AWI", "output": "AWO"}
FIELDS = {("weights", False): "weights", ("norms", False): "summed_norms", ("norms", True): "weighted_norms"}


@dataclass(frozen=True, slots=True, order=True)
class Reading:
    """One way to read a cross-attention: which layer, all heads or one, what is measured, whose row it is."""

    measure: Measure
    position: Position
    layer: int
    head: int | None = None  # None: mean of the weights over heads, or norm of the sum over heads

    def __str__(self) -> str:
        return f"{self.measure} {self.where} {ROWS[self.position]}"

    @property
    def where(self) -> str:
        """The layer, or the head."""
        return f"L{self.layer}" if self.head is None else f"L{self.layer}H{self.head}"

    def pieces(self, block: Block) -> Float[Tensor, "batch tgt src"]:
        """The map of this reading over pieces."""
        if self.head is None:
            return block.weights.mean(dim=1) if self.measure == "weights" else block.summed_norms
        maps = block.weights if self.measure == "weights" else block.weighted_norms
        if self.head not in range(maps.shape[1]):
            raise InputError(
                f"Layer {self.layer} of the cross-attention has no head {self.head}.",
                do=f"name one of its {maps.shape[1]} heads, 0 to {maps.shape[1] - 1}.",
            )
        return maps[:, self.head]

    @property
    def field(self) -> str:
        """What of a block this reading needs."""
        return FIELDS.get((self.measure, self.head is not None), "weights")


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """A batch of sentence pairs, ready for the model, with the way back from pieces to words."""

    encoded: Encoded
    columns: Float[Tensor, "batch src src_word"]  # which source word a piece is of; the last: none
    rows: dict[Position, Float[Tensor, "batch tgt_word tgt"]]  # the share of a decoder position in a target word

    def words(
        self, pieces: Float[Tensor, "batch tgt src"], position: Position
    ) -> Float[Tensor, "batch tgt_word src_word"]:
        """From pieces to words: sums over source pieces, means over target pieces."""
        return torch.bmm(torch.bmm(self.rows[position], pieces.to(self.columns.dtype)), self.columns)


def pairs(subject: Subject, sources: Sequence[Spelled], targets: Sequence[Spelled]) -> Pairs:
    """Sentences as pieces, to be decoded by force."""
    encoded = encode_forced(subject, [s.ids for s in sources], [t.ids for t in targets])
    given = encoded.inputs["decoder_input_ids"]
    shift = 0 if all(row[0] == t.ids[0] for row, t in zip(given.tolist(), targets, strict=True)) else 1
    last = max(s.count for s in sources)
    columns = torch.zeros(len(sources), encoded.inputs["input_ids"].shape[1], last + 1)
    for row, side in zip(columns, sources, strict=True):
        row[range(len(side.words)), [last if word is None else word for word in side.words]] = 1
    rows: dict[Position, Tensor] = {}
    places: tuple[tuple[Position, int], ...] = (("input", shift), ("output", shift - 1))
    for position, ahead in places:
        place = torch.zeros(len(targets), max(t.count for t in targets), given.shape[1])
        for row, side in zip(place, targets, strict=True):
            kept = [(w, i + ahead) for i, w in enumerate(side.words) if w is not None and 0 <= i + ahead < row.shape[1]]
            if kept:
                row[tuple(zip(*kept, strict=True))] = 1
        rows[position] = place / place.sum(dim=2, keepdim=True).clamp_min(1)
    device = subject.device
    return Pairs(encoded, columns.to(device), {key: place.to(device) for key, place in rows.items()})


def soft(
    lens: Lens, batch: Pairs, readings: Collection[Reading]
) -> dict[Reading, Float[Tensor, "batch tgt_word src_word"]]:
    """The word-level maps of a batch, all from one pass."""
    maps: dict[Reading, Tensor] = {}

    def read(block: Block) -> None:
        for reading in readings:
            if reading.layer == block.layer:
                maps[reading] = batch.words(reading.pieces(block), reading.position)

    watch(lens, batch, read, layers=sorted({r.layer for r in readings}), fields=sorted({r.field for r in readings}))
    return maps


def watch(
    lens: Lens, batch: Pairs, read: Callable[[Block], None], *, layers: Sequence[int] | None, fields: Sequence[str]
) -> None:
    """One forced pass; `read` sees every cross-attention block."""
    lens.observe(batch.encoded, read, kinds=("cross",), layers=layers, fields=fields)
