"""A look at the held-back pairs: loss, and BLEU of their translations.

Room: a model and pairs in, numbers out. Also the loss that training lowers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from normlens.nmt.loss import smoothed_loss
from normlens.nmt.pairs import PAD, Pairs
from normlens.nmt.text import Pair
from normlens.nmt.translate import bleu, translate

TOKENS = 6000  # of a batch


@dataclass(frozen=True, slots=True)
class Validation:
    """One look at the held-back pairs."""

    update: int
    minutes: float  # of training so far, all sessions together
    train_loss: float  # label-smoothed, mean since the last look
    valid_loss: float  # not smoothed, per target subword
    bleu: float


@dataclass(frozen=True, slots=True)
class Held:
    """The pairs that are not trained on."""

    pairs: Pairs
    lines: Sequence[Pair]  # those that are translated

    def look(self, model: Any, tokens: Any, *, update: int, minutes: float, train_loss: float) -> Validation:
        """Loss of all pairs, BLEU of the translated ones; the model is left in training mode."""
        model.eval()
        score = bleu(
            list(translate(model, tokens, [source for source, _ in self.lines], beams=1)),
            [target for _, target in self.lines],
        )
        found = Validation(update, minutes, train_loss, self._loss(model), score)
        model.train()
        return found

    @torch.inference_mode()
    def _loss(self, model: Any) -> float:
        total = count = 0.0
        for chosen in self.pairs.epoch(tokens=TOKENS, seed=(0, 0)):
            source, target = self.pairs.batch(chosen)
            size = float((target != PAD).sum())
            total += size * float(loss(model, source, target, smoothing=0.0))
            count += size
        return total / count


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
