"""Make a configuration small without losing what makes its family special.

Knows configurations and the names of their fields; no weights, no inputs.

A configuration is a tree (text, vision, decoder, ...). Every integer of the tree is put in one kind by its name (layer
count, head count, width, vocabulary, ...), each kind has one rule, and the tree is rebuilt through its own classes, so
what they derive and validate stays derived and validated. A rung says how hard the rules press.
"""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from transformers import PretrainedConfig, ResNetConfig
from transformers.utils.import_utils import is_timm_available

from normlens.probes.small.fields import Scale, known, sections, shrunk_field, shrunk_ids
from normlens.probes.small.layers import Cut
from normlens.probes.small.special import KEPT, MISSING, OVERRIDES, SECTIONS

VOCABULARY = 256


@dataclass(frozen=True, slots=True)
class Rung:
    """How hard to shrink: one step of the ladder."""

    name: str
    widths: Literal["tiny", "divided", "kept"]
    images: Literal["small", "kept"] = "small"
    vocabulary: Literal["small", "kept"] = "small"


LADDER = (
    Rung("tiny", "tiny"),
    Rung("tiny, images kept", "tiny", images="kept"),
    Rung("tiny, vocabulary kept", "tiny", vocabulary="kept"),
    Rung("divided", "divided"),
    Rung("divided, images and vocabulary kept", "divided", images="kept", vocabulary="kept"),
    Rung("layers cut", "kept"),
    Rung("layers cut, images and vocabulary kept", "kept", images="kept", vocabulary="kept"),
)


def shrink(config: PretrainedConfig, rung: Rung = LADDER[0]) -> PretrainedConfig:
    """A small configuration of the same class, down the given rung of the ladder."""
    ids: dict[int, int] = {}
    if rung.vocabulary == "small":
        ids = shrunk_ids((part for part in _tree(config)), VOCABULARY)
    return _rebuilt(config, rung, ids)


def _tree(config: PretrainedConfig) -> Iterator[PretrainedConfig]:
    yield config
    for value in vars(config).values():
        if isinstance(value, PretrainedConfig):
            yield from _tree(value)


def _rebuilt(config: PretrainedConfig, rung: Rung, ids: dict[int, int]) -> PretrainedConfig:
    kind = type(config)
    accepted = set(inspect.signature(kind.__init__).parameters)
    fields = {name: value for name, value in vars(config).items() if not name.startswith("_")}
    staged = _staged(fields)
    scale = Scale.of(config, "kept" if staged and rung.widths == "tiny" else rung.widths)
    scale = replace(
        scale, images=rung.images, ids=ids, vocabulary=VOCABULARY if ids or rung.vocabulary == "small" else None
    )
    cut = Cut.of(config, staged=staged)
    kept = KEPT.get(config.model_type, frozenset())
    given: dict[str, Any] = _changed(config, kind) | _per_layer(config, cut, scale)
    for name, value in fields.items():
        if name in kept or name not in accepted:
            continue
        if isinstance(value, PretrainedConfig):
            given[name] = _rebuilt(_without_timm(value), rung, ids)
            continue
        small = cut.field(name, value)
        small = shrunk_field(name, small, scale)
        if small != value or type(small) is not type(value):
            given[name] = small
    given |= _products(config, given) | _rotary(config, given, scale)
    given |= OVERRIDES.get(config.model_type, {})
    given |= {name: value for name, value in MISSING.get(config.model_type, {}).items() if fields.get(name) is None}
    small = kind(**given)
    return _completed(small)


def _without_timm(config: PretrainedConfig) -> PretrainedConfig:
    """A ResNet in place of a backbone from the timm library, when that library is absent."""
    if config.model_type != "timm_backbone" or is_timm_available():
        return config
    return ResNetConfig.from_dict({"out_indices": list(getattr(config, "out_indices", None) or [4])})


def _completed(config: PretrainedConfig) -> PretrainedConfig:
    """Head fields some families leave empty although their modelling code reads them."""
    heads, width = known(config, "num_attention_heads"), known(config, "hidden_size")
    fields = vars(config)
    if isinstance(heads, int) and isinstance(width, int):
        if "head_dim" in fields and fields["head_dim"] is None:
            config.head_dim = width // heads
        if "num_key_value_heads" in fields and fields["num_key_value_heads"] is None:
            config.num_key_value_heads = heads
    return config


