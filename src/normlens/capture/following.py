"""What is known of the tensors of one pass: labels, the names of their vectors, and the blocks that are followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from normlens.capture import experts
from normlens.capture.calls import tensors_in
from normlens.capture.labels import (
    ALONE,
    Followed,
    Hidden,
    Label,
    Linear,
    Mean,
    Other,
    Picked,
    Place,
    Source,
    Statistic,
    Term,
)
from normlens.capture.operations import PRODUCTS
from normlens.capture.positions import Positions
from normlens.capture.record import Attended
from normlens.capture.vocabulary import ALIGNED, MOVES, SAME

SUMS = frozenset("add radd __add__ __radd__ __iadd__ add_".split())
ADDING = frozenset(
    "sub rsub isub subtract addcmul addcdiv lerp addmm baddbmm cat concat concatenate stack hstack vstack dstack "
    "index_add scatter_add index_put scatter".split()
)
IN_PLACE = frozenset("__iadd__ __isub__ __imul__ __itruediv__ __setitem__ __ipow__".split())
MATRICES = PRODUCTS | {"linear", "addmm", "conv1d", "conv2d", "baddbmm"} | experts.GROUPED

Wanted = Callable[[str, int], frozenset[int] | None]  # states by output matrix and use; None: all, for a proof


class Following:
    """The labels of one pass. A block is handed out when the states that are wanted of it are there."""

    def __init__(self, positions: Positions, wanted: Wanted, hand_out: Callable[[Attended], None]) -> None:
        self.positions, self.wanted, self.hand_out = positions, wanted, hand_out
        self.token = object()
        self.blocks: dict[int, Followed] = {}
        self.held: dict[int, Attended] = {}
        self.complete: list[int] = []  # blocks of which all is there that is wanted
        self.uses: Counter[str] = Counter()
        self.roots = count(1)  # names of vectors; norms, factors and moves keep them
        self.read: set[int] = set()  # the roots that a matrix has read
        self.addends: dict[int, tuple[int, ...]] = {}  # of a sum: the roots of what was added up, constants aside
        self.numbers: dict[int, int] = {}  # states of a block so far

    def release(self) -> None:
        """Hand out what is held, complete or not: the next attention begins, or the pass is over."""
        for order in list(self.held):
            self._let_go(order)

    def begin(self, block: Attended, result: Tensor, rows: Tensor | None, added: Tensor | None) -> None:
        """The output of a block exists, as rows of `result`."""
        wanted = self.wanted(block.out, self.uses[block.out])
        self.uses[block.out] += 1
        if rows is not None and (wanted is None or wanted):
            in_order = torch.equal(rows.flatten(), torch.arange(rows.numel(), device=rows.device))
            output = block.output.detach().clone()
            followed = Followed(block.order, block.out, rows, output, block.out_bias, wanted, in_order=in_order)
            self.blocks[block.order], self.numbers[block.order] = followed, -1
            if wanted is not None:
                self.held[block.order] = replace(block, output=followed.output, followed=followed)
            place = Place(tuple(result.shape[:-1]))
            terms = (Term(Source("attention", None, place)),)
            if added is not None:
                terms += (Term(self.beside(added, 1.0, place)),)
            self.state(result, block.order, terms, place, ("attention",), None)
        if block.order not in self.held:
            self.hand_out(block)

    def hand_over(self) -> None:
        """Hand out the blocks whose last state has come."""
        while self.complete:
            self._let_go(self.complete.pop(0))

    def _let_go(self, order: int) -> None:
        block = self.held.pop(order, None)
        if block is not None:
            del self.blocks[order]
            self.hand_out(block)

    def before(self, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a call that writes into its first operand would destroy, as a copy."""
        if args and writes(name) and isinstance(args[0], Tensor) and any(self.label(a) is not None for a in args):
            kept = args[0].detach().clone()
            label = self.label(args[0])
            if label is not None:
                self.put(kept, replace(label, value=kept) if isinstance(label, Hidden) else label)
            self.name(kept, self.root(args[0]))
            return (kept, *args[1:])
        return args

    def note(self, block: int) -> Followed:
        """Where to write down what the model does with a state; nowhere once the block is handed out."""
        return self.blocks.get(block, NOWHERE)

    def note_use(self, block: int, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        """Write down which states went into something else than a norm of them, and which met something older."""
        operands = list(tensors_in((args, kwargs)))
        labels = [self.label(one) for one in operands]
        states = [one for one in labels if isinstance(one, Linear) and one.attends]
        if any(_goes_elsewhere(self.label(one), states) for one in tensors_in(result)):
            for state in states:
                self.note(state.block).read[state.number] += 1
        for state in map(self.written_over, operands):
            if state is not None:
                self.note(state.block).read[state.number] += 1
        ours = [label is not None and label.block == block for label in labels]
        older = (one for one, is_ours in zip(operands, ours, strict=True) if not is_ours)
        if adds_up(name) and any(not self.is_constant(one) for one in older):
            mine = [label for label, is_ours in zip(labels, ours, strict=True) if is_ours]
            self.note(block).met += [label.number if label in states else None for label in mine]  # pyright: ignore

    def is_fixed(self, tensor: Any) -> bool:
        """Whether it comes from the parameters alone."""
        track = self.positions.track(tensor)
        return isinstance(tensor, Tensor) and self.label(tensor) is None and (track is None or not track.origins)

    def is_constant(self, tensor: Tensor) -> bool:
        """Whether it is known to come from no input and from no attention."""
        track = self.positions.track(tensor)
        return isinstance(tensor, nn.Parameter) or (
            track is not None and not track.origins and self.label(tensor) is None
        )

    def picked(self, tensor: Any) -> Picked | None:
        label = self.label(tensor)
        return label if isinstance(label, Picked) else None

    def beside(self, value: Any, factor: float, place: Place) -> Source:
        """Something that is not made of this block: its residual is what some matrix has read already."""
        if not isinstance(value, Tensor):
            return Source("constant", factor * value, place)
        earlier = self.label(value)
        kept = value.detach() if factor == 1 else factor * value.detach()
        if isinstance(value, nn.Parameter):
            return Source("constant", kept, place)
        if isinstance(earlier, Linear) and earlier.attends:
            self.note(earlier.block).used.append(earlier.number)
        if self.root(value) in self.read:
            return Source("residual", kept, place)
        if self.is_constant(value):
            return Source("constant", kept, place)
        alone = isinstance(earlier, Linear) and all(
            term.source.kind == "constant" or (term.source.network is not None and term.source.network.reads.attends)
            for term in earlier.terms
        )
        return Source("companion" if alone and earlier.place.rows is None else "stranger", kept, place)  # pyright: ignore

    def joined(self, value: Tensor, factor: float, reason: str, state: Linear) -> Term:
        kept = value.detach() if factor == 1 else factor * value.detach()
        return Term(Source("other", kept, state.place, reason=reason))

    def made_of(self, state: Linear, result: Tensor, terms: tuple[Term, ...], word: str) -> bool:
        place = experts.shaped(state.place, tuple(result.shape[:-1]))
        self.state(result, state.block, terms, place, (*state.spelling, word), state)
        return True

    def state(
        self, result: Tensor, block: int, terms: tuple[Term, ...], place: Place, spelling: tuple[str, ...], parent: Any
    ) -> None:
        attends = any(term.source.kind == "attention" for term in terms)
        if attends:
            self.numbers[block] += 1
        state = Linear(block, terms, place, self.numbers[block] if attends else -1, spelling, parent)
        self.put(result, state)
        followed = self.blocks.get(block)
        if attends and followed is not None and (followed.wanted is None or state.number in followed.wanted):
            followed.states.append((state, result.detach().clone()))
            if followed.wanted is not None and len(followed.states) == len(followed.wanted):
                self.complete.append(block)

    def lost(self, block: int, name: str, result: Any, args: tuple[Any, ...]) -> None:
        label = Other(block, f"through '{name}'")
        for part in tensors_in(result):
            self.put(part, label)
        if writes(name) and args and isinstance(args[0], Tensor):
            self.put(args[0], label)

    def put(self, tensor: Any, label: Label) -> None:
        if isinstance(tensor, Tensor) and not isinstance(tensor, nn.Parameter):
            tensor._normlens_flow = (self.token, _version(tensor), label)  # pyright: ignore

    def label(self, tensor: Any) -> Label | None:
        found = getattr(tensor, "_normlens_flow", None) if isinstance(tensor, Tensor) else None
        if found is None or found[0] is not self.token:
            return None
        if found[1] != _version(tensor):
            return Other(found[2].block, "it was written over")
        return found[2]

    def written_over(self, tensor: Tensor) -> Linear | None:
        """The state that a tensor held before something was written into its memory, perhaps by way of a view."""
        found = getattr(tensor, "_normlens_flow", None)
        if found is None or found[0] is not self.token or found[1] == _version(tensor):
            return None
        return found[2] if isinstance(found[2], Linear) and found[2].attends else None

    def of(self, block: int, tensor: Any) -> Label | None:
        """What is known of a tensor as part of this block; what belongs to an earlier block counts as older."""
        label = self.label(tensor)
        return label if label is not None and label.block == block else None

    def root(self, tensor: Tensor) -> int:
        """The name of the vectors that a tensor holds, whatever norms, factors and moves they went through."""
        found = getattr(tensor, "_normlens_root", None)
        if found is None or found[0] is not self.token:
            found = (self.token, next(self.roots))
            self.name(tensor, found[1])
        return found[1]

    def name(self, tensor: Tensor, root: int) -> None:
        if not isinstance(tensor, nn.Parameter):
            tensor._normlens_root = (self.token, root)  # pyright: ignore

    def trace_root(self, name: str, operands: list[Tensor], result: Any) -> None:
        """Norms, factors and moves keep the name of what they are applied to; a matrix notes what it reads."""
        given = [one for one in operands if not isinstance(one, nn.Parameter)]
        if name in MATRICES:
            self.note_read(given)
        elif given and (name in ALIGNED or name in MOVES or name in SAME or name == "pad"):
            size = max(one.numel() for one in given)
            widest = [one for one in given if one.numel() == size]
            if len(widest) == 1:
                for part in tensors_in(result):
                    self.name(part, self.root(widest[0]))
            elif name in SUMS and isinstance(result, Tensor):
                added = tuple(self.root(one) for one in widest if not self.is_constant(one))
                self.name(result, next(self.roots))
                self.addends[self.root(result)] = added

    def note_read(self, tensors: list[Tensor]) -> None:
        """A matrix reads vectors, and with a sum all that was added up in it, such as a state and its position."""
        roots = list(map(self.root, tensors))
        while roots:
            root = roots.pop()
            if root not in self.read:
                self.read.add(root)
                roots += self.addends.get(root, ())


NOWHERE = Followed(-1, "", torch.empty(0, 0, dtype=torch.long), torch.empty(0, 0, 0), None)


def writes(name: str) -> bool:
    return name in IN_PLACE or (name.endswith("_") and not name.endswith("__"))


def adds_up(name: str) -> bool:
    """Whether a call adds its operands up, or puts them side by side where a later one may."""
    return name in SUMS or name.strip("_") in ADDING


def _goes_elsewhere(label: Label | None, states: list[Linear]) -> bool:
    """Whether what a call made of states is none of them, normed or moved, nor a statistic."""
    if isinstance(label, Linear) and label.attends:
        moved = any(label.number == one.number and label.block == one.block for one in states)
        return not moved and label.spelling[-1] not in ALONE
    return not isinstance(label, (Mean, Statistic)) and (not isinstance(label, Other) or bool(label.reason))


def keeps_width(operand: Tensor, result: Any) -> bool:
    return isinstance(result, Tensor) and result.ndim > 0 and result.shape[-1] == operand.shape[-1]


def over_last(args: tuple[Any, ...], kwargs: Mapping[str, Any], operand: Tensor, result: Any) -> bool:
    """Whether a reduction was over the last axis alone, which was kept."""
    dim = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else None))
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    last = len(dims) == 1 and dims[0] in (-1, operand.ndim - 1)
    return last and isinstance(result, Tensor) and result.shape == (*operand.shape[:-1], 1)


def _version(tensor: Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version
