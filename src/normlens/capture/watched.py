"""One watched run of the probe: every attention block in it, rebuilt, named and judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from normlens.capture.compare import rebuild_error, tolerance
from normlens.capture.examined import ExaminedBlock
from normlens.capture.listen import lost_outputs, module_path
from normlens.capture.paths import NO_PATH
from normlens.capture.record import Attended, Refused, unordered
from normlens.capture.run import WATCHED, run, seeded
from normlens.capture.stages import proved_paths

MOST_CELLS = 2**28  # of all attention weights together; beyond, none are kept for further proofs


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """The numbers of one block that further proofs compare."""

    block: tuple[str, int]  # its output matrix, and how often that was used before in the same pass
    weights: Float[Tensor, "batch head tgt src"]  # α
    norms: Float[Tensor, "batch head src"]  # ‖f(x)‖
    factors: Float[Tensor, "batch head tgt"] | None  # of each query: its scale, or the norm of its gate


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """A watched run: the model's output, its blocks in the order they ran, and their numbers by that order."""

    output: Any
    blocks: tuple[ExaminedBlock, ...]
    numbers: dict[int, Numbers] | None  # None: too many to be kept
    chains: Mapping[str, int]  # output matrices that further matrices follow
    spare: Mapping[str, int]  # uses of an output matrix beside its blocks
    read_on: Mapping[str, int]  # matrices that follow an output matrix in whatever module

    @property
    def exact(self) -> int:
        return sum(block.exact for block in self.blocks)


def watch(
    model: nn.Module,
    inputs: Mapping[str, Any],
    *,
    stand_in: str | None = None,
    chains: Mapping[str, int] | None = None,
) -> Watched:
    """Run the probe under the tap and rebuild every block; once more where matrices follow an output matrix."""
    blocks: list[ExaminedBlock] = []
    ran: dict[str, None] = {}
    gathered = Gathered()
    with module_path(model, ran) as here, lost_outputs(model) as lost, seeded(WATCHED):

        def on_block(attended: Attended) -> None:
            blocks.append(_examined(attended))
            gathered.add(attended)

        passed = run(model, inputs, on_block, where=here, stand_in=stand_in, chains=chains, states=lambda *_: None)
    if passed.chains and chains is None:
        return watch(model, inputs, stand_in=stand_in, chains=passed.chains)
    ways = proved_paths(passed.followed)
    blocks = [replace(block, path=ways.get(block.order, NO_PATH)) for block in blocks]
    found = _with_refused(blocks, passed.refused)
    mixing = passed.mixing | lost
    ran_and_mixed = [name for name in ran if any(_within(inner, name) for inner in mixing)]
    found += _unseen(model, ran_and_mixed, [block.name for block in found])
    used = Counter(block.out for block in blocks)
    spare = {out: passed.matrices.get(out.split(" @ ")[0], 0) - count for out, count in used.items()}
    return Watched(passed.output, tuple(found), gathered.numbers, chains or {}, spare, passed.read_on)


class Gathered:
    """The numbers of a run, as long as they are few."""

    def __init__(self) -> None:
        self.numbers: dict[int, Numbers] | None = {}
        self.uses: Counter[str] = Counter()
        self.cells = 0

    def add(self, attended: Attended) -> None:
        self.cells += attended.weights.numel()
        if self.cells > MOST_CELLS:
            self.numbers = None
        if self.numbers is not None:
            transformed = torch.einsum("bhsd,hdm->bhsm", attended.values, attended.out_weight)
            block = (attended.out, self.uses[attended.out])
            factors = attended.scales if attended.gates is None else attended.gates.norm(dim=-1)
            self.numbers[attended.order] = Numbers(block, attended.weights, transformed.norm(dim=-1), factors)
        self.uses[attended.out] += 1


def _examined(attended: Attended) -> ExaminedBlock:
    error, allowed = rebuild_error(attended), tolerance(attended.output.dtype)
    head, tgt, src = attended.weights.shape[1:]
    reason = None if error <= allowed else f"parts rebuild its output only to {error:.1e} (allowed {allowed:.0e})"
    if not attended.out and reason is None:
        reason = "its output matrix is not a parameter of the model"
    return ExaminedBlock(
        attended.order,
        attended.where,
        attended.out,
        head,
        tgt,
        src,
        error,
        reason or unordered(attended),
        asks=attended.tgt.names,
        answers=attended.src.names,
    )


def _with_refused(blocks: list[ExaminedBlock], refused: list[Refused]) -> list[ExaminedBlock]:
    """All attention of the pass in the order it ran. A block that was completed and then refused counts once."""
    lost = {
        r.order: ExaminedBlock(r.order, r.where, "", 0, 0, 0, float("nan"), r.reason, asks=r.tgt, answers=r.src)
        for r in refused
    }
    whole = {b.order: replace(b, reason=lost[b.order].reason) if b.order in lost else b for b in blocks}
    return sorted((lost | whole).values(), key=lambda block: block.order)


def _unseen(model: nn.Module, ran: list[str], seen: list[str]) -> list[ExaminedBlock]:
    """Modules that call themselves attention and ran, but showed no softmax of theirs: linear, hashed, Fourier ...

    `ran`: those in which something may have brought positions together; a matrix and a norm alone are no attention.
    """
    modules = dict(model.named_modules())
    named = [name for name in ran if name and "attention" in type(modules.get(name)).__name__.lower()]
    blind = [name for name in named if not any(_within(name, other) or _within(other, name) for other in seen if other)]
    outermost = [name for name in blind if not any(_within(name, other) for other in blind if other != name)]
    return [
        ExaminedBlock(
            1 << 30, name, "", 0, 0, 0, float("nan"), f"no softmax was seen in this {type(modules[name]).__name__}"
        )
        for name in outermost
    ]


def _within(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith(outer + ".")
