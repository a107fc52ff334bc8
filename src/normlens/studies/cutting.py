"""Which tokens of a text are kept, and the inputs of a model that hold them alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from normlens.lens import Block, Lens
from normlens.studies.batches import Batch
from normlens.studies.study import StudyError

SCORES = {"weights": "received attention α", "norms": "norm ‖f(x)‖", "contributions": "contribution ‖αf(x)‖"}


def token_scores(
    lens: Lens, batch: Batch, layers: int | Sequence[int], names: Sequence[str] = tuple(SCORES)
) -> dict[str, Float[np.ndarray, "batch token"]]:
    """The score of every token, by name: added up over queries, heads and the layers asked for."""
    group = batch.groups["text"]
    scores = {name: np.zeros(group.ids.shape) for name in names}

    def add(block: Block) -> None:
        received = block.weights.double().abs().sum(dim=2)
        for name in names:
            if name == "contributions" and "weighted_norms" in block.kept:
                values = block.weighted_norms.double().sum(dim=2)
            elif name == "weights":
                values = received
            else:
                norms = block.transformed_norms.double()
                values = received * norms if name == "contributions" else norms
            scores[name] += values.sum(dim=1).cpu().numpy()

    lens.observe(batch.encoded, add, kinds=("self",), layers=layers, fields=("weights", "transformed_norms"))
    return scores


def random_scores(batch: Batch, seed: int) -> Float[np.ndarray, "batch token"]:
    """Chance that depends on the seed and on the text alone, whatever batch the text is in."""
    group = batch.groups["text"]
    values = np.zeros(group.ids.shape)
    for row, length in enumerate(group.lengths):
        values[row, :length] = np.random.default_rng([seed, *group.ids[row, :length].tolist()]).random(length)
    return values


def kept_positions(batch: Batch, scores: Float[np.ndarray, "batch token"], fraction: float) -> list[np.ndarray]:
    """Positions that stay in each text: special tokens, and so many others with the highest scores, in their order."""
    group = batch.groups["text"]
    positions = []
    for row, count in enumerate(kept_counts(batch, fraction)):
        special = np.flatnonzero(group.special[row])
        others = np.setdiff1d(np.arange(group.lengths[row]), special)
        best = others[np.argsort(-scores[row, others], kind="stable")[:count]]
        positions.append(np.sort(np.concatenate([special, best])))
    return positions


def kept_counts(batch: Batch, fraction: float) -> Int[np.ndarray, " batch"]:
    """How many tokens of each text are kept, special ones not counted: at least one where there is one."""
    group = batch.groups["text"]
    others = group.lengths - group.special.sum(axis=1)
    return np.minimum(others, np.maximum(1, np.round(fraction * others).astype(int)))


def cut_inputs(lens: Lens, batch: Batch, rows: Sequence[int], positions: Sequence[np.ndarray]) -> dict[str, Any]:
    """The inputs of some texts of a batch with these positions alone, padded at the end."""
    given = batch.encoded.inputs
    ids: Tensor = given["input_ids"]
    index = torch.zeros(len(rows), max(map(len, positions)), dtype=torch.long)
    real = torch.zeros(index.shape, dtype=torch.bool)
    for row, places in enumerate(positions):
        index[row, : len(places)], real[row, : len(places)] = torch.from_numpy(places), True
    index, real = index.to(ids.device), real.to(ids.device)
    strange = next(
        (name for name, value in given.items() if not isinstance(value, Tensor) or value.shape != ids.shape), None
    )
    if strange is not None:
        raise StudyError(
            f"'{lens.subject.name}' takes '{strange}', which is not one value per token, so texts cannot be shortened.",
            do="choose a classifier of texts.",
        )
    cut = {name: value[list(rows)].gather(1, index) for name, value in given.items()}
    cut["input_ids"] = cut["input_ids"].masked_fill(~real, getattr(lens.subject.config, "pad_token_id", None) or 0)
    if "attention_mask" in cut:
        cut["attention_mask"] = real.to(cut["attention_mask"].dtype)
    return cut
