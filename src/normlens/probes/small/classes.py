"""Which model class stands for a model type.

Most types are in AutoModel. The rest are either a family that exists only with a head (then the auto class that has it
is taken), or one tower of a composite: then the class written for that very configuration, and where there is none,
the smallest composite that holds the tower.
"""

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import transformers
from transformers import PretrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, model_type_to_module_name
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from normlens.probes.small.special import CLASSES


def model_types() -> tuple[str, ...]:
    """Every model type this version of transformers registers."""
    return tuple(CONFIG_MAPPING)


def config_class(model_type: str) -> type[PretrainedConfig]:
    """The configuration class of a model type."""
    return CONFIG_MAPPING[model_type]


def model_class(config: PretrainedConfig) -> type[PreTrainedModel] | None:
    """The class that runs most of this configuration, or None when only a larger composite has one."""
    module = modelling_module(config)
    for name in _candidates(config, module):
        found = getattr(module, name, None) or getattr(transformers, name, None)
        if isinstance(found, type) and issubclass(found, PreTrainedModel):
            return found
    return None


def modelling_module(config: PretrainedConfig) -> ModuleType:
    """The `modeling_*` module that belongs to a configuration. Importing it may fail for a missing library."""
    path = type(config).__module__.replace(".configuration_", ".modeling_")
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        return transformers  # a family that borrows another one's modelling code


def composites(model_type: str) -> Iterator[str]:
    """Model types whose configuration holds `model_type` as a part, from the same family."""
    wanted, family = CONFIG_MAPPING[model_type], model_type_to_module_name(model_type)
    for other in CONFIG_MAPPING:
        if other != model_type and model_type_to_module_name(other) == family:
            parts: dict[str, Any] = getattr(CONFIG_MAPPING[other], "sub_configs", None) or {}
            if wanted in parts.values():
                yield other


def _candidates(config: PretrainedConfig, module: ModuleType) -> Iterator[str]:
    kind = config.model_type
    if kind in CLASSES:
        yield CLASSES[kind]
    yield from config.architectures or ()
    yield from _names(MODEL_MAPPING_NAMES.get(kind))
    own = [name for name, found in vars(module).items() if _written_for(found, config, module)]
    yield from sorted(
        (name for name in own if name.endswith(("Model", "Encoder", "Decoder", "Backbone"))), key=_suffix_first
    )
    for mapping in _AUTO_MAPPINGS:
        yield from _names(getattr(modeling_auto, mapping, {}).get(kind))
    yield from sorted(own, key=len)


def _suffix_first(name: str) -> tuple[bool, int]:
    return name.endswith(("Encoder", "Decoder")), len(name)


def _names(entry: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def _written_for(found: object, config: PretrainedConfig, module: ModuleType) -> bool:
    if not (inspect.isclass(found) and issubclass(found, PreTrainedModel)) or found.__module__ != module.__name__:
        return False
    return found.config_class is type(config) and "forward" in vars(found)


_AUTO_MAPPINGS = (
    "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    *sorted(name for name in vars(modeling_auto) if name.startswith("MODEL_FOR_") and name.endswith("_MAPPING_NAMES")),
)
