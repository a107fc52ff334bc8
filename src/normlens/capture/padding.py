"""The fourth proof: a text in a padded batch gives what it gives alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from normlens.capture.compare import tolerance
from normlens.capture.examined import Padding
from normlens.capture.run import WATCHED, run, seeded
from normlens.capture.watched import Gathered, Numbers, Watched
from normlens.models import alone, real_positions, takes, without_a_mask


def padded_and_alone(
    model: nn.Module, inputs: Mapping[str, Any], watched: Watched, *, stand_in: str | None
) -> tuple[Padding, str]:
    """Run the most padded text of the probe alone, and compare α, ‖f(x)‖ and any gates of every exact block."""
    ids, targets = inputs.get("input_ids"), inputs.get("decoder_input_ids")
    if not _is_batch(ids) and not _is_batch(targets):
        return "not tried", "the probe holds no batch of texts"
    if watched.numbers is None:
        return "not tried", "too many attention weights to be compared"
    kept = _real(model, inputs, "input_ids", "attention_mask") if _is_batch(ids) else None
    targets_kept = _real(model, inputs, "decoder_input_ids", "decoder_attention_mask") if _is_batch(targets) else None
    real = [mask for mask in (kept, targets_kept) if mask is not None]
    if len({len(mask) for mask in real}) > 1:
        return "not tried", "source and target of the probe are not one row per text"
    row = int(real[0].sum(dim=1).argmin())
    if all(bool(mask[row].all()) for mask in real):
        return "not tried", "no text of the probe is padded"
    one = alone(inputs, row, kept, targets_kept)
    if isinstance(one, str):
        return "not tried", one
    gathered = Gathered()
    try:
        with seeded(WATCHED):
            run(model, one, gathered.add, stand_in=stand_in, chains=watched.chains)
    except Exception as error:  # whatever a model raises for a text that is shorter than the probe
        return "not tried", f"one text of the probe alone is not accepted: {type(error).__name__}"
    orders = [block.order for block in watched.blocks if block.exact]
    return _compared(watched.numbers, orders, gathered.numbers or {}, row, len(real[0]), [mask[row] for mask in real])


def _compared(
    batch: dict[int, Numbers],
    orders: list[int],
    alone: dict[int, Numbers],
    row: int,
    rows: int,
    reals: list[Tensor],
) -> tuple[Padding, str]:
    """Blocks run in the same order in both passes; those whose batch is not one of texts are passed over."""
    if len(batch) != len(alone):
        return "differs", f"alone, a text has {len(alone)} blocks, and {len(batch)} in a batch"
    compared, worst, allowed = 0, 0.0, 0.0
    for (order, many), one in zip(sorted(batch.items()), (n for _, n in sorted(alone.items())), strict=True):
        if order not in orders or len(many.weights) != rows or len(one.weights) != 1:
            continue
        tgt, src = (_positions(many.weights.shape[axis], one.weights.shape[axis], reals) for axis in (2, 3))
        if tgt is None or src is None:
            continue
        weights = many.weights[row][:, tgt.to(many.weights.device)][:, :, src.to(many.weights.device)]
        norms = many.norms[row][:, src.to(many.norms.device)]
        worst = max(worst, _gap(weights, one.weights[0]), _gap(norms, one.norms[0]))
        if many.factors is not None and one.factors is not None:
            worst = max(worst, _gap(many.factors[row][:, tgt.to(norms.device)], one.factors[0]))
        allowed = max(allowed, 10 * tolerance(weights.dtype))
        compared += 1
    if not compared:
        return "not tried", "no block attends among the texts of the batch"
    if not worst <= allowed:
        return "differs", f"in a padded batch a text gives other numbers than alone, by {worst:.1e}"
    return "equal", ""


def _positions(many: int, one: int, reals: list[Tensor]) -> Tensor | None:
    """The positions of a padded text that are there when it is alone."""
    for real in reals:
        if many == len(real) and one == int(real.sum()):
            return real.nonzero().squeeze(1)
    return torch.arange(many) if many == one else None


def _gap(left: Tensor, right: Tensor) -> float:
    return float((left.double() - right.double()).norm() / right.double().norm().clamp_min(1e-12))


def _is_batch(ids: Any) -> bool:
    return isinstance(ids, Tensor) and ids.ndim == 2 and not ids.is_floating_point()


def _real(model: nn.Module, inputs: Mapping[str, Any], ids: str, mask: str) -> Tensor:
    config = getattr(model, "config", None)
    if inputs.get(mask) is None and not takes(model, mask):
        return without_a_mask(inputs[ids], config)
    return real_positions(inputs[ids], inputs.get(mask), config)
