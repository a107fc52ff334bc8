"""Random weights for which attention is far from uniform.

Fresh initialisation has near-uniform attention and zero biases, which would let a wrong decomposition pass. So
matrices are drawn with std gain/√fan_in, embeddings with unit-sized entries, and everything else (biases, norm
weights, layer scales, state-space constants) is nudged from where its family starts it. Buffers are never touched.
"""

import math

import torch
from torch import nn


@torch.no_grad()
def redraw(model: nn.Module, *, seed: int, gain: float = 1.3) -> None:
    """Draw every parameter of the model again, in place."""
    generator = torch.Generator().manual_seed(seed)
    for path, parameter in model.named_parameters():
        if not parameter.is_floating_point() or not parameter.numel():
            continue
        owner = model.get_submodule(path.rpartition(".")[0])
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float32).to(parameter.dtype)
        if parameter.ndim < 2 or not path.endswith("weight"):
            parameter.add_(noise, alpha=0.1)
        elif isinstance(owner, nn.Embedding):
            parameter.copy_(noise * 0.7)
        else:
            parameter.copy_(noise * (gain / math.sqrt(_fan_in(owner, parameter))))


def _fan_in(owner: nn.Module, parameter: nn.Parameter) -> int:
    if type(owner).__name__ == "Conv1D" and parameter.ndim == 2:
        return parameter.shape[0]
    if isinstance(owner, nn.ConvTranspose1d | nn.ConvTranspose2d):
        return max(1, parameter.shape[0])
    return max(1, parameter[0].numel())
