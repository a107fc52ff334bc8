"""Train a translation model from parallel text: one folder out, resumable at any moment.

The folder holds the best model so far, and `transformers` loads it at every moment.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from normlens.errors import NormlensError
from normlens.nmt.batches import Pairs, encoded
from normlens.nmt.finished import card, digest, sized, take_subwords, take_weights
from normlens.nmt.folder import (
    CARD,
    CHECKPOINT,
    FRESH,
    Setup,
    State,
    check_free,
    enter,
    load_state,
    read_history,
    save_model,
    save_state,
    write_text,
)
from normlens.nmt.model import POSITIONS, check_device, loss, tokenizer, untrained
from normlens.nmt.recipe import Recipe
from normlens.nmt.subwords import PAD, check_libraries, train_subwords, write_vocabulary
from normlens.nmt.text import Pair, Text, TextError, read
from normlens.nmt.translate import Held, Validation

SUBWORD_LINES = 300_000
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
    """What is called while a training runs."""

    noted: Callable[[str], None] = lambda line: None  # how much text there is, and how far the training has come
    updated: Callable[[Update], None] = lambda update: None
    validated: Callable[[Validation], None] = lambda validation: None  # called after the state is saved


def train(
    pairs: Iterable[Pair],
    folder: Path,
    *,
    recipe: Recipe,
    valid: Iterable[Pair] | None = None,
    valid_limit: int = 500,
    languages: tuple[str, str] = ("source", "target"),
    seed: int = 0,
    device: str = "cpu",
    start: Path | None = None,
    resume: bool = False,
    watch: Watch | None = None,
) -> Path:
    """Train, validate every so often, and keep the best model by BLEU in `folder`.

    The pairs are read several times, never held whole. Without `valid`, the last ones are held back; at most
    `valid_limit` are translated. `start` is the folder of a model that was trained before: its subwords and weights
    are what the training begins from, and its sizes replace those of the recipe. A training that was killed and
    resumed ends with the weights of one that was not.
    """
    check_libraries()
    check_device(device)
    watch = watch or Watch()
    if not (0 <= seed < 1 << 31 and valid_limit > 0):
        raise TrainingError(
            "seed must be from 0 to 2,147,483,647, and valid_limit at least 1.",
            got=f"seed {seed}, valid_limit {valid_limit}.",
            do="change --seed and --valid-limit, or leave them out.",
        )
    check_free(folder, resume=resume)
    recipe = recipe if start is None else sized(recipe, start)
    text = read(pairs, valid)
    began = FRESH if start is None else digest(start)
    setup = Setup(recipe, languages, seed, text.digest, text.held_digest, valid_limit, began)
    status = enter(folder, setup, resume=resume)
    if status == "finished":
        watch.noted(f"This training is finished: {recipe.updates:,} updates were made.")
    else:
        data = prepare(text, folder, setup, start)
        watch.noted(
            f"{len(data.pairs):,} pairs to train on; left out: {text.left_out:,} with an empty side, "
            f"{text.kept - len(data.pairs):,} too long. {len(text.held):,} to validate on.\n"
            f"{len(data.tokens.encoder):,} and {len(data.tokens.target_encoder):,} subwords."
        )
        run(folder, data, setup, device, watch, start)
    if status != "finished" or not (folder / CARD).exists():
        write_text(
            folder / CARD,
            card(setup, read_history(folder), data=f"{text.name}, {text.kept:,} pairs", valid_data=text.held_name),
        )
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return folder


@dataclass(frozen=True, slots=True)
class Data:
    """The same in subwords."""

    tokens: Any
    pairs: Pairs
    held: Held


def prepare(text: Text, folder: Path, setup: Setup, start: Path | None) -> Data:
    """Subwords, learned now unless the folder or the model to start from has them, and the ids of every pair."""
    if start is not None:
        take_subwords(start, folder)
    for at, (side, vocabulary) in enumerate((("source", "vocab.json"), ("target", "target_vocab.json"))):
        if not (folder / vocabulary).exists():
            lines = (pair[at] for pair in islice(text.training(), SUBWORD_LINES))
            write_vocabulary(train_subwords(lines, folder / side, size=setup.recipe.vocabulary), folder / vocabulary)
    tokens = tokenizer(folder, source=setup.languages[0], target=setup.languages[1])
    pairs = encoded(tokens, text.training(), longest=setup.recipe.longest)
    held = encoded(tokens, text.held)
    if not len(pairs) or not len(held):
        raise TextError(
            f"No pair is left to {'validate' if len(pairs) else 'train'} on: each is longer than "
            f"{f'{POSITIONS} subwords' if len(pairs) else f'{setup.recipe.longest} words'}.",
            cause="whole paragraphs or documents on a line.",
            do="give one sentence a line, or allow more words with --longest.",
        )
    return Data(tokens, pairs, Held(held, text.held[: setup.valid_limit]))


def run(folder: Path, data: Data, setup: Setup, device: str, watch: Watch, start: Path | None) -> None:
    """Train to the end, from the start or from what the folder has; the random numbers of the caller are left alone."""
    with torch.random.fork_rng(devices=[]):
        _run(folder, data, setup, device, watch, start)


def _run(folder: Path, data: Data, setup: Setup, device: str, watch: Watch, start: Path | None) -> None:
    recipe, tokens = setup.recipe, data.tokens
    sizes = {"sources": len(tokens.encoder), "targets": len(tokens.target_encoder)}
    model = untrained(recipe, **sizes, seed=setup.seed)
    if start is not None:
        take_weights(start, model)
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    state = load_state(folder, model, optimizer)
    if state.update:
        watch.noted(f"Resuming after update {state.update:,}.")
    batches = data.pairs.endless(tokens=recipe.tokens, seed=setup.seed, skip=state.update)
    losses: list[float] = []
    began, before = time.monotonic(), state.minutes
    model.train()
    for update in range(state.update + 1, recipe.updates + 1):
        torch.manual_seed((setup.seed << 32) + update)  # so dropout is the same after a kill
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate_at(update)
        source, target = next(batches)
        losses.append(step(model, optimizer, source, target, smoothing=recipe.smoothing, update=update))
        watch.updated(Update(update, recipe.updates, losses[-1], int((target != PAD).sum())))
        if update % recipe.every == 0 or update == recipe.updates:
            minutes = before + (time.monotonic() - began) / 60
            validation = data.held.validate(
                model, tokens, update=update, minutes=minutes, train_loss=sum(losses) / len(losses)
            )
            losses.clear()
            if validation.bleu >= max((past["bleu"] for past in state.history), default=0.0):
                save_model(folder, model, tokens)
            state = State(update, minutes, (*state.history, asdict(validation)))
            save_state(folder, model, optimizer, state)
            watch.validated(validation)


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
            f"The loss of update {update} is {total}: the training has diverged.",
            cause="a learning rate that is too high.",
            do="train into another folder with a lower --rate or a longer --warmup.",
        )
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return total
