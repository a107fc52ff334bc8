"""How many layers are enough, and what that does to the fields that speak of layers.

Knows one configuration at a time.

Enough is two, or as many as it takes for every distinct entry of a per-layer list (sliding and full attention, dense
and sparse feed-forward, ...) to occur, or for a list of tapped layers to keep its length.
"""

import re
from dataclasses import dataclass
from typing import Any

from transformers import PretrainedConfig

from normlens.probes.small.fields import known
from normlens.probes.small.special import LAYERS

_COUNT = re.compile(
    r"^(num_hidden_layers|n_layers?|num_layers|layers|depth|resampler_depth|num_blocks|num_self_attends_per_block)$"
    r"|^(\w+_)?(encoder|decoder|text|l|r|x|attention|global|dec|transformer|spatial|temporal|auxiliary|pooler|coda|timestamp_prediction)_layers$"
    r"|_num_hidden_layers$|^num_(encoder|decoder)_layers$|^num_layers_per_stack$|^aligner_num_add_layers$|^num_mel_attn_blocks$"
)
_UNCOUNTED = re.compile(
    r"sparse|dense|shared|postnet|prenet|predictor|feat_extract|conv_|first_|last_|lstm|residual|fov"
)
_DEPTHS = re.compile(
    r"^(depths|num_block_repeats|stage_num_blocks|blocks_per_stage|block_sizes|n_attn_blocks|stage_numb_of_layers)$"
)
_TAPPED = re.compile(
    r"out_indices|hook|extract|hidden_state_indices|deepstack_visual|intermediate_layers_indices|target_layer"
)
_CHOSEN = re.compile(
    r"(_indexes|_indices|_idxs|_layer_ids|_blocks|^cross_attention_layers|^mlp_only_layers|^moe_layers|^rope_scaling_layers|^kv_source_layers)$"
)
_PATTERNS = (
    "layer_types",
    "layers_block_type",
    "mlp_layer_types",
    "indexer_types",
    "attention_layers",
    "attn_layers",
    "block_types",
)
_LONGEST_PREFIX = 8


@dataclass(frozen=True, slots=True)
class Cut:
    """Which of the layers of one configuration stay."""

    before: int | None  # how many layers the configuration has, None when it does not say or is staged
    chosen: tuple[int, ...]  # which of them stay, in order
    stages: int = 0  # how many stages a staged configuration has

    @staticmethod
    def of(config: PretrainedConfig, *, staged: bool) -> "Cut":
        fields = vars(config)
        before = None if staged else _layer_count(fields)
        if before is None:
            lists = [
                value for name, value in fields.items() if _DEPTHS.search(name) and isinstance(value, list | tuple)
            ]
            return Cut(before=None, chosen=(0, 1), stages=len(lists[0]) if lists else 0)
        enough = LAYERS.get(config.model_type, 2)
        for name, value in fields.items():
            if isinstance(value, list | tuple) and value and (_TAPPED.search(name) or name == "_out_indices"):
                enough = max(enough, len(value))
        patterns = [value for name in _PATTERNS if (value := _pattern(config, name)) and len(value) == before]
        for value in patterns:
            enough = max(enough, max(list(value).index(kind) for kind in set(value)) + 1)
        if enough <= _LONGEST_PREFIX or config.model_type in LAYERS:
            return Cut(before=before, chosen=tuple(range(min(enough, before))))
        chosen = {0, before - 1}
        for value in patterns:
            chosen |= {list(value).index(kind) for kind in set(value)}
        return Cut(before=before, chosen=tuple(sorted(chosen)))

    def field(self, name: str, value: Any) -> Any:
        """The value of one field after the cut."""
        after = len(self.chosen)
        if isinstance(value, bool):
            return value
        if isinstance(value, int):
            if name == "max_window_layers" or name in (
                "first_k_dense_replace",
                "num_dense_layers",
                "moe_layer_start_index",
            ):
                return min(value, 1)
            if name == "num_kv_shared_layers":
                return 0
            if name == "moe_layer_end_index":
                return after - 1
            if _COUNT.search(name) and not _UNCOUNTED.search(name) and value != self.stages:
                return min(value, after) if self.before is None or value != self.before else after
            return value
        if not isinstance(value, list | tuple):
            return value
        if _DEPTHS.search(name) and all(isinstance(item, int) for item in value):
            return type(value)(min(item, 2) for item in value)
        if self.before is None or not value:
            return value
        if name == "attention_types":
            return [[value[0][0], max(1, after // len(value[0][0]))]]
        if _TAPPED.search(name):
            return type(value)(range(after - min(len(value), after), after))
        if _CHOSEN.search(name) and all(isinstance(item, int) and item < self.before for item in value):
            return type(value)(self._subset(value, after, name))
        if len(value) == self.before and not name.startswith(("id2", "mrope")):
            return type(value)(value[index] for index in self.chosen)
        if name.startswith("vision_feature_layer"):
            return type(value)(max(-after, min(item, after - 1)) for item in value)
        return value

    def outputs(self, wanted: list[int]) -> list[int]:
        """Backbone stages to return, as many as before."""
        if self.before is None:
            return list(wanted)
        after = len(self.chosen)
        return list(range(after - min(len(wanted), after) + 1, after + 1))

    def _subset(self, value: list[int] | tuple[int, ...], after: int, name: str) -> list[int]:
        if len(value) == self.before:
            return list(range(after))
        return [0] if "window" in name else [after - 1]


def _layer_count(fields: dict[str, Any]) -> int | None:
    for name in ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "depth", "layers", "encoder_layers"):
        if isinstance(value := fields.get(name), int) and not isinstance(value, bool):
            return value
    return None


def _pattern(config: PretrainedConfig, name: str) -> list[Any] | tuple[Any, ...] | None:
    value = known(config, name)
    return value if isinstance(value, list | tuple) and all(isinstance(item, str | int) for item in value) else None
