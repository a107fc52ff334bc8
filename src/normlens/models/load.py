"""Load a model: by name, from a folder, as an object, or the bundled one. Nothing here runs it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from safetensors import SafetensorError
from torch import nn

from normlens.errors import NormlensError, first_line
from normlens.models.classifier import classifier, is_classifier, untuned_config
from normlens.models.default import default_folder
from normlens.models.quiet import quiet
from normlens.models.tokenizer import mismatch


class LoadError(NormlensError):
    """A model that cannot be loaded."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A model, with what turns text into its inputs."""

    model: nn.Module
    tokenizer: Any | None  # a tokenizer, a processor, or None when inputs are ids or tensors
    name: str
    revision: str  # hub revision, or a digest of the weights

    @property
    def config(self) -> Any:
        return getattr(self.model, "config", None)

    @property
    def is_seq2seq(self) -> bool:
        return bool(getattr(self.config, "is_encoder_decoder", False))

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device


def subject(
    source: str | Path | nn.Module | None = None,
    tokenizer: Any | None = None,
    *,
    revision: str | None = None,
    dtype: torch.dtype | str | None = None,
    device: torch.device | str | None = None,
    weights: Literal["safetensors", "any"] = "safetensors",
    trust_remote_code: bool = False,
) -> Subject:
    """Load a model. An object is taken as it is; a name or folder is loaded; None is the bundled MiniLM.

    "sst2" is the bundled classifier, unless a model in the working directory has that name.
    """
    if isinstance(source, nn.Module):
        if dtype is not None or device is not None or revision is not None:
            raise LoadError(
                "dtype=, device= and revision= are for a model given by name or folder, not for a model object.",
                got=f"a {type(source).__name__} object.",
                do="leave them out, and convert the model before loading: model.to(...).",
            )
        return _checked(Subject(_unwrapped(source), tokenizer, _name_of(source), digest(source)))
    if isinstance(dtype, str) and dtype != "auto" and not isinstance(getattr(torch, dtype, None), torch.dtype):
        raise LoadError(f"There is no dtype '{dtype}'.", do="give float32, float16 or bfloat16.")
    bundled = is_classifier(source)
    folder = default_folder() if source is None or bundled else source
    name = "all-MiniLM-L6-v2" if source is None else str(source)
    options = {"revision": revision, "trust_remote_code": trust_remote_code}
    config = untuned_config() if bundled else configuration(folder, **options)
    try:
        with quiet():
            model = (
                classifier(config, dtype or "auto")
                if bundled
                else _model_class(config).from_pretrained(
                    folder,
                    config=config,
                    dtype=dtype or "auto",
                    use_safetensors=weights == "safetensors" or None,
                    **options,
                )
            )
        if tokenizer is None:
            tokenizer = _tokenizer(folder, config, options)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        raise _not_loaded(folder, error) from error
    if device is not None:
        try:
            model.to(device)  # pyright: ignore[reportArgumentType]
        except (RuntimeError, AssertionError) as error:
            raise LoadError(
                f"The model cannot be moved to the device '{device}'.",
                got=first_line(error),
                cause="a misspelt name, a device that this machine does not have, or a torch built without it.",
                do="give --device cpu (device='cpu' in Python), or leave it out.",
            ) from error
    commit = getattr(config, "_commit_hash", None)
    return _checked(Subject(model.eval(), tokenizer, name, commit[:8] if commit else digest(model)))


def configuration(source: str | Path, **options: Any) -> Any:
    """The configuration of a model on the hub or in a folder, without its weights."""
    try:
        return transformers.AutoConfig.from_pretrained(source, **options)
    except (OSError, ValueError, KeyError) as error:
        raise _not_loaded(source, error) from error


