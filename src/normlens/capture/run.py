"""Run a model under the tap, or without it, leaving it as it was found."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from normlens.capture.compare import output_tolerance, relative_difference, tensors, tolerance
from normlens.capture.following import Wanted
from normlens.capture.implementation import beyond_reading, switched
from normlens.capture.record import Attended, Ran
from normlens.capture.tap import Tap
from normlens.errors import NormlensError, first_line
from normlens.models import as_found, one_at_a_time

PROVED, WATCHED = 1, 0  # seeds: a model whose output depends on them is random


class CopyError(NormlensError):
    """An input that a run would change and that cannot be copied."""


class StandInError(NormlensError):
    """Eager attention in place of the user's own gave another output."""


@dataclass(frozen=True, slots=True, eq=False)
class Untapped:
    """What a model returned when nobody watched, and what it changed about itself."""

    output: Any
    changed: tuple[str, ...]


def run(
    model: nn.Module,
    inputs: Mapping[str, Any],
    on_block: Callable[[Attended], None],
    *,
    where: Callable[[], str] | None = None,
    stand_in: str | None = None,
    chains: Mapping[str, int] | None = None,
    scores: bool = False,
    states: Wanted | None = None,
) -> Ran:
    """One forward pass of `model`; each attention block goes to `on_block` as soon as it is complete.

    With a `stand_in`, a user's own attention implementation is replaced by it, and the output must be that of the model
    as configured. `chains`: output matrices that further matrices follow, as an earlier pass has shown.
    `scores`: keep what the softmax got, to tell which keys were masked. `states`: see `Tap`.
    """
    users, opaque = beyond_reading(model)
    own = users if stand_in is not None else ()
    if not users and not opaque:
        with as_found(model):
            return run_as_set(model, inputs, on_block, where=where, chains=chains, scores=scores, states=states)
    with one_at_a_time(True):
        written: list[tuple[str, Tensor]] = []
        if not own:
            with as_found(model), switched(model, opaque):
                return run_as_set(model, inputs, on_block, where=where, chains=chains, scores=scores, states=states)
        with outputs_of_matrices(model) as configured:
            expected = run_untapped(model, inputs, seed=None).output

        def noted(attended: Attended) -> None:
            written.append((attended.out.split(" @ ")[0], attended.output))
            on_block(attended)

        with as_found(model), switched(model, (*opaque, *own)):
            ran = run_as_set(model, inputs, noted, where=where, chains=chains, scores=scores, states=states)
    _agree(tensors(ran.output), tensors(expected), own, output_tolerance(tensors(expected)))
    for out, output in written:
        theirs = configured.get(out.removesuffix(".weight"), [])
        if theirs and theirs[0].numel() == output.numel():
            _agree([output.flatten(0, -2)], [theirs.pop(0).flatten(0, -2)], own, 10 * tolerance(output.dtype))
    return ran


@contextmanager
def outputs_of_matrices(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """What every linear module returns meanwhile, by its path: residual and norm would hide a small difference."""
    returned: dict[str, list[Tensor]] = {}

    def note(name: str, output: Any) -> None:
        if isinstance(output, Tensor):
            returned.setdefault(name, []).append(output.detach())

    handles = [
        module.register_forward_hook(lambda _, __, output, name=name: note(name, output))
        for name, module in model.named_modules()
        if hasattr(module, "weight") and not list(module.children())
    ]
    try:
        yield returned
    finally:
        for handle in handles:
            handle.remove()


def run_as_set(
    model: nn.Module,
    inputs: Mapping[str, Any],
    on_block: Callable[[Attended], None],
    *,
    where: Callable[[], str] | None = None,
    chains: Mapping[str, int] | None = None,
    scores: bool = False,
    states: Wanted | None = None,
) -> Ran:
    """The pass itself, on whatever attention the model is set to at the moment; nothing is put back."""
    tap = Tap(parameter_names(model), on_block, where=where, chains=chains, scores=scores, states=states)
    with torch.inference_mode(False), torch.no_grad(), torch.compiler.set_stance("force_eager"):
        given = tap.positions.begin(fresh(inputs))
        with tap:
            output = model(**given)
        if tap.flow is not None:
            tap.flow.release()
    unmark((*model.buffers(), *tensors(output)))
    followed = () if tap.flow is None else tuple(tap.flow.blocks.values())
    return Ran(
        output, tap.refused(), tap.ran, tap.followed(), tap.read_on(), tuple(tap.seen), frozenset(tap.mixing), followed
    )


def unmark(kept: Iterable[Tensor]) -> None:
    """Take what the tap wrote on tensors off those that outlive the pass."""
    for tensor in kept:
        for mark in ("_normlens", "_normlens_track", "_normlens_flow", "_normlens_root"):
            if hasattr(tensor, mark):
                delattr(tensor, mark)


def run_untapped(model: nn.Module, inputs: Mapping[str, Any], *, seed: int | None = PROVED) -> Untapped:
    """The model exactly as it is configured; without a seed, with the random numbers that come next."""
    configured = switched(model, ()) if any(beyond_reading(model)) else nullcontext()
    with configured, torch.no_grad(), seeded(seed), as_found(model) as changes:
        output = model(**fresh(inputs))
    return Untapped(output, changes.names)


def parameter_names(model: nn.Module) -> dict[int, str]:
    """Parameter names by the address of their first number."""
    return {p.data_ptr(): name for name, p in model.named_parameters() if p.data_ptr()}


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Random numbers from this seed, and none taken from the caller."""
    python, numbers = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        if seed is not None:
            torch.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numbers)


def fresh(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of what the caller gave: a cache would grow, and tensors may be written to."""
    memo: dict[int, Any] = {}
    _copy_tensors(list(inputs.values()), memo, set())
    return {name: _copied(value, memo) for name, value in inputs.items()}


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    try:
        return deepcopy(value, memo)
    except (TypeError, RuntimeError) as error:  # a handle on something outside Python
        if hasattr(value, "update") or hasattr(value, "get_seq_length"):
            raise CopyError(
                f"The input of type {type(value).__name__} cannot be copied, and a run would change it.",
                got=first_line(error),
                do="give a cache that copy.deepcopy can copy, or none.",
            ) from error
        return value


def _copy_tensors(value: Any, memo: dict[int, Any], seen: set[int]) -> None:
    """Tensors of a graph of gradients cannot be copied deeply, so all are copied here first."""
    if isinstance(value, Tensor):
        memo[id(value)] = value.detach().clone()
    elif id(value) not in seen and not isinstance(value, (str, bytes, int, float, type(None), type)):
        seen.add(id(value))
        parts = list(value.values()) if isinstance(value, Mapping) else []
        parts += list(value) if isinstance(value, (list, tuple, set)) else []
        parts += list(vars(value).values()) if hasattr(value, "__dict__") else []
        for part in parts:
            _copy_tensors(part, memo, seen)


def _agree(stood_in: list[Tensor], expected: list[Tensor], own: tuple[str, ...], allowed: float) -> None:
    difference = relative_difference(stood_in, expected)
    if not difference <= allowed:
        raise StandInError(
            f"Eager attention stands in for '{own[0]}', which cannot be read, but its output differs by "
            f"{difference:.1e} (allowed {allowed:.0e}).",
            cause=f"'{own[0]}' masks or scales differently from eager attention on inputs like this one.",
            do="write it with torch.softmax or scaled_dot_product_attention, so that it can be read; or call "
            "model.set_attn_implementation('eager').",
        )
