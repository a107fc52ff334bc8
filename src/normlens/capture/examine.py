"""Prove a model on a probe input.

1. The parts rebuild the whole: Σ_h Σ_j α f(x_j) + b_O is what the output matrix returned, block by block.
2. Watching changes nothing: the watched run equals the unwatched one, which is the model exactly as configured.
3. α is what the model itself returns as attention weights, where it returns any.
4. A text in a padded batch gives what it gives alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from normlens.capture.compare import output_tolerance, relative_difference, tensors
from normlens.capture.compare import tolerance as tolerance
from normlens.capture.examined import Examination as Examination
from normlens.capture.examined import ExaminedBlock as ExaminedBlock
from normlens.capture.implementation import EAGER, beyond_reading
from normlens.capture.own import with_own
from normlens.capture.padding import padded_and_alone
from normlens.capture.run import WATCHED, StandInError, Untapped, run_untapped
from normlens.capture.watched import Watched, watch
from normlens.models import NotPutBack


def examine(model: nn.Module, inputs: Mapping[str, Any], *, untapped: Untapped | None = None) -> Examination:
    """Run the probe untapped (unless that was done before) and tapped, and say what holds."""
    try:
        untapped = untapped or run_untapped(model, inputs)
        watched, stand_in, unread = _read(model, inputs)
    except NotPutBack as error:
        return Examination((), float("nan"), error.reason, changed=error.names)
    expected = tensors(untapped.output)
    difference = relative_difference(_without_cut(model, tensors(watched.output), expected), expected)
    reason = unread or _reason(model, inputs, watched, expected, difference)
    if reason is not None:
        return Examination(watched.blocks, difference, reason, stand_in, untapped.changed)
    blocks = with_own(model, inputs, watched, stand_in=stand_in)
    padding, padding_reason = padded_and_alone(model, inputs, watched, stand_in=stand_in)
    return Examination(
        blocks,
        difference,
        None,
        stand_in,
        untapped.changed,
        padding,
        padding_reason,
        watched.chains,
        watched.spare,
        watched.read_on,
    )


def _without_cut(model: nn.Module, watched: list[Tensor], expected: list[Tensor]) -> list[Tensor]:
    """Torch's own encoder leaves padded positions out when nobody watches, and returns 0 there."""
    if not any(isinstance(module, nn.TransformerEncoder) for module in model.modules()):
        return watched
    return [
        ours.masked_fill((theirs == 0).all(dim=-1, keepdim=True), 0)
        if ours.shape == theirs.shape and ours.ndim
        else ours
        for ours, theirs in zip(watched, expected, strict=False)
    ]


def _read(model: nn.Module, inputs: Mapping[str, Any]) -> tuple[Watched, str | None, str | None]:
    """The model as it is configured; where a user's own attention cannot be read, eager attention if that agrees.

    Returns the watched run, the stand-in if there is one, and why nothing could be read.
    """
    configured = watch(model, inputs)
    own, _ = beyond_reading(model)
    if not own or (configured.exact and configured.exact == len(configured.blocks)):
        return configured, None, None
    try:
        stood_in = watch(model, inputs, stand_in=EAGER)
    except StandInError as error:
        why = None if configured.exact else f"'{own[0]}' cannot be read. {error}"
        return configured, None, why
    if stood_in.exact > configured.exact:
        return stood_in, EAGER, None
    return configured, None, None


def _reason(
    model: nn.Module, inputs: Mapping[str, Any], watched: Watched, expected: list[Tensor], difference: float
) -> str | None:
    """Why a model as a whole is refused, if it is."""
    if any(bool(torch.isnan(t).any()) for t in expected):
        return "its own output holds NaN on the probe input: broken or uninitialised weights"
    if not watched.blocks:
        return "no softmax attention was seen"
    dtype = next((one.dtype for one in model.parameters() if one.is_floating_point()), torch.float32)
    if difference <= output_tolerance(expected, dtype):
        return None
    again = tensors(run_untapped(model, inputs, seed=WATCHED).output)
    by_chance = relative_difference(again, expected)
    if not by_chance <= output_tolerance(expected, dtype):
        return f"its output is random: two runs differ by {by_chance:.1e}"
    return f"its output changes by {difference:.1e} when watched"