def digest(model: nn.Module) -> str:
    """Eight hex digits that change when the weights change: a hash over a sample of every parameter."""
    sample = hashlib.sha256()
    for name, parameter in model.named_parameters():
        sample.update(name.encode())
        if parameter.device.type != "meta":
            flat = parameter.detach().flatten()
            sample.update(flat[:: max(1, len(flat) // 64)].float().cpu().numpy().tobytes())
    return sample.hexdigest()[:8]


def in_training(model: nn.Module) -> tuple[str, ...]:
    """Paths of the modules in training mode, "" for the model itself; a root in eval mode says nothing of its parts."""
    if not any(module.training for module in model.modules()):
        return ()
    return tuple(name for name, module in model.named_modules() if module.training)


def _checked(one: Subject) -> Subject:
    training = in_training(one.model)
    if training:
        parts = f" in {len(training)} of its modules, first in '{training[0]}'" if training[0] else ""
        raise LoadError(
            f"'{one.name}' is in training mode{parts}, so dropout would make every number random.",
            cause="a model built from a configuration starts in training mode.",
            do="call model.eval(), then load again.",
        )
    if next(one.model.parameters(), None) is None:
        raise LoadError(
            f"'{one.name}' has no parameters, so it has no attention to analyse.",
            do="give a model of transformers, or a module that holds one.",
        )
    broken = [name for name, p in one.model.named_parameters() if p.is_floating_point() and _has_nan(p)]
    if broken:
        raise LoadError(
            f"'{one.name}' has NaN in {len(broken)} of its parameters, first in '{broken[0]}'.",
            cause="a training run that diverged, or a damaged checkpoint.",
            do="load an earlier checkpoint.",
        )
    foreign = mismatch(one.model, one.tokenizer)
    if foreign is not None:
        raise LoadError(
            f"The tokenizer does not belong to '{one.name}': {foreign}.",
            cause="model and tokenizer were loaded from different places.",
            do="load both from the same place; or load without a tokenizer and give token ids.",
        )
    return one


def _has_nan(parameter: torch.Tensor) -> bool:
    """A finite sum has no NaN in it, and is quick to see."""
    return not bool(torch.isfinite(parameter.sum())) and bool(torch.isnan(parameter).any())


def _model_class(config: Any) -> Any:
    """A model that generates or classifies keeps its head, so that it predicts; any other is read without a head."""
    architecture = (getattr(config, "architectures", None) or [""])[0]
    heads: tuple[Any, ...] = ()
    if getattr(config, "is_encoder_decoder", False) or architecture.endswith(("ForCausalLM", "LMHeadModel")):
        heads = (
            transformers.AutoModelForSeq2SeqLM,
            transformers.AutoModelForSpeechSeq2Seq,
            transformers.AutoModelForCausalLM,
        )
    elif architecture.endswith("ForSequenceClassification"):
        heads = (transformers.AutoModelForSequenceClassification,)
    return next((auto for auto in heads if type(config) in auto._model_mapping), transformers.AutoModel)


def _tokenizer(folder: str | Path, config: Any, options: dict[str, Any]) -> Any | None:
    """The tokenizer or processor that lies beside the weights; none is fine, inputs may be tensors."""
    for auto in (transformers.AutoTokenizer, transformers.AutoProcessor, transformers.AutoImageProcessor):
        try:
            with quiet():
                found = auto.from_pretrained(folder, **options)
        except (OSError, ValueError, KeyError, ImportError, TypeError, AttributeError):
            continue
        if not (hasattr(found, "all_special_ids") and len(found) <= len(found.all_special_ids)):  # made of nothing
            return found
    return None


def _unwrapped(model: nn.Module) -> nn.Module:
    """The module inside a `torch.compile` wrapper, which shares its parameters."""
    return getattr(model, "_orig_mod", model)


def _name_of(model: nn.Module) -> str:
    return getattr(model, "name_or_path", "") or getattr(
        getattr(model, "config", None), "model_type", type(model).__name__
    )


def _not_loaded(source: str | Path, error: Exception) -> LoadError:
    if Path(source).is_dir():
        names = sorted(path.name for path in Path(source).iterdir())
        holds = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "") or "nothing"
        return LoadError(
            f"No model can be loaded from the folder '{source}'.",
            got=f"{first_line(error).rstrip('.')}; the folder holds: {holds}.",
            cause="no config.json or no *.safetensors in it, another format, or a copy that was cut short.",
            do="give the folder that save_pretrained() wrote; for .bin weights that you trust, add --any-weights "
            "(weights='any' in Python).",
        )
    return LoadError(
        f"'{source}' cannot be loaded: it is not a local folder, and the Hugging Face hub did not return it.",
        got=first_line(error),
        cause="a misspelt name, no connection to the hub, or a private model without a token.",
        do="check the name. Offline, leave the name out for the bundled MiniLM, or give a folder that "
        "save_pretrained() wrote; in Python also normlens.load(model, tokenizer) with objects you already have.",
    )