def _per_layer(config: PretrainedConfig, cut: Cut, scale: Scale) -> dict[str, Any]:
    """What differs from layer to layer, for the layers that stay."""
    spec = vars(config).get("_heterogeneity_spec")
    if spec is None:
        return {}
    overrides: dict[int, dict[str, Any]] = spec.per_layer_overrides
    stay = {new: overrides[old] for new, old in enumerate(cut.chosen) if old in overrides}
    return {
        "per_layer_config": {
            layer: {name: shrunk_field(name, value, scale) for name, value in fields.items()}
            for layer, fields in stay.items()
        }
    }


def _products(config: PretrainedConfig, given: dict[str, Any]) -> dict[str, Any]:
    """Head widths that are what is left of the expanded width, in state-space layers."""
    after = vars(config) | given
    expand = after.get("mamba_expand", after.get("expand"))
    for heads, width in _STATE_HEADS:
        if expand is not None and isinstance(after.get(heads), int) and isinstance(after.get(width), int):
            inner = expand * after["hidden_size"]
            return {width: inner // after[heads]} | ({"mamba_d_ssm": inner} if "mamba_d_ssm" in after else {})
    hidden = after.get("hidden_size", 0)
    if vars(config).get("attention_hidden_size") == 2 * vars(config).get("hidden_size", 0):
        return {"attention_hidden_size": 2 * hidden, "attention_head_dim": 2 * hidden // after["num_attention_heads"]}
    if "axial_pos_embds_dim" in after:
        return {"axial_pos_embds_dim": (hidden // 4, hidden - hidden // 4)}
    if "coordinate_size" in after and "shape_size" in after:
        return {"coordinate_size": hidden // 8, "shape_size": hidden // 4}
    return {}


def _rotary(config: PretrainedConfig, given: dict[str, Any], scale: Scale) -> dict[str, Any]:
    parameters = (vars(config) | given).get("rope_parameters")
    if parameters and all(isinstance(value, dict) for value in parameters.values()):
        return {}
    known_sections = "mrope_section" in getattr(type(config), "ignore_keys_at_rope_validation", ())
    if not known_sections and config.model_type not in SECTIONS:
        return {}
    if not isinstance(parameters, dict) or "mrope_section" in parameters:
        return {}
    return {"rope_parameters": parameters | {"mrope_section": sections(config, scale)}}


_STATE_HEADS = (
    ("mamba_n_heads", "mamba_d_head"),
    ("n_mamba_heads", "mamba_headdim"),
    ("mamba_num_heads", "mamba_head_dim"),
    ("num_heads", "head_dim"),
)


def _staged(fields: dict[str, Any]) -> bool:
    """Whether widths or heads come per stage, doubling from one to the next: these are cut in depth only."""
    return any(isinstance(value, list | tuple) and len(value) > 1 and name in _STAGES for name, value in fields.items())


def _changed(config: PretrainedConfig, kind: type[PretrainedConfig]) -> dict[str, Any]:
    try:
        plain = vars(kind())
    except Exception:
        plain = {}
    changed = {
        name: value
        for name, value in vars(config).items()
        if not name.startswith("_")
        and not isinstance(value, PretrainedConfig)
        and (name not in plain or plain[name] != value)
        and name not in ("transformers_version", "stage_names")
    }
    for name in ("out_features", "out_indices"):
        changed.pop(name, None)
    if (wanted := vars(config).get("_out_indices")) is not None and wanted != plain.get("_out_indices"):
        changed["out_indices"] = Cut.of(config, staged=_staged(vars(config))).outputs(wanted)
    return changed


_STAGES = frozenset(
    {
        "depths",
        "hidden_sizes",
        "embed_dims",
        "embed_dim",
        "num_heads",
        "num_attention_heads",
        "depth",
        "embed_dim_per_stage",
        "num_block_repeats",
        "stage_out_channels",
        "block_configs",
        "channel_multiplier",
        "downsampling_ratios",
        "upsampling_ratios",
        "upsample_rates",
    }
)
