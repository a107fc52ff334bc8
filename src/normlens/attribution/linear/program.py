"""The steps that lead to one result: pruned, cut to the row that is asked, and with the places where biases are shared.

Attention mixes what belongs to no token like everything else, so the bias of a value matrix waits for the bias of the
output matrix and both are shared out together. The authors of DecompX share them once the residual is added, and leave
the first layer's bias of the values with its token: `theirs`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Literal

import torch

from normlens.attribution.linear.steps import (
    Active,
    Matrix,
    Mixed,
    Moved,
    Normed,
    Scaled,
    Seed,
    Shared,
    Step,
    Summed,
    row_of,
)

Sharing = Literal["ours", "theirs", "none"]


def pruned(steps: list[Step], asked: int) -> list[Step]:
    """The steps that what is asked depends on."""
    needed, kept = {asked}, []
    for step in reversed(steps):
        if step.writes in needed:
            needed.update(step.reads)
            kept.append(step)
    return kept[::-1]


class Program:
    """Steps in the order they ran, and the number of the tensor that is asked for."""

    def __init__(self, steps: list[Step], asked: int) -> None:
        self.steps, self.asked = pruned(steps, asked), asked
        self.next = len(steps)

    @property
    def by_number(self) -> dict[int, Step]:
        return {step.writes: step for step in self.steps}

    def uses(self) -> Counter[int]:
        return Counter(number for step in self.steps for number in step.reads)

    def at_row(self, row: int) -> Program:
        """The same for one row of the result: what leads to the other rows alone is not computed."""
        rows = self.by_number[self.asked].shape[1]
        added: list[Step] = []
        asked = self._cut(self.asked, row % rows, rows, added)
        cut = Program.__new__(Program)
        cut.steps, cut.asked, cut.next = pruned([*self.steps, *added], asked), asked, self.next
        return cut

    def _cut(self, number: int, row: int, rows: int, added: list[Step]) -> int:
        step, shape = self.by_number[number], self.by_number[number].shape
        lone = all(self.uses()[read] == 1 for read in step.reads) or not isinstance(step.act, Summed)
        act = step.act.at(row, rows) if len(shape) == 3 and shape[1] == rows and lone else None
        narrow = all(self.uses()[read] == 1 and len(self.by_number[read].shape) == 3 for read in step.reads)
        if act is None or not narrow:
            reads, made = (number,), Moved(torch.narrow, (1, row, 1), {})
            new = Step(made, reads, self.next, (shape[0], 1, *shape[2:]), None, step.where)
        else:
            reads = tuple(self._cut(read, row, rows, added) for read in step.reads)
            constant = row_of(step.added, row, rows)
            new = Step(act, reads, self.next, (shape[0], 1, *shape[2:]), constant, step.where)
        self.next += 1
        added.append(new)
        return new.writes

    def fused(self) -> None:
        """A slice of what a matrix writes is a slice of the matrix; factors in a row are one factor."""
        uses, by = self.uses(), self.by_number
        for at, step in enumerate(self.steps):
            first = by.get(step.reads[0]) if step.reads else None
            if first is None or uses[first.writes] != 1 or len(step.reads) != 1:
                continue
            new = _slice(first, step) or _factor(first, step)
            if new is not None:
                self.steps[at] = by[step.writes] = new
        self.steps = pruned(self.steps, self.asked)

    def shared(self, sharing: Sharing) -> list[Step]:
        """The steps with those between that share out what belongs to no token."""
        if sharing == "none":
            return self.steps
        waiting = self._values(sharing)
        outputs = self._outputs() if sharing == "theirs" else set()
        loose: set[int] = set()  # tensors of which something may belong to no token
        made: list[Step] = []
        for step in self.steps:
            is_loose = step.added is not None or any(read in loose for read in step.reads)
            made.append(step)
            if not is_loose:
                continue
            ends = step.added is not None or isinstance(step.act, (Matrix, Normed, Active, Summed))
            if ends and step.writes not in waiting | outputs:
                made[-1:] = _with_sharing(step, self._fresh())
            else:
                loose.add(step.writes)
        return made

    def _fresh(self) -> int:
        self.next += 1
        return self.next - 1

    def _values(self, sharing: Sharing) -> set[int]:
        """What reaches attention as values, back to the matrix that wrote it, which is included."""
        mixed, found = self._mixed(), set[int]()
        readers: dict[int, list[Step]] = {}
        for step in reversed(self.steps):
            users = readers.get(step.writes, [])
            if users and all(
                isinstance(user.act, Mixed) or (user.writes in found and not isinstance(user.act, Matrix))
                for user in users
            ):
                first = sharing == "theirs" and step.writes not in mixed
                if not first and isinstance(step.act, (Matrix, Moved, Scaled)):
                    found.add(step.writes)
            for read in step.reads:
                readers.setdefault(read, []).append(step)
        return found

    def _mixed(self) -> set[int]:
        """Tensors behind some attention."""
        found: set[int] = set()
        for step in self.steps:
            if isinstance(step.act, Mixed) or any(read in found for read in step.reads):
                found.add(step.writes)
        return found

    def _outputs(self) -> set[int]:
        """What the output matrices of attention write, where a residual is added to it and nothing else is done."""
        heads, found, uses = self.heads(), set[int](), self.uses()
        summed = {read for step in self.steps if isinstance(step.act, Summed) for read in step.reads}
        for step in self.steps:
            of_heads = isinstance(step.act, Matrix) and step.reads[0] in heads
            if of_heads and step.writes in summed and uses[step.writes] == 1:
                found.add(step.writes)
        return found

    def trunk(self) -> set[int]:
        """Activations that everything passes: those of a head or a limit of the logits, of no feed-forward block."""
        return {step.writes for step in self.steps if isinstance(step.act, Active) and self._parts(step.writes)}

    def _parts(self, number: int) -> bool:
        """Whether no way from the tokens to what is asked leads past a tensor."""
        reached = set[int]()
        for step in self.steps:
            if step.writes != number and (isinstance(step.act, Seed) or any(read in reached for read in step.reads)):
                reached.add(step.writes)
        return self.asked not in reached

    def heads(self) -> set[int]:
        """What attention writes, on its way to the output matrix."""
        found = set[int]()
        for step in self.steps:
            moved = isinstance(step.act, (Moved, Active, Scaled, Normed)) and step.reads[0] in found
            if isinstance(step.act, Mixed) or moved:
                found.add(step.writes)
        return found


def _with_sharing(step: Step, fresh: int) -> list[Step]:
    """A step and the sharing behind it; where a matrix widens its vectors, shares are found in front of it."""
    act = step.act
    if isinstance(act, Matrix) and act.weight.shape[0] < act.weight.shape[1]:
        return [replace(step, act=Shared(act))]
    return [replace(step, writes=fresh), Step(Shared(), (fresh,), step.writes, step.shape, None, step.where)]


def _slice(first: Step, step: Step) -> Step | None:
    act = step.act
    if not isinstance(first.act, Matrix) or not isinstance(act, Moved) or len(step.shape) != len(first.shape):
        return None
    name = getattr(act.func, "__name__", "")
    if name not in ("split", "chunk") or act.index is None or step.shape[:-1] != first.shape[:-1]:
        return None
    pieces = getattr(torch, name)(first.act.weight.new_empty(1, first.shape[-1], device="meta"), act.rest[0], dim=-1)
    start = sum(piece.shape[-1] for piece in pieces[: act.index])
    columns = slice(start, start + step.shape[-1])
    added = None if first.added is None else first.added[..., columns]
    return replace(step, act=Matrix(first.act.weight[:, columns]), reads=first.reads, added=added)


def _factor(first: Step, step: Step) -> Step | None:
    """Two factors as one, where nothing is added between them."""
    if first.added is not None or not isinstance(step.act, (Scaled, Normed)) or step.shape != first.shape:
        return None
    if isinstance(step.act, Normed) or not isinstance(first.act, (Scaled, Normed)):
        return None
    return replace(step, act=replace(first.act, by=first.act.by * step.act.by), reads=first.reads)
