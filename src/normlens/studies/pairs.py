"""Count pairs (‖f(x_j)‖, α_ij) into rank tables, one per head and category.

Room: studies. The one place that goes over every single weight: a shift, an addition and a count for each pair.

A table says how finely its axes are cut. A box is a table laid out for counting: a row per code of ‖f‖, and a cell for
every code of α in a range, so that a pair's cell is found by arithmetic. A box that is too narrow becomes a table again
and a wider one takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from normlens.statistics import Ranks
from normlens.statistics.codes import codes_of, joined
from normlens.studies.look import Look

SIZE = 256, 512  # codes of ‖f‖ and of α in a table
WIDTH, ROWS = 4096, 1024  # of a box at most; where that is too little, pairs are sorted
FIRST = 16  # tokens that are sorted to learn how fine the cut of a new table is
Cell = tuple[int, int]  # head, category


class Tally:
    """The pairs of one attention block over all batches."""

    def __init__(self, tables: dict[Cell, Ranks] | None = None) -> None:
        self._tables = dict(tables or {})
        self._boxes: dict[Cell, _Box] = {}

    def tables(self) -> dict[Cell, Ranks]:
        """What was counted so far."""
        for cell in list(self._boxes):
            self._close(cell)
        return dict(sorted(self._tables.items()))

    def add(self, look: Look) -> None:
        """Count the pairs of one batch."""
        codes = codes_of(look.norms)
        members = {int(one): look.categories == one for one in np.unique(look.categories[look.real])}
        for head in range(look.weights.shape[1]):
            low, high = _range(look, head)
            counted: dict[int, Bool[np.ndarray, "batch src"]] = {}
            for category, keys in members.items():
                cell = head, category
                if cell not in self._tables:
                    first = keys & (np.cumsum(keys).reshape(keys.shape) <= FIRST)
                    self._join(cell, _sorted(look, head, first))
                    keys = keys & ~first
                if self._ready(cell, codes[:, head][keys], low, high):
                    counted[category] = keys
                else:
                    self._join(cell, _sorted(look, head, keys))
            if counted:
                self._count(look, head, codes[:, head], counted)

    def _ready(self, cell: Cell, codes: Int[np.ndarray, " key"], low: int, high: int) -> bool:
        """Whether a box has room for ‖f‖ of these codes and α from low to high, now or after widening it."""
        box = self._boxes.get(cell)
        if box is None or not box.fits(codes, low, high):
            self._close(cell)
            box = self._boxes[cell] = _Box.around(self._tables[cell], codes, low, high)
        if box.width <= WIDTH:
            return True
        self._boxes.pop(cell)
        return False

    def _count(self, look: Look, head: int, codes: np.ndarray, counted: dict[int, np.ndarray]) -> None:
        base, shift = np.zeros(codes.shape, np.int32), np.full(codes.shape, 31, np.int32)
        starts = [0]
        for category, keys in counted.items():
            box = self._boxes[head, category]
            base[keys] = starts[-1] + box.rows(codes[keys]) * box.width - box.bottom
            shift[keys] = box.y_shift
            starts.append(starts[-1] + box.counts.size)
        base[shift == 31] = starts[-1]  # what does not count goes into a cell of its own
        bits = look.weights[:, head].view(torch.int32)
        cells = torch.bitwise_right_shift(bits, _beside(shift, bits))
        cells += _beside(base, bits)
        if look.visible is not None:
            cells.masked_fill_(~look.visible, starts[-1])
        counts = torch.bincount(cells.flatten(), minlength=starts[-1] + 1).cpu().numpy()
        for start, category in zip(starts, counted, strict=False):
            box = self._boxes[head, category]
            box.counts += counts[start : start + box.counts.size].reshape(box.counts.shape)

    def _close(self, cell: Cell) -> None:
        box = self._boxes.pop(cell, None)
        if box is not None and box.counts.any():
            self._join(cell, box.table())

    def _join(self, cell: Cell, table: Ranks) -> None:
        self._tables[cell] = self._tables.get(cell, Ranks.none(*SIZE)) + table


@dataclass(slots=True)
class _Box:
    """Counts over some codes of ‖f‖, in the order they came, and a range of codes of α."""

    x_shift: int
    y_shift: int
    bottom: int  # lowest code of α
    width: int
    codes: Int[np.ndarray, " row"]  # of ‖f‖, ascending
    order: Int[np.ndarray, " row"]  # their rows
    counts: Int[np.ndarray, "row alpha"]

    @staticmethod
    def around(table: Ranks, codes: Int[np.ndarray, " key"], low: int, high: int) -> _Box:
        """A box for what the table and the batch hold, with some room on both sides of α."""
        low = min([low >> table.y_shift, *table.y_codes[:1].tolist()])
        high = max([high >> table.y_shift, *table.y_codes[-1:].tolist()])
        room = 8 + (high - low) // 8
        bottom = max(0, low - room)
        width = 1 + high + room - bottom
        rows, x_shift = joined(table.x_codes, table.x_shift, np.unique(codes), 0, SIZE[0])
        counts = np.zeros((len(rows), min(width, WIDTH)), np.int64)
        return _Box(x_shift, table.y_shift, bottom, width, rows, np.arange(len(rows)), counts)

    def fits(self, codes: Int[np.ndarray, " key"], low: int, high: int) -> bool:
        """Whether these pairs have a place; rows are added for codes of ‖f‖ that are new."""
        if low >> self.y_shift < self.bottom or high >> self.y_shift >= self.bottom + self.width:
            return False
        new = np.setdiff1d(codes >> self.x_shift, self.codes)
        if len(new) + len(self.codes) > ROWS:
            return False
        if len(new):
            both = np.concatenate([self.codes, new])
            sort = np.argsort(both)
            self.codes, self.order = (
                both[sort],
                np.concatenate([self.order, len(self.order) + np.arange(len(new))])[sort],
            )
            self.counts = np.concatenate([self.counts, np.zeros((len(new), self.width), np.int64)])
        return True

    def rows(self, codes: Int[np.ndarray, " key"]) -> Int[np.ndarray, " key"]:
        return self.order[np.searchsorted(self.codes, codes >> self.x_shift)]

    def table(self) -> Ranks:
        """The same counts; codes that did not occur are left out."""
        dense = self.counts[self.order]
        x, y = np.flatnonzero(dense.any(axis=1)), np.flatnonzero(dense.any(axis=0))
        return Ranks(*SIZE, self.x_shift, self.y_shift, self.codes[x], self.bottom + y, dense[np.ix_(x, y)])


def _range(look: Look, head: int) -> tuple[int, int]:
    """Codes of the smallest and largest α of a head."""
    weights = look.weights[:, head]
    if look.visible is not None:
        weights = weights[look.visible]
    low, high = codes_of(torch.stack(torch.aminmax(weights)).cpu().numpy()).tolist()
    return low, high


def _sorted(look: Look, head: int, keys: Bool[np.ndarray, "batch src"]) -> Ranks:
    """The pairs of one head and some keys, by sorting: slow, for any numbers."""
    sequence, position = (torch.from_numpy(index) for index in np.nonzero(keys))
    weights = look.weights[sequence, head, :, position]
    seen = torch.ones_like(weights, dtype=torch.bool)
    if look.visible is not None:
        seen = look.visible[sequence, :, position]
    norms = torch.from_numpy(look.norms[:, head][keys])[:, None].expand(weights.shape)
    return Ranks.of(norms[seen.cpu()].numpy(), weights[seen].cpu().numpy(), size=SIZE)


def _beside(array: Int[np.ndarray, "batch src"], like: Tensor) -> Tensor:
    return torch.from_numpy(array).to(like.device)[:, None]
