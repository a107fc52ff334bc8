"""Prove a model on a probe input: do the parts rebuild the whole, and does watching change nothing?

Room: the two checks, per block, explained. Knows no model family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from normlens.capture.closeness import relative_error
from normlens.capture.record import Attended, Refused
from normlens.capture.run import run, visible_attention

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}


@dataclass(frozen=True, slots=True)
class ExaminedBlock:
    """One attention block of the probe run, and how exactly its parts rebuilt its output."""

    order: int  # its place among all attention seen in the pass
    name: str  # module path of the attention
    out: str  # its output matrix; "" when it has none
    heads: int
    tgt: int
    src: int
    error: float  # ‖rebuilt - output‖ / ‖output‖
    reason: str | None  # why it is refused; None when exact

    @property
    def exact(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Examination:
    """What a probe input showed about a model."""

    blocks: tuple[ExaminedBlock, ...]
    difference: float  # ‖tapped - untapped‖ / ‖untapped‖ over the model's outputs
    reason: str | None  # why the model as a whole is refused; None when it is not

    @property
    def exact(self) -> bool:
        """Every attention block in the model is exact."""
        return self.reason is None and bool(self.blocks) and all(block.exact for block in self.blocks)


def examine(model: nn.Module, inputs: Mapping[str, Any]) -> Examination:
    """Run the probe untapped and tapped, rebuild every block, and say what holds."""
    blocks: list[ExaminedBlock] = []
    ran: dict[str, None] = {}
    with module_path(model, ran) as here:

        def on_block(attended: Attended) -> None:
            error = rebuild_error(attended)
            allowed = tolerance(attended.output.dtype)
            head, tgt, src = attended.weights.shape[1:]
            reason = (
                None if error <= allowed else f"parts rebuild its output only to {error:.1e} (allowed {allowed:.0e})"
            )
            if not attended.out and reason is None:
                reason = "its output matrix is not a parameter of the model"
            blocks.append(ExaminedBlock(attended.order, attended.where, attended.out, head, tgt, src, error, reason))

        tapped, refused = _seeded(lambda: run(model, inputs, on_block, where=here))
    untapped = _seeded(lambda: _plain(model, inputs))
    difference = relative_difference(tensors(tapped), tensors(untapped))
    blocks = _with_refused(blocks, refused)
    blocks += _unseen(model, list(ran), [block.name for block in blocks])
    return Examination(tuple(blocks), difference, _reason(blocks, tensors(untapped), difference))


def tolerance(dtype: torch.dtype) -> float:
    """The largest relative error that rounding alone explains."""
    return TOLERANCE.get(dtype, 1e-5)


def rebuild_error(attended: Attended) -> float:
    """‖Σ_h Σ_j α f(x_j) + b_O − output‖ / ‖output‖, with every f(x) written out in double precision."""
    transformed = torch.einsum("bhsd,hdm->bhsm", attended.values.double(), attended.out_weight.double())
    rebuilt = torch.einsum("bhts,bhsm->btm", attended.weights.double(), transformed)
    if attended.out_bias is not None:
        rebuilt = rebuilt + attended.out_bias
    return relative_error(rebuilt, attended.output.double())


def relative_difference(left: list[Tensor], right: list[Tensor]) -> float:
    """Largest relative difference over pairs of tensors; infinite for other shapes, or NaN beside a number."""
    if [t.shape for t in left] != [t.shape for t in right]:
        return float("inf")
    gaps = [
        relative_error(a.double(), b.double())
        for a, b in zip(left, right, strict=True)
        if a.numel() and bool(torch.isfinite(b).all())
    ]
    return float("inf") if any(map(math.isnan, gaps)) else max(gaps, default=0.0)


def tensors(output: Any) -> list[Tensor]:
    """Every floating-point tensor in a model's output."""
    if isinstance(output, Tensor):
        return [output] if output.is_floating_point() else []
    parts = output.values() if isinstance(output, Mapping) else output if isinstance(output, (list, tuple)) else ()
    return [tensor for part in parts for tensor in tensors(part)]


@contextmanager
def module_path(model: nn.Module, ran: dict[str, None]) -> Iterator[Callable[[], str]]:
    """Keep track of the module now running, and of all that `ran`, by hooks that are gone at the end."""
    stack: list[str] = []
    handles = []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(lambda *_, name=name: _enter(name, stack, ran)))
        handles.append(module.register_forward_hook(lambda *_: stack.__delitem__(-1), always_call=True))
    try:
        yield lambda: stack[-1] if stack else ""
    finally:
        for handle in handles:
            handle.remove()


def _enter(name: str, stack: list[str], ran: dict[str, None]) -> None:
    stack.append(name)
    ran[name] = None


def _plain(model: nn.Module, inputs: Mapping[str, Any]) -> Any:
    with torch.no_grad(), visible_attention(model):
        return model(**inputs)


def _seeded(job: Callable[[], Any]) -> Any:
    """Same random numbers for both runs, and none taken from the caller."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return job()


def _with_refused(blocks: list[ExaminedBlock], refused: list[Refused]) -> list[ExaminedBlock]:
    """All attention of the pass in the order it ran. A block that was completed and then refused counts once."""
    lost = {r.order: ExaminedBlock(r.order, r.where, "", 0, 0, 0, float("nan"), r.reason) for r in refused}
    whole = {b.order: replace(b, reason=lost[b.order].reason) if b.order in lost else b for b in blocks}
    return sorted((lost | whole).values(), key=lambda block: block.order)


def _unseen(model: nn.Module, ran: list[str], seen: list[str]) -> list[ExaminedBlock]:
    """Modules that call themselves attention and ran, but showed no softmax of theirs: linear, hashed, Fourier ..."""
    modules = dict(model.named_modules())
    named = [name for name in ran if name and "attention" in type(modules[name]).__name__.lower()]
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


def _reason(blocks: list[ExaminedBlock], outputs: list[Tensor], difference: float) -> str | None:
    if any(bool(torch.isnan(t).any()) for t in outputs):
        return "its own output holds NaN on the probe input: broken or uninitialised weights"
    if not blocks:
        return "no softmax attention was seen"
    allowed = tolerance(outputs[0].dtype) if outputs else 1e-5
    if difference > allowed * 10:
        return f"its output changes by {difference:.1e} when watched"
    return None
