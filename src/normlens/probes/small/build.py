"""Build any registered model type small, from its configuration alone.

A rung of the ladder of sizes holds when the model can be constructed and one plain forward pass runs.
"""

import inspect
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel

from normlens.errors import NormlensError
from normlens.models import as_found
from normlens.probes.inputs import candidates
from normlens.probes.small.classes import composites, config_class, model_class
from normlens.probes.small.shrink import LADDER, shrink
from normlens.probes.small.special import DEFAULTS
from normlens.probes.small.weights import redraw

_MOST_PARAMETERS = 400_000_000
_MOST_SECONDS, _MOST_SECONDS_PER_PART = 60.0, 10.0


class TinyError(NormlensError):
    """No small model of this type runs; `reason` says why in a phrase."""

    def __init__(self, model_type: str, reason: str) -> None:
        super().__init__(
            f"No small model of type '{model_type}' can be built.",
            got=reason,
            cause="a type with parts of its own, or one that needs a library that is not installed.",
            do="examine a model with its weights instead: normlens doctor MODEL, without --tiny.",
        )
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Probe:
    """One set of model inputs, and which (sub)model takes them."""

    path: str  # "" for the model itself, else the path of a submodule, as in model.get_submodule
    inputs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tiny:
    """A small random model and inputs it accepts."""

    model: PreTrainedModel  # eval mode, CPU, fp32, random weights
    probes: tuple[Probe, ...]
    shrunk: str  # which rung of the shrinking ladder worked


def build(model_type: str, *, seed: int = 0) -> Tiny:
    """The model type, small; a type that is only a part of a composite comes as that composite."""
    try:
        config = default_config(model_type)
    except Exception as error:
        raise TinyError(model_type, f"its default configuration is refused: {_one_line(error)}") from error
    try:
        found = model_class(config)
    except ImportError as error:
        raise TinyError(model_type, _one_line(error)) from error
    try:
        if found is None:
            raise TinyError(model_type, "no model class is written for its configuration")
        return build_from(config, seed=seed, model_class=found)
    except TinyError:
        for whole in composites(model_type):
            return build(whole, seed=seed)
        raise


def build_from(config: PretrainedConfig, *, seed: int = 0, model_class: type[PreTrainedModel] | None = None) -> Tiny:
    """A model of this configuration, small, with the inputs it accepted."""
    kind = model_class or _class_of(config)
    reasons, deadline = list[str](), time.monotonic() + _MOST_SECONDS
    for rung in LADDER:
        try:
            model = _constructed(kind, shrink(config, rung), seed)
        except ImportError as error:
            raise TinyError(config.model_type, _one_line(error)) from error
        except Exception as error:
            reasons.append(f"cannot be constructed small: {_one_line(error)}")
            continue
        probe, reason = _accepted(model, seed, deadline)
        if probe is not None:
            return Tiny(model, (probe, *_further(model, probe, seed)), rung.name)
        reasons.append(reason)
        if not _runs(model) and (parts := tuple(_further(model, None, seed))):
            return Tiny(model, parts, f"{rung.name}, in parts")
        if time.monotonic() > deadline:
            break
    forward = (reason for reason in reasons if reason.startswith("forward"))
    raise TinyError(config.model_type, next(forward, reasons[0]))


def default_config(model_type: str) -> PretrainedConfig:
    """The configuration of a model type as transformers gives it, completed where it is not usable as given."""
    return config_class(model_type)(**DEFAULTS.get(model_type, {}))


def _class_of(config: PretrainedConfig) -> type[PreTrainedModel]:
    if (found := model_class(config)) is None:
        raise TinyError(config.model_type, f"no model class is written for {type(config).__name__}")
    return found


def _constructed(kind: type[PreTrainedModel], config: PretrainedConfig, seed: int) -> PreTrainedModel:
    with _quiet(seed):
        with torch.device("meta"):
            size = sum(parameter.numel() for parameter in kind(config).parameters())
        if size > _MOST_PARAMETERS:
            raise ValueError(f"still {size / 1e6:.0f} million parameters")
        model = kind(config).float().eval()
        redraw(model, seed=seed)
    return model


def _accepted(model: PreTrainedModel, seed: int, deadline: float) -> tuple[Probe | None, str]:
    reasons: list[str] = []
    for inputs in candidates(model, seed=seed):
        if time.monotonic() > deadline:
            break
        try:
            with _quiet(seed), as_found(model):
                output = model(**inputs)
        except Exception as error:
            reasons.append(f"forward fails: {_one_line(error)}")
            continue
        if _sound(output):
            return Probe("", inputs), ""
        reasons.append("its output is not finite with random weights")
    return None, reasons[0] if reasons else "no inputs could be made for its forward"


def _runs(model: PreTrainedModel) -> bool:
    """Whether the model as a whole can be called with tensors; some only hold their parts."""
    forward = type(model).forward
    return forward is not nn.Module.forward and "inference_session" not in inspect.signature(forward).parameters


def _further(model: PreTrainedModel, probe: Probe | None, seed: int) -> Iterator[Probe]:
    with _quiet(seed), as_found(model):
        parts = list(_unreached(model, probe.inputs if probe else None))
    for path in parts:
        part = model.get_submodule(path)
        if isinstance(part, PreTrainedModel):
            found, _ = _accepted(part, seed, time.monotonic() + _MOST_SECONDS_PER_PART)
            if found is not None:
                yield Probe(path, found.inputs)


def _unreached(model: PreTrainedModel, inputs: dict[str, Any] | None) -> Iterator[str]:
    """Paths of the outermost sub-models whose attention stays idle on these inputs (None: not run at all)."""
    seen: set[str] = set()
    watched = [path for path, module in model.named_modules() if _attends(module)]
    handles = [
        model.get_submodule(path).register_forward_hook(lambda *_, path=path: seen.add(path)) for path in watched
    ]
    try:
        if inputs is not None:
            model(**inputs)
    finally:
        for handle in handles:
            handle.remove()
    idle = [path for path in watched if path not in seen]
    given: list[str] = []
    for path, module in model.named_modules():
        if not path or not isinstance(module, PreTrainedModel) or any(path.startswith(f"{up}.") for up in given):
            continue
        if any(inside.startswith(f"{path}.") for inside in idle) and not any(
            inside.startswith(f"{path}.") for inside in seen
        ):
            given.append(path)
            yield path


def _attends(module: nn.Module) -> bool:
    return "Attention" in type(module).__name__


def _sound(output: Any) -> bool:
    """No NaN anywhere; infinities only where scores are masked with them."""
    tensors = list(_tensors(output))
    return not any(tensor.isnan().any() for tensor in tensors) and all(
        tensor.isfinite().all() for tensor in tensors[:1]
    )


def _tensors(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        if output.is_floating_point():
            yield output.float()
    elif isinstance(output, dict):
        for name, value in output.items():
            if name not in ("past_key_values", "logits"):
                yield from _tensors(value)
    elif isinstance(output, list | tuple):
        for value in output:
            yield from _tensors(value)


@contextmanager
def _quiet(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        yield


def _one_line(error: Exception) -> str:
    text = " ".join((error.what if isinstance(error, NormlensError) else str(error)).split())[:200]
    if isinstance(error, ImportError) and (
        found := re.search(r"requires the (\S+) library|No module named '([^']+)'", text)
    ):
        return f"needs the {found[1] or found[2]} library, which is not installed"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
