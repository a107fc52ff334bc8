"""Scale single heads of a model while it runs: a gate ξ_h on what each head passes to its output matrix W_O.

    y_i = Σ_h ξ_h · Σ_j α_h f_h(x_j) + b_O        with every ξ_h = 1 it is the model itself, bit for bit

The slice of W_O's input that belongs to a head is proved: W_O of that slice alone must be what the lens found for the
head, Σ_j α f(x_j), on a batch of two texts.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from normlens.capture import relative_error, tolerance
from normlens.errors import NormlensError
from normlens.lens.block import Block
from normlens.lens.lens import Lens
from normlens.lens.wiring import Kind, Wire
from normlens.models import Encoded, ready, separately


class GateError(NormlensError):
    """A model whose heads cannot be scaled one by one."""


@dataclass(frozen=True, slots=True)
class GatedBlock:
    """An attention block whose heads can be scaled."""

    kind: Kind
    layer: int
    heads: int
    out: str  # module path of its output matrix
    use: int  # how often that module runs before in the same pass: layers may share it


@dataclass(frozen=True, slots=True, eq=False)
class Gates:
    """The gates of a model. Its heads have a number each: block after block, head after head."""

    model: nn.Module
    blocks: tuple[GatedBlock, ...]
    left_out: Mapping[str, str]  # blocks without gates, such as "self L3", and why

    @property
    def heads(self) -> list[tuple[Kind, int, int]]:
        """Kind, layer and head of every gate, by its number."""
        return [(block.kind, block.layer, head) for block in self.blocks for head in range(block.heads)]

    @contextmanager
    def scaled(self, values: Float[Tensor, " head"], *, batch: int) -> Iterator[None]:
        """Every head times its value, in one pass over a batch of so many sequences."""
        parts = values.split([block.heads for block in self.blocks])
        with self._hooked(batch, lambda index, states: parts[index].to(states)):
            yield

    @contextmanager
    def recorded(self, *, batch: int) -> Iterator[list[Float[Tensor, "batch tgt head"]]]:
        """Gates of 1 for every sequence, position and head of one pass; the loss can be derived by them afterwards."""
        gates: list[Tensor] = [torch.empty(0)] * len(self.blocks)

        def new(index: int, states: Tensor) -> Tensor:
            gates[index] = torch.ones(states.shape[:3], dtype=states.dtype, device=states.device, requires_grad=True)
            return gates[index]

        with self._hooked(batch, new):
            yield gates

    @contextmanager
    def _hooked(self, batch: int, gate: Callable[[int, Tensor], Tensor]) -> Iterator[None]:
        places = {(block.out, block.use): index for index, block in enumerate(self.blocks)}
        uses: Counter[str] = Counter()
        me = threading.get_ident()

        def scale(name: str, module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
            if threading.get_ident() != me:
                return None
            index = places.get((name, uses[name]))
            uses[name] += 1
            if index is None:
                return None
            states = args[0].reshape(batch, -1, self.blocks[index].heads, args[0].shape[-1] // self.blocks[index].heads)
            return (states * gate(index, states)[..., None]).reshape(args[0].shape), *args[1:]

        with ExitStack() as hooks:
            for name in dict.fromkeys(block.out for block in self.blocks):
                module = self.model.get_submodule(name)
                hooks.enter_context(module.register_forward_pre_hook(partial(scale, name)))
            yield
        silent = next((block for block in self.blocks if uses[block.out] <= block.use), None)
        if silent is not None:
            raise GateError(
                f"{silent.kind} layer {silent.layer}: its output matrix '{silent.out}' did not run in this pass.",
                cause="the model skips layers for such inputs.",
                do="give inputs like those of the proof.",
            )


def find_gates(lens: Lens, encoded: Encoded) -> Gates:
    """The gates of a model, proved on the first of these texts and the same text backwards."""
    twice = ready(lens.subject, _forwards_and_backwards(separately(lens.subject, encoded)[0].inputs))
    with _inputs_of_matrices(lens) as received:
        blocks: list[Block] = []
        lens.observe(twice, blocks.append, fields=("head_outputs",))
    wires = {(wire.kind, wire.layer): wire for wire in lens.wires}
    gated: list[GatedBlock] = []
    left_out = {f"{wire.kind} L{wire.layer}": wire.reason for wire in lens.wires if wire.reason is not None}
    for block in blocks:
        wire = wires.get((block.kind, block.layer))
        reason = "it is not the block that was proved" if wire is None else _refusal(lens, wire, block, received)
        if wire is not None and reason is None:
            gated.append(GatedBlock(block.kind, block.layer, len(block.heads), _module(wire), wire.use))
        elif reason is not None:
            left_out[f"{block.kind} L{block.layer}"] = reason
    if not gated:
        raise GateError(
            f"The heads of '{lens.subject.name}' cannot be scaled one by one: {next(iter(left_out.values()), 'none')}.",
            do="choose a model whose heads reach their output matrix side by side.",
        )
    return Gates(lens.subject.model, tuple(gated), left_out)


def _module(wire: Wire) -> str:
    return wire.out.removesuffix(".weight")


def _forwards_and_backwards(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """One text twice, the second time with its tokens in reverse: a batch in which the sequences differ."""
    twice = {}
    for name, value in inputs.items():
        if not isinstance(value, Tensor):
            twice[name] = value
        else:
            second = value.flip(1) if name in ("input_ids", "decoder_input_ids") else value
            twice[name] = torch.cat([value, second])
    return twice


@contextmanager
def _inputs_of_matrices(lens: Lens) -> Iterator[dict[str, list[Tensor]]]:
    """What the output matrices read meanwhile, by their module."""
    received: dict[str, list[Tensor]] = {}
    modules = dict(lens.subject.model.named_modules())

    def note(name: str, module: nn.Module, args: tuple[Any, ...]) -> None:
        received.setdefault(name, []).append(args[0])

    with ExitStack() as hooks:
        for name in {_module(wire) for wire in lens.wires} & modules.keys():
            hooks.enter_context(modules[name].register_forward_pre_hook(partial(note, name)))
        yield received


def _refusal(lens: Lens, wire: Wire, block: Block, received: Mapping[str, list[Tensor]]) -> str | None:
    """Why the heads of a block cannot be scaled; None once each slice has given what its head gives."""
    if " @ " in wire.out:
        return "several matrices in a row are its output matrix"
    states = received.get(_module(wire), [])
    if len(states) <= wire.use:
        return f"its output matrix '{wire.out}' is not called as a module"
    if lens.examination is not None and lens.examination.spare.get(wire.out, 0):
        return f"its output matrix '{wire.out}' is used for something else too"
    expected = block.head_outputs
    batch, heads, positions, _ = expected.shape
    given = states[wire.use].detach()
    if (
        given.numel() % (batch * heads)
        or given.shape[-1] % heads
        or given.numel() != batch * positions * given.shape[-1]
    ):
        return "what its output matrix reads is not one vector per position"
    module = lens.subject.model.get_submodule(_module(wire))
    parts = given.reshape(batch, positions, heads, -1)
    with torch.no_grad():
        bias = module(torch.zeros_like(given)).reshape(batch, positions, -1)
        for head in range(heads):
            alone = torch.zeros_like(parts)
            alone[:, :, head] = parts[:, :, head]
            written = module(alone.reshape(given.shape)).reshape(batch, positions, -1) - bias
            error = relative_error(written.to(expected), expected[:, head])
            if not error <= 10 * tolerance(given.dtype):
                return f"the slices that its output matrix reads are not its heads (head {head} differs by {error:.1e})"
    return None
