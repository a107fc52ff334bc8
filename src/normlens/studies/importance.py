"""Which heads does a loss depend on? The gradient score of Michel, Levy and Neubig (2019), in one pass over the data.

    I_h = E_x |∂L/∂ξ_h| = E_x |Σ_i Att_h(x)_i · ∂L/∂Att_h(x)_i|        the gate ξ_h = 1 scales the output of head h

One backward pass a batch: each sequence has gates of its own, so their gradients are those of the sequences one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from normlens.exhibits import (
    Cloud,
    Exhibit,
    Grid,
    Grids,
    Scatter,
    ScatterPanel,
    Section,
    hatched,
    head_name,
    listing,
    number,
    percent,
    rho,
    top_of,
)
from normlens.lens import Gates, Lens, find_gates
from normlens.models import as_found
from normlens.statistics import Moments, Statistic
from normlens.studies.losses import Loss, loss_for, scored, task_of
from normlens.studies.means import spearman
from normlens.studies.per_head import HeadColumn, PerHead
from normlens.studies.seen import Facts, Pass, Seen
from normlens.studies.study import Counter, Study, StudyError
from normlens.studies.sums import Sums, padded

HALF = 0.5  # of the importance: how few heads hold it
AGREES = 0.5  # |ρ| from which two orders of the heads are said to be alike


@dataclass(frozen=True, slots=True, eq=False)
class Importance:
    """The scores of every head; NaN where there is no such head, or its block has no gates."""

    kind: str
    layers: tuple[int, ...]
    raw: Float[np.ndarray, "layer head"]  # mean over sequences of |∂L/∂ξ|
    by_token: Float[np.ndarray, "layer head"]  # mean over positions of |Att · ∂L/∂Att|, as the authors' code has it
    norms: Float[np.ndarray, "layer head"]  # mean over queries of Σ_j ‖αf(x_j)‖
    loss: float
    accuracy: float

    @property
    def normalised(self) -> Float[np.ndarray, "layer head"]:
        """Divided by the L2 norm of the layer, as theirs."""
        return per_layer(self.raw)


@dataclass(frozen=True)
class ImportanceStudy(Study[Importance]):
    loss: Loss | Literal["none"] | None = None  # by default what the model was made for; "none": norms only
    masked_share: float = 0.15  # of the tokens of a sequence, for the masked loss; hiding all of them by [MASK] is ours

    name, title = "importance", "Which heads does the loss depend on?"
    paper = "Michel, Levy and Neubig (2019), sections 2.2 and 4; the norms beside the scores are ours"
    question = (
        "A head may attend and contribute, and the model's answer may not depend on it. Michel et al. scale every head "
        "by a gate of 1 and score the head by how steeply the loss changes with its gate."
    )
    caution = (
        "the score is a slope at the full model. It says what a small change of one head does, not what remains when "
        "the head is removed, nor when several are."
    )
    method = (
        "The gate of a head multiplies what the head passes to its output matrix W_O. Its importance is the mean over "
        "sequences of the absolute derivative of the loss by the gate. The scores of a layer are divided by their L2 "
        "norm; the raw scores are beside them. Published code takes the absolute value at every position, before "
        "adding up: that is the score by token.",
        "The loss of a sequence is the mean of −log p over what it should predict: its class, its next tokens, its "
        "hidden tokens (15 % of them, all replaced by the mask token: our choice), or its translation.",
        "The norm of a head is the mean over queries of Σ_j ‖αf(x_j)‖. It needs no loss and no gradient. Where the "
        "attention weights of a query add up to 1, all heads are alike by weights alone.",
    )
    causal = "This attention is causal: a query sees only itself and earlier tokens."

    def counter(self, sums: Sums, run: Facts) -> Counter:
        if run.lens is not None and self.loss != "none":
            loss_for(run.lens, self.loss)
            check_precision(run.lens)
        return super().counter(sums, run)

    def see(self, seen: Seen) -> Mapping[str, Statistic]:
        norms = seen.received_norms().sum(axis=-1) / seen.queries[:, None]
        return {"norms": Moments.of(norms)}

    def see_pass(self, passed: Pass) -> Mapping[tuple[str, int], Mapping[str, Statistic]]:
        lens = passed.run.lens
        if self.loss == "none":
            return {}
        assert lens is not None
        gates = passed.run.once("gates", lambda: find_gates(lens, passed.batch.encoded))
        loss = loss_for(lens, self.loss)
        task = task_of(lens, passed.batch, loss, masked_share=self.masked_share, seed=passed.run.seed)
        with as_found(lens.subject.model), torch.inference_mode(False), torch.enable_grad():
            inputs = {
                name: value.clone() if isinstance(value, Tensor) else value for name, value in task.inputs.items()
            }
            with gates.recorded(batch=len(passed.batch.items)) as recorded:
                result = scored(lens.subject.model(**inputs), task)
            slopes = torch.autograd.grad(result.losses.sum(), recorded, materialize_grads=True)
        asked = result.asked.cpu().numpy()
        both = torch.stack([result.losses.double(), result.accuracies.double()], dim=1).detach().cpu().numpy()
        loss_and_accuracy = Moments.of(both, np.broadcast_to(asked[:, None], both.shape))
        return {
            (block.kind, block.layer): {
                "loss_and_accuracy": loss_and_accuracy,
                **_slopes(slope, asked, lengths),
            }
            for block, slope in zip(gates.blocks, slopes, strict=True)
            if (lengths := _lengths(passed, block.kind)) is not None
        }

    def result(self, sums: Sums, run: Facts) -> Importance:
        layers, norms = sums.by_layer("norms")
        scores = {name: dict(zip(*sums.by_layer(name), strict=True)) for name in ("raw", "by_token")}
        shape = padded([moments.mean for moments in norms])
        filled = {name: np.full(shape.shape, np.nan) for name in scores}
        for name, by_layer in scores.items():
            for layer, moments in by_layer.items():
                filled[name][layers.index(layer), : len(moments.mean)] = moments.mean
        means = [moments.mean for moments in sums.by_layer("loss_and_accuracy")[1]]
        loss, accuracy = means[0].tolist() if means else (np.nan, np.nan)
        return Importance(sums.kind, layers, filled["raw"], filled["by_token"], shape, loss, accuracy)

    def per_head(self, result: Importance) -> PerHead:
        columns = (
            HeadColumn("importance", "importance", result.normalised),
            HeadColumn("importance_raw", "raw", result.raw),
            HeadColumn("importance_by_token", "by token", per_layer(result.by_token)),
            HeadColumn("contribution_norms", "norm Σ‖αf(x)‖", result.norms),
        )
        return PerHead(result.layers, columns)

    def section(self, result: Importance, run: Facts) -> Section:
        if self.loss == "none":
            return Section([], notes=["Without a loss there is no importance; norms are in the profile of the heads."])
        gates: Gates | None = run.kept.get("gates")
        absent = [layer for layer, row in zip(result.layers, result.raw, strict=True) if not np.isfinite(row).any()]
        notes = []
        for layer in absent:
            reason = "" if gates is None else gates.left_out.get(f"{result.kind} L{layer}", "")
            notes.append(
                f"Layer {layer} has no scores: its heads cannot be scaled one by one{reason and f' ({reason})'}."
            )
        if len(absent) == len(result.layers):
            return Section([], notes=notes)
        table = self.per_head(result).table("importance", "Importance of every head")
        return Section(_sentences(result), [*_figures(result), table], notes)


def check_precision(lens: Lens) -> None:
    """Gradients of a model in half precision lose what is small: such a model is refused."""
    dtype = next(lens.subject.model.parameters()).dtype
    if dtype not in (torch.float32, torch.float64):
        raise StudyError(
            f"'{lens.subject.name}' runs in {str(dtype).removeprefix('torch.')}, in which small gradients are lost.",
            do="load it in single precision: --dtype float32, in Python dtype='float32'.",
        )


def per_layer(raw: Float[np.ndarray, "layer head"]) -> Float[np.ndarray, "layer head"]:
    """Scores divided by the L2 norm of their layer; a layer of zeros stays as it is."""
    size = np.sqrt(np.nansum(raw**2, axis=1, keepdims=True))
    return raw / np.where(size > 0, size, 1)


def _lengths(passed: Pass, kind: str) -> np.ndarray | None:
    """How many queries each sequence has in a block of this kind."""
    side = {"self": "text", "encoder": "source", "decoder": "target", "cross": "target"}.get(kind)
    group = passed.batch.groups.get(side or "")
    return None if group is None else group.lengths


def _slopes(
    slopes: Float[Tensor, "batch tgt head"], asked: Bool[np.ndarray, " batch"], lengths: Int[np.ndarray, " batch"]
) -> dict[str, Statistic]:
    """What a block adds: |Σ_i slope| of every sequence, |slope| of every real position."""
    by_position = slopes.cpu().double().numpy()
    real = (np.arange(by_position.shape[1]) < lengths[:, None]) & asked[:, None]
    flat = np.abs(by_position).reshape(-1, by_position.shape[2])
    sequences = np.abs(by_position.sum(axis=1))
    return {
        "raw": Moments.of(sequences, np.broadcast_to(asked[:, None], sequences.shape)),
        "by_token": Moments.of(flat, np.broadcast_to(real.reshape(-1, 1), flat.shape)),
    }


def _sentences(result: Importance) -> list[str]:
    scores = result.raw[np.isfinite(result.raw)]
    ordered = np.sort(scores)[::-1]
    total = ordered.sum()
    lines = []
    if total == 0:
        lines.append("The loss depends on no head: every score is 0.")
    else:
        few = int(np.searchsorted(np.cumsum(ordered), HALF * total - 1e-12) + 1)
        best = np.unravel_index(np.nanargmax(result.raw), result.raw.shape)
        name = head_name(result.layers[int(best[0])], int(best[1]))
        lines.append(
            f"{few} of {len(scores)} heads hold half of the importance; the most important is {name} "
            f"with {percent(ordered[0] / total)} of it."
        )
        by_layer = np.nansum(result.raw, axis=1)
        strongest = int(np.argmax(by_layer))
        if len(by_layer) > 1:
            lines.append(
                f"Layer {result.layers[strongest]} has the largest share of the importance, "
                f"{percent(by_layer[strongest] / total)}."
            )
        lines += _with_norms(result)
    lines.append(f"The loss is {number(result.loss)} and the accuracy {percent(result.accuracy)} with every head.")
    return lines


def _with_norms(result: Importance) -> list[str]:
    value = spearman(result.raw, result.norms)
    if not np.isfinite(value):
        return []
    if value >= AGREES:
        reading = "heads with large contributions are the important ones"
    elif value <= -AGREES:
        reading = "heads with large contributions are the unimportant ones"
    else:
        reading = "the norm of a head's contributions does not tell how important it is"
    return [f"Importance and the norm of the contributions have ρ = {rho(value)} over the heads: {reading}."]


def _figures(result: Importance) -> list[Exhibit]:
    ticks = tuple(map(str, result.layers))
    scores, raw, norms = result.normalised, result.raw, result.norms
    there = np.isfinite(raw)
    largest = [head_name(result.layers[i], j) for i, j in _order(raw)[:3]]
    return [
        Grids(
            "importance",
            "Importance of every head: the derivative of the loss by its gate, raw and divided by the L2 norm of its "
            "layer; right, the norm of its contributions." + hatched(raw, "no such head, or no gate"),
            f"Three maps, layer by head. The largest raw scores are those of {listing(largest)}; the largest is "
            f"{number(top_of(raw))}.",
            (
                Grid("importance, raw", raw, "grey", top_of(raw)),
                Grid("importance, per layer", scores, "grey", 1.0),
                Grid("norm Σ‖αf(x)‖", norms, "norm", top_of(norms)),
            ),
            ticks,
        ),
        Scatter(
            "importance_and_norms",
            "Raw importance of every head against the norm of its contributions: one point a head.",
            f"Points, one for each of {int(there.sum())} heads: ρ = {rho(spearman(raw, norms))}.",
            (ScatterPanel("", (Cloud("head", norms[there], raw[there]),), y="importance, raw"),),
            x="norm of the contributions, Σ‖αf(x)‖",
            folded="Importance against norms",
        ),
    ]


def _order(values: Float[np.ndarray, "layer head"]) -> list[tuple[int, int]]:
    """Places of the finite values, the largest first."""
    places = [(int(i), int(j)) for i, j in np.argwhere(np.isfinite(values))]
    return sorted(places, key=lambda place: (-float(values[place]), place))
