"""Every part of a layer, written out in double precision: one vector for each query and key, by plain loops.

What the modules of the model read and returned is noted by hooks; α and f(x) are those of the trace, proved elsewhere.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass
class Noted:
    """What a module read and returned."""

    read: Tensor
    returned: Tensor


class Notes:
    """What the modules of these names read and return in the next pass."""

    def __init__(self, model: nn.Module, names: list[str]) -> None:
        self.of: dict[str, Noted] = {}
        self.handles = [model.get_submodule(name).register_forward_hook(self._note(name)) for name in names]

    def _note(self, name: str):
        def note(module: nn.Module, args: Any, output: Any) -> None:
            output = output[0] if isinstance(output, tuple) else output
            read = args[0] if args else output
            self.of[name] = Noted(read.detach().double(), output.detach().double())

        return note

    def __enter__(self):
        return self

    def __exit__(self, *_: Any) -> None:
        for handle in self.handles:
            handle.remove()


def attention_parts(block) -> Tensor:
    """a[b,i,j] = Σ_h α f(x_j)."""
    weights, vectors = block.weights.double(), block.transformed.double()
    batch, heads, tgt, src = weights.shape
    parts = torch.zeros(batch, tgt, src, vectors.shape[-1], dtype=torch.float64)
    for h in range(heads):
        for i in range(tgt):
            for j in range(src):
                parts[:, i, j] += weights[:, h, i, j, None] * vectors[:, h, j]
    return parts


def with_own(parts: Tensor, own: Tensor) -> Tensor:
    """A token's own vector is added where the key is the query."""
    parts = parts.clone()
    for i in range(parts.shape[1]):
        parts[:, i, i] += own[:, i]
    return parts


def layer_norm(parts: Tensor, whole: Tensor, norm: nn.Module) -> Tensor:
    """Every part through a LayerNorm whose statistics are those of the whole; its bias is nobody's."""
    spread = (whole.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()
    centred = parts - parts.mean(-1, keepdim=True)
    return centred / spread[:, :, None] * norm.weight.detach().double()


def rms_norm(parts: Tensor, whole: Tensor, weight: Tensor, eps: float) -> Tensor:
    size = (whole.square().mean(-1, keepdim=True) + eps).sqrt()
    return parts / size[:, :, None] * weight.detach().double()


def shared_out(parts: Tensor, sums: Tensor, active: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Each unit of a feed-forward block shared out in proportion. Matrices are (out, in), as torch stores them."""
    units = parts @ first.detach().double().mT
    return (units * (active / sums)[:, :, None]) @ second.detach().double().mT


def mixing(parts: Tensor) -> Tensor:
    """‖Σ_{j≠i} F_ij‖ / (‖Σ_{j≠i} F_ij‖ + ‖F_ii‖)."""
    batch, tgt = parts.shape[:2]
    ratio = torch.zeros(batch, tgt, dtype=torch.float64)
    for b in range(batch):
        for i in range(tgt):
            others = sum(parts[b, i, j] for j in range(parts.shape[2]) if j != i)
            rest = others.norm() if isinstance(others, Tensor) else torch.tensor(0.0)
            ratio[b, i] = rest / (rest + parts[b, i, i].norm())
    return ratio
