"""What a model is asked to predict, and how well it does: the losses that the importance of heads is measured by.

Whatever the loss, there are inputs, and positions with an id that the model should give the most probability:

    loss of a sequence = mean over its positions of −log p(right id)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from normlens.corpora import Corpus, Item, make_categories
from normlens.lens import Lens
from normlens.studies.batches import Batch, batches, shards
from normlens.studies.study import StudyError

Loss = Literal["classification", "causal", "masked", "translation"]
LOSSES: tuple[Loss, ...] = get_args(Loss)
CLASSES: dict[str, Loss] = {  # what the name of a transformers class says
    "ForSequenceClassification": "classification",
    "ForCausalLM": "causal",
    "LMHeadModel": "causal",
    "ForMaskedLM": "masked",
}
SHARD = 64  # items that are sorted by length and batched together
UNASKED = -100  # at this position nothing is to be predicted


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Inputs of a model and the ids that it should predict."""

    inputs: dict[str, Any]
    wanted: Int[Tensor, "batch position"]  # UNASKED where nothing is


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """How well a batch was predicted, one value a sequence; 0 where nothing was asked."""

    losses: Float[Tensor, " batch"]
    accuracies: Float[Tensor, " batch"]  # share of the positions with the right id on top
    asked: Bool[Tensor, " batch"]  # sequences with something to predict


def loss_for(lens: Lens, loss: str | None) -> Loss:
    """The loss by its name, checked; by default the one that the model was made for."""
    model = type(lens.subject.model).__name__
    if loss is not None and loss not in LOSSES:
        raise StudyError(f"There is no loss '{loss}'.", do=f"choose among {', '.join(LOSSES)}.")
    named: list[Loss] = [task for ending, task in CLASSES.items() if model.endswith(ending)]
    made_for: Loss | None = named[0] if named else "translation" if lens.subject.is_seq2seq else None
    if made_for is None:
        raise StudyError(
            f"'{lens.subject.name}' ({model}) predicts nothing, so there is no loss.",
            cause="the model was loaded without its head.",
            do=(
                "give a model that was saved as ...ForSequenceClassification, ...ForCausalLM or a sequence-to-sequence "
                "model: it is loaded with its head. In Python any model, ...ForMaskedLM too: "
                "normlens.load(model, tokenizer)."
            ),
        )
    if loss is not None and loss != made_for:
        raise StudyError(
            f"'{lens.subject.name}' ({model}) has no {loss} loss.",
            got=f"a model for {made_for}.",
            do=f"give a model for {loss}, or the loss of this one where it can be chosen: {made_for!r}.",
        )
    config = lens.subject.config
    several = getattr(config, "problem_type", None) in ("regression", "multi_label_classification")
    if made_for == "classification" and (several or getattr(config, "num_labels", 2) < 2):
        raise StudyError(
            f"'{lens.subject.name}' does not choose one class of several.",
            got=f"problem_type={getattr(config, 'problem_type', None)}, {getattr(config, 'num_labels', None)} labels.",
            do="give a classifier of two classes or more.",
        )
    return made_for


def task_of(lens: Lens, batch: Batch, loss: Loss, *, masked_share: float = 0.15, seed: int = 0) -> Task:
    """What is to be predicted for a batch."""
    inputs: dict[str, Any] = dict(batch.encoded.inputs)
    device = lens.subject.device
    if loss == "classification":
        classes = [class_of(lens, item) for item in batch.items]
        return Task(inputs, torch.tensor(classes, device=device)[:, None])
    group = batch.groups["target" if loss == "translation" else "text"]
    real = np.arange(group.ids.shape[1]) < group.lengths[:, None]
    if loss == "masked":
        hidden = _hidden(group.ids, real & ~group.special, masked_share, seed)
        mask = _mask_id(lens)
        inputs["input_ids"] = inputs["input_ids"].masked_fill(torch.from_numpy(hidden).to(device), mask)
        return Task(inputs, torch.from_numpy(np.where(hidden, group.ids, UNASKED)).to(device))
    wanted = np.full(group.ids.shape, UNASKED)
    wanted[:, :-1] = np.where(real[:, 1:], group.ids[:, 1:], UNASKED)
    end = getattr(lens.subject.config, "eos_token_id", None)
    if loss == "translation" and isinstance(end, int):
        rows, last = np.arange(len(wanted)), group.lengths - 1
        wanted[rows, last] = np.where(group.ids[rows, last] == end, UNASKED, end)
    return Task(inputs, torch.from_numpy(wanted).to(device))


def scored(output: Any, task: Task) -> Scored:
    """Losses and accuracies of what the model returned."""
    logits: Tensor = output.logits
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    logits = logits[:, None] if logits.ndim == 2 else logits
    asked = task.wanted != UNASKED
    chances = logits.log_softmax(dim=-1).gather(-1, task.wanted.clamp_min(0)[..., None]).squeeze(-1)
    right = logits.argmax(dim=-1) == task.wanted
    count = asked.sum(dim=1).clamp_min(1)
    return Scored(
        losses=-(chances * asked).sum(dim=1) / count,
        accuracies=(right & asked).sum(dim=1) / count,
        asked=asked.any(dim=1),
    )


def class_of(lens: Lens, item: Item) -> int:
    """The number of the class that an item's label names."""
    names = {str(name): int(number) for name, number in (getattr(lens.subject.config, "label2id", None) or {}).items()}
    count = int(getattr(lens.subject.config, "num_labels", len(names)))
    label = item.label
    if label is not None and label in names:
        return names[label]
    if label is not None and label.strip().isdecimal() and int(label) < count:
        return int(label)
    raise StudyError(
        f"{item.where}: no class for the label {label!r}." if label is not None else f"{item.where} has no label.",
        got=None if label is None else f"a model of {count} classes: {', '.join(names)}",
        cause="the column of the labels was not named." if label is None else "labels of another task or model.",
        do="call the column or field 'label', or give its name: --label-column (label_column= of corpus).",
    )


def in_batches(lens: Lens, corpus: Corpus, *, length: int, limit: int | None, batch_tokens: int) -> Iterator[Batch]:
    """A corpus as batches, one shard in memory at a time."""
    categories = make_categories(None, lens.subject)
    for items in shards(corpus, SHARD, limit=limit, skip=0):
        yield from batches(
            lens.subject, items, categories, length=length, tokens=batch_tokens, padded=lens.takes_padding
        )


def _hidden(
    ids: Int[np.ndarray, "batch token"], candidates: Bool[np.ndarray, "batch token"], share: float, seed: int
) -> Bool[np.ndarray, "batch token"]:
    """Positions to hide: a share of the candidates, at least one; chosen by the seed and by the sequence itself."""
    hidden = np.zeros(ids.shape, bool)
    for row, places in enumerate(candidates):
        positions = np.flatnonzero(places)
        if len(positions):
            chance = np.random.default_rng([seed, *ids[row, positions].tolist()])
            hidden[row, chance.permutation(positions)[: max(1, round(share * len(positions)))]] = True
    return hidden


def _mask_id(lens: Lens) -> int:
    tokenizer: Any = getattr(lens.subject.tokenizer, "tokenizer", lens.subject.tokenizer)
    mask = getattr(tokenizer, "mask_token_id", None)
    if mask is None:
        raise StudyError(f"The tokenizer of '{lens.subject.name}' has no mask token.", do="choose another loss.")
    return mask
