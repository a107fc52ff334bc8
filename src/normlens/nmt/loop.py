"""The training loop: update after update, a validation every so often, and everything saved after each.

Room: batches in, weights out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from normlens.errors import NormlensError
from normlens.nmt.build import untrained
from normlens.nmt.folder import State, load_state, save_model, save_state
from normlens.nmt.pairs import PAD
from normlens.nmt.plan import Plan
from normlens.nmt.prepare import Data
from normlens.nmt.start import take_weights
from normlens.nmt.validate import Validation, loss

AT_ONCE = 8000  # tokens that one backward pass holds; an update of more is made of several


class TrainingError(NormlensError):
    """A training that cannot begin or go on."""


@dataclass(frozen=True, slots=True)
class Update:
    """One step of the training."""

    update: int
    updates: int  # in all
    loss: float  # label-smoothed, per target subword
    tokens: int  # target subwords


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told what, while a training runs."""

    told: Callable[[str], None] = lambda line: None  # how much text there is, and where the training stands
    updated: Callable[[Update], None] = lambda update: None
    validated: Callable[[Validation], None] = lambda validation: None  # called after the state is saved


def run(folder: Path, data: Data, plan: Plan, device: str, watch: Watch, start: Path | None) -> None:
    """Train to the end, from the start or from what the folder has; the random numbers of the caller are left alone."""
    with torch.random.fork_rng(devices=[]):
        _run(folder, data, plan, device, watch, start)


def _run(folder: Path, data: Data, plan: Plan, device: str, watch: Watch, start: Path | None) -> None:
    recipe, tokens = plan.recipe, data.tokens
    sizes = {"sources": len(tokens.encoder), "targets": len(tokens.target_encoder)}
    model = untrained(recipe, **sizes, seed=plan.seed)
    if start is not None:
        take_weights(start, model)
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    state = load_state(folder, model, optimizer)
    if state.update:
        watch.told(f"Going on after update {state.update:,}.")
    batches = data.pairs.endless(tokens=recipe.tokens, seed=plan.seed, skip=state.update)
    losses: list[float] = []
    began, before = time.monotonic(), state.minutes
    model.train()
    for update in range(state.update + 1, recipe.updates + 1):
        torch.manual_seed((plan.seed << 32) + update)  # so dropout is the same after a kill
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate_at(update)
        source, target = next(batches)
        losses.append(step(model, optimizer, source, target, smoothing=recipe.smoothing, update=update))
        watch.updated(Update(update, recipe.updates, losses[-1], int((target != PAD).sum())))
        if update % recipe.every == 0 or update == recipe.updates:
            minutes = before + (time.monotonic() - began) / 60
            look = data.held.look(model, tokens, update=update, minutes=minutes, train_loss=sum(losses) / len(losses))
            losses.clear()
            if look.bleu >= max((past["bleu"] for past in state.history), default=0.0):
                save_model(folder, model, tokens)
            state = State(update, minutes, (*state.history, asdict(look)))
            save_state(folder, model, optimizer, state)
            watch.validated(look)


def step(model: Any, optimizer: Any, source: Tensor, target: Tensor, *, smoothing: float, update: int) -> float:
    """One update by one batch; returns its loss."""
    rows = max(1, AT_ONCE // max(source.shape[1], target.shape[1]))
    count, total = int((target != PAD).sum()), 0.0
    for start in range(0, len(target), rows):
        part = target[start : start + rows]
        share = int((part != PAD).sum()) / count
        lost = loss(model, source[start : start + rows], part, smoothing=smoothing) * share
        lost.backward()
        total += float(lost.detach())
    if not math.isfinite(total):
        raise TrainingError(
            f"The loss of update {update} is {total}: the training has diverged.\n"
            "  Usual cause: a learning rate that is too high.\n"
            "  Do: train into another folder with a lower rate, or with a longer warm-up."
        )
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return total
