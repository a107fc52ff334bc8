"""Count pairs (‖f(x_j)‖, α_ij) into rank tables, one per head and category.

The one place that goes over every single weight: a shift, an addition and a count for each pair.

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

from normlens.statistics import Ranks, codes_of, joined
from normlens.studies.seen import Seen

SIZE = 256, 256  # codes of ‖f‖ and of α in a table
WIDTH = 2048  # codes of α in a box at most; where that is too little, pairs are sorted
FULL = 1 << 30  # pairs counted in a box before it becomes a table: its cells are 32 bits wide
FIRST = 16  # tokens that are sorted to learn how fine the cut of a new table is
Cell = tuple[int, int]  # head, category


class Tally:
    """The pairs of one attention block over all batches."""

    def __init__(self, tables: dict[Cell, Ranks] | None = None) -> None:
        self._tables = dict(tables or {})
        self._boxes: dict[Cell, _Box] = {}
        self._cells: Tensor | None = None  # memory that is used again and again

    def tables(self) -> dict[Cell, Ranks]:
        """What was counted so far."""
        for cell, box in self._boxes.items():
            if box.counted:
                self._join(cell, box.table())
                box.empty()
        return dict(sorted(self._tables.items()))

    def add(self, seen: Seen) -> None:
        """Count the pairs of one batch."""
        codes = codes_of(seen.norms)
        members = {int(one): seen.categories == one for one in np.unique(seen.categories[seen.real])}
        lows, highs = codes_of(seen.least).tolist(), codes_of(seen.most).tolist()
        for head in range(seen.weights.shape[1]):
            self._add(seen, head, codes[:, head], members, lows[head], highs[head])

    def _add(
        self,
        seen: Seen,
        head: int,
        codes: Int[np.ndarray, "batch src"],
        members: dict[int, Bool[np.ndarray, "batch src"]],
        low: int,
        high: int,
    ) -> None:
        placed: list[tuple[_Box, np.ndarray, np.ndarray]] = []
        for category, keys in members.items():
            cell = head, category
            if cell not in self._tables:
                first = keys & (np.cumsum(keys).reshape(keys.shape) <= FIRST)
                self._join(cell, _sorted(seen, head, first))
                keys = keys & ~first
            box = self._boxes.get(cell)
            rows = None if box is None else box.rows(codes[keys], low, high)
            if box is None or rows is None:
                self._close(cell)
                box = _Box.around(self._tables[cell], codes[keys], low, high)
                rows = box.rows(codes[keys], low, high)
            if rows is None or box.width > WIDTH:
                self._join(cell, _sorted(seen, head, keys))
            else:
                self._boxes[cell] = box
                placed.append((box, keys, rows))
        if placed:
            self._cells = _count(seen, head, placed, self._cells)

    def _close(self, cell: Cell) -> None:
        box = self._boxes.pop(cell, None)
        if box is not None and box.counted:
            self._join(cell, box.table())

    def _join(self, cell: Cell, table: Ranks) -> None:
        self._tables[cell] = self._tables.get(cell, Ranks.none(*SIZE)) + table


@dataclass(slots=True, eq=False)
class _Box:
    """Counts over some codes of ‖f‖, in the order they came, and a range of codes of α."""

    x_shift: int
    y_shift: int
    bottom: int  # lowest code of α
    width: int
    codes: Int[np.ndarray, " row"]  # of ‖f‖, ascending
    order: Int[np.ndarray, " row"]  # their rows
    counts: Int[np.ndarray, "row2 alpha"]  # 32 bits wide; rows in the order they came, and empty ones
    counted: int = 0  # pairs, so that no cell can overflow

    @staticmethod
    def around(table: Ranks, codes: Int[np.ndarray, " key"], low: int, high: int) -> _Box:
        """A box for what the table and the batch hold, with some room on both sides of α."""
        low = min([low >> table.y_shift, *table.y_codes[:1].tolist()])
        high = max([high >> table.y_shift, *table.y_codes[-1:].tolist()])
        room = 8 + (high - low) // 8
        bottom = max(0, low - room)
        width = 1 + high + room - bottom
        rows, x_shift = joined(table.x_codes, table.x_shift, np.unique(codes), 0, SIZE[0])
        counts = np.zeros((SIZE[0], min(width, WIDTH)), np.int32)  # rows that no code has yet cost nothing
        return _Box(x_shift, table.y_shift, bottom, width, rows, np.arange(len(rows)), counts)

    def rows(self, codes: Int[np.ndarray, " key"], low: int, high: int) -> Int[np.ndarray, " key"] | None:
        """The rows of these codes of ‖f‖, new ones included; None when they, or α from low to high, have no place."""
        if low >> self.y_shift < self.bottom or high >> self.y_shift >= self.bottom + self.width:
            return None
        if self.counted > FULL:
            return None
        codes = codes >> self.x_shift
        place = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        unknown = self.codes[place] != codes
        if not unknown.any():
            return self.order[place]
        new = np.unique(codes[unknown])
        if len(new) + len(self.codes) > SIZE[0]:
            return None
        both, order = np.concatenate([self.codes, new]), np.arange(len(self.order), len(self.order) + len(new))
        sort = np.argsort(both)
        self.codes, self.order = both[sort], np.concatenate([self.order, order])[sort]
        return self.order[np.searchsorted(self.codes, codes)]

    def empty(self) -> None:
        self.counts[:], self.counted = 0, 0

    def table(self) -> Ranks:
        """The same counts; codes that did not occur are left out."""
        dense = self.counts[self.order].astype(np.int64)
        x, y = np.flatnonzero(dense.any(axis=1)), np.flatnonzero(dense.any(axis=0))
        return Ranks(*SIZE, self.x_shift, self.y_shift, self.codes[x], self.bottom + y, dense[np.ix_(x, y)])


def _count(seen: Seen, head: int, placed: list[tuple[_Box, np.ndarray, np.ndarray]], cells: Tensor | None) -> Tensor:
    """Every pair of a head into its cell, all categories at once; only rows that occur have cells."""
    base = np.zeros(seen.categories.shape, np.int32)
    shift = np.full(seen.categories.shape, 31, np.int32)
    start, stretches = 0, []
    for box, keys, rows in placed:
        occurs = np.zeros(len(box.order), np.int64)
        occurs[rows] = 1
        base[keys] = start + (np.cumsum(occurs) - 1)[rows] * box.width - box.bottom
        shift[keys] = box.y_shift
        stretches.append((box, np.flatnonzero(occurs), start))
        start += int(occurs.sum()) * box.width
    base[shift == 31] = start  # what does not count goes into a cell of its own
    bits = seen.weights[:, head].view(torch.int32)
    if cells is None or cells.shape != bits.shape:
        cells = torch.empty(bits.shape, dtype=torch.int32, device=bits.device)
    torch.bitwise_right_shift(bits, _beside(shift, bits), out=cells).add_(_beside(base, bits))
    if seen.visible is not None:
        cells.masked_fill_(~seen.visible, start)
    counts = torch.bincount(cells.flatten(), minlength=start + 1).cpu().numpy()
    for box, rows, first in stretches:
        part = counts[first : first + len(rows) * box.width].reshape(len(rows), box.width)
        box.counted += bits.numel()
        if len(rows) == len(box.order):
            box.counts[: len(rows)] += part
        else:
            box.counts[rows] += part
    return cells


def _sorted(seen: Seen, head: int, keys: Bool[np.ndarray, "batch src"]) -> Ranks:
    """The pairs of one head and some keys, by sorting: slow, for any numbers."""
    sequence, position = (torch.from_numpy(index) for index in np.nonzero(keys))
    weights = seen.weights[sequence, head, :, position]
    there = torch.ones_like(weights, dtype=torch.bool)
    if seen.visible is not None:
        there = seen.visible[sequence, :, position]
    norms = torch.from_numpy(seen.norms[:, head][keys])[:, None].expand(weights.shape)
    return Ranks.of(norms[there.cpu()].numpy(), weights[there].cpu().numpy(), size=SIZE)


def _beside(array: Int[np.ndarray, "batch src"], like: Tensor) -> Tensor:
    return torch.from_numpy(array).to(like.device)[:, None]
