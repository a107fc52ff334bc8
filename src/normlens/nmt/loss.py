"""The loss of a training: label-smoothed cross-entropy, without ever holding all the logits of the output layer.

With z = h Wᵀ over a vocabulary of V and p = softmax(z), the loss of a row with label y is

    (1 - ε)(lse z - z_y) + ε(lse z - mean z)        and its gradient  ∂/∂z = p - (1 - ε)·onehot(y) - ε/V

so a few rows at a time are enough: their logits stay in the cache and become the gradient in place. Over a small model
the usual way, whole matrices of logits walked through five times, costs as much as the model itself.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from normlens.nmt.subwords import PAD

ROWS = 256  # logits of so many rows are held at a time


def loss(model: Any, source: Tensor, target: Tensor, *, smoothing: float) -> Tensor:
    """Mean cross-entropy of the target's subwords, each predicted from the ones before it."""
    source, target = source.to(model.device), target.to(model.device)
    start = torch.full_like(target[:, :1], model.config.decoder_start_token_id)
    hidden = model.model(
        input_ids=source,
        attention_mask=(source != PAD).long(),
        decoder_input_ids=torch.cat([start, target[:, :-1]], dim=1),
        use_cache=False,
    ).last_hidden_state
    real = target != PAD
    if hidden.is_cpu and torch.is_grad_enabled():
        return smoothed_loss(hidden[real], model.lm_head.weight, target[real], smoothing=smoothing)
    return cross_entropy(model.lm_head(hidden[real]), target[real], label_smoothing=smoothing)


def smoothed_loss(
    hidden: Float[Tensor, "row width"],
    weight: Float[Tensor, "vocabulary width"],
    labels: Int[Tensor, " row"],
    *,
    smoothing: float,
) -> Float[Tensor, ""]:
    """Mean over the rows, differentiable in `hidden` and `weight`."""
    return _Smoothed.apply(hidden, weight, labels, smoothing)


class _Smoothed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        rows, size = len(hidden), len(weight)
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        total = torch.zeros((), dtype=torch.float64)
        for start in range(0, rows, ROWS):
            h, y = hidden[start : start + ROWS], labels[start : start + ROWS, None]
            logits = torch.mm(h, weight.T)
            wanted = (1 - smoothing) * logits.gather(1, y) + smoothing * logits.mean(dim=1, keepdim=True)
            top = logits.amax(dim=1, keepdim=True)
            logits.sub_(top).exp_()
            sums = logits.sum(dim=1, keepdim=True)
            total += (sums.log() + top - wanted).sum(dtype=torch.float64)
            logits.div_(sums).sub_(smoothing / size)
            logits.scatter_add_(1, y, torch.full_like(top, smoothing - 1))
            torch.mm(logits, weight, out=grad_hidden[start : start + ROWS])
            grad_weight.addmm_(logits.T, h)
        ctx.save_for_backward(grad_hidden.div_(rows), grad_weight.div_(rows))
        return (total / rows).to(hidden.dtype)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Tensor | None, ...]:
        (grad,), (grad_hidden, grad_weight) = grad_outputs, ctx.saved_tensors
        return grad_hidden * grad, grad_weight * grad, None, None
