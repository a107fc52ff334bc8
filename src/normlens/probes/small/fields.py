"""One field of a configuration, made small by the kind its name puts it in.

Knows field names and numbers only.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from transformers import PretrainedConfig

from normlens.probes.small.special import SECTIONS

WIDTH, INNER, HEADS, HEAD_WIDTH = 64, 96, 4, 16

_IDS = re.compile(r"(token_ids?|token_index|_id|_ids|_token)$")
_VOCABULARY = re.compile(
    r"(^|_)vocab(_size)?(_per_layer_input)?$|^ngram_vocab_size_base$|_byte_group_vocab$|^num_hash_buckets$"
)
_HEADS = re.compile(r"(^|_)(heads|n_head|n_heads)$")
_FEW_HEADS = re.compile(r"(key_value|kv|_key)_(attention_)?heads$|^num_kv_heads$|^num_query_groups$")
_HEAD_WIDTH = re.compile(
    r"(head_dim|^d_kv|dim_head|^d_head|attention_head_size|kv_channels|rotary_dim|d_rel|mamba_d_head|mamba_headdim)$"
)
_STATE = re.compile(r"(d_state|state_size)$")
_RANK = re.compile(r"(_rank|_lowrank)$")
_EXPERTS = re.compile(r"^(num_experts|n_routed_experts|num_local_experts|moe_num_experts|zero_expert_num)$")
_ROUTED = re.compile(r"^(num_experts_per_tok(en)?|moe_k|moe_topk|top_k_experts)$")
_INNER = re.compile(
    r"intermediate|ffn|feed_?forward|^d_ff$|^dff$|^dim_ff$|n_inner|d_inner|mlp_dim|linear_units|^hidden_dim$"
)
_WIDE = re.compile(
    r"(size|dim|dims|width|units|d_model|n_embd|d_latents|features|_channels|ple_embed_dim|size_mlp|hidden_size_global)$"
)
_NARROW = re.compile(
    r"patch_embed_hidden_size|image_size|img_size|patch_size|kernel|vocab|window|chunk|batch|merge|block_size|context|position|crop|codebook|group"
    r"|pool|frame|spec_size|tile|stride|sampl|resolution|input_size|ngram|num_channels|in_channels|audio_channels|input_feat"
    r"|roi|mask_size|resample|coordinate|shape_size|embedding_size$(?<!input_embedding_size)(?<!^embedding_size)|squeeze|cache|keep_|act_dim|state_dim|action_dim"
    r"|label_|hash|max_|parallel|chain|crop|mel_dim|feature_projection_input_dim|^input_dim|query_dim|pos_dim|output_dim$(?<!projector_output_dim)(?<!vision_output_dim)|top_"
)
_IMAGE = re.compile(r"^(image_size|img_size|max_img_size|input_size|pretrain_image_size|spec_size|resolution)$")
_WINDOW = re.compile(
    r"^(sliding_window|attention_chunk_size|local_attention|attention_window|sliding_window_size|attention_window_size)$"
)


@dataclass(frozen=True, slots=True)
class Scale:
    """What the numbers of one configuration are multiplied or replaced by."""

    widths: Literal["tiny", "divided", "kept"]
    head_width: int  # of the configuration as it came
    heads: int  # of the configuration as it came
    patch: int | None
    divisor: int = 1
    images: Literal["small", "kept"] = "small"
    vocabulary: int | None = None
    ids: dict[int, int] = field(default_factory=dict)

    @staticmethod
    def of(config: PretrainedConfig, widths: Literal["tiny", "divided", "kept"]) -> "Scale":
        heads = _first(config, "num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads") or 1
        hidden = _first(config, "hidden_size", "d_model", "n_embd", "embed_dim", "dim") or 64
        head_width = _first(config, "head_dim", "d_kv", "dim_head", "attention_head_size") or max(1, hidden // heads)
        patch = known(config, "patch_size")
        if isinstance(patch, list | tuple):
            patch = patch[0] if patch else None
        divisor = 1
        while (
            widths == "divided" and divisor < 8 and head_width % (divisor * 4) == 0 and head_width // (divisor * 2) >= 8
        ):
            divisor *= 2
        return Scale(widths, head_width, heads, patch if isinstance(patch, int) else None, divisor)

    def head(self, width: int) -> int:
        """A width that belongs to one head, in proportion to the head."""
        if self.widths == "tiny" and self.head_width > HEAD_WIDTH and width:
            return max(2, width * HEAD_WIDTH // self.head_width // 2 * 2)
        return width // self.divisor if self.widths == "divided" else width


def shrunk_field(name: str, value: Any, scale: Scale) -> Any:
    """The field's value on this scale; anything that is not a size comes back as it was."""
    if isinstance(value, bool) or value is None or isinstance(value, str | float):
        return value
    if isinstance(value, dict):
        return _rope(value, scale) if name.startswith("rope") else value
    if isinstance(value, list | tuple):
        if name in ("image_size", "img_size") and scale.images == "small":
            return type(value)(_image(item, scale) for item in value)
        if name == "downsample_channels" and scale.widths == "tiny":
            return type(value)(WIDTH for _ in value)
        if (
            _IDS.search(name)
            or name == "moe_intermediate_size"
            or name == "intermediate_size"
            or name.endswith("heads_per_layer")
        ):
            return type(value)(shrunk_field(name.removesuffix("_per_layer"), item, scale) for item in value)
        return value
    return _shrunk_number(name, value, scale) if isinstance(value, int) else value


def sections(config: PretrainedConfig, scale: Scale) -> list[int]:
    """The usual three multimodal rotary sections, for a configuration that leaves them to the modelling code."""
    partial = (getattr(config, "rope_parameters", None) or {}).get("partial_rotary_factor", 1.0)
    parts = SECTIONS.get(config.model_type, [16, 24, 24])
    return _sections(parts, total=int(scale.head(scale.head_width) * partial) // 2)


def shrunk_ids(parts: Iterable[PretrainedConfig], vocabulary: int) -> dict[int, int]:
    """Special token ids beyond the small vocabulary, each given its own place at the top of it."""
    found: set[int] = set()
    for part in parts:
        for name, value in vars(part).items():
            if _IDS.search(name):
                items = value if isinstance(value, list | tuple) else [value]
                found |= {item for item in items if isinstance(item, int) and not isinstance(item, bool)}
    large = sorted(item for item in found if item >= 100)
    return {item: vocabulary - len(large) + place for place, item in enumerate(large)}


def known(config: PretrainedConfig, name: str) -> Any:
    """A field's value; None where it is absent or differs from layer to layer."""
    try:
        return getattr(config, name, None)
    except Exception:
        return vars(config).get(name)


def _shrunk_number(name: str, value: int, scale: Scale) -> int:
    if _IDS.search(name):
        return scale.ids.get(value, value)
    if _VOCABULARY.search(name):
        return min(value, scale.vocabulary) if scale.vocabulary else value
    if _EXPERTS.search(name):
        return min(value, 4)
    if _ROUTED.search(name):
        return min(value, 2)
    if name in ("n_group", "num_expert_group"):
        return min(value, 2)
    if name in ("n_groups", "mamba_n_groups", "mamba_ngroups") and scale.widths == "tiny":
        return min(value, 2)
    if name == "topk_group":
        return min(value, 1)
    if _WINDOW.search(name):
        return 4 if value > 4 else value
    if name in ("num_queries", "num_detection_tokens", "two_stage_num_proposals"):
        return min(value, 12)
    if _IMAGE.search(name):
        return _image(value, scale) if scale.images == "small" else value
    if name == "max_source_positions":
        return min(value, 32)
    if name == "mm_tokens_per_image":
        return min(value, 4) if scale.images == "small" else value
    if scale.widths == "kept":
        return value
    return _shrunk_width(name, value, scale)


def _shrunk_width(name: str, value: int, scale: Scale) -> int:
    tiny = scale.widths == "tiny"
    if _FEW_HEADS.search(name):
        return value if not tiny else HEADS if value >= scale.heads and value >= HEADS else min(value, 2)
    if _HEADS.search(name):
        return min(value, HEADS) if tiny else value
    if _HEAD_WIDTH.search(name):
        return scale.head(value)
    if name == "num_pos_feats":
        return WIDTH // 2 if tiny else value // scale.divisor
    if value < 32:
        return value
    if _STATE.search(name) or _RANK.search(name):
        return (min(value, 16) if _STATE.search(name) else 32) if tiny else value // scale.divisor
    if _INNER.search(name):
        return INNER if tiny else value // scale.divisor
    if _WIDE.search(name) and not _NARROW.search(name):
        return WIDTH if tiny else value // scale.divisor
    return value


def _image(size: int, scale: Scale) -> int:
    return min(size, scale.patch * 4 if scale.patch and scale.patch > 4 else 64)


def _rope(parameters: dict[str, Any], scale: Scale) -> dict[str, Any]:
    """Rotary parameters with their per-dimension lists cut in proportion to the head."""
    small: dict[str, Any] = {}
    for name, value in parameters.items():
        if isinstance(value, dict):
            small[name] = _rope(value, scale)
        elif isinstance(value, list | tuple) and name.endswith("_section"):
            small[name] = _sections(list(value), total=scale.head(2 * sum(value)) // 2)
        elif isinstance(value, list | tuple) and name.endswith("_factor"):
            small[name] = type(value)(value[: max(1, scale.head(2 * len(value)) // 2)])
        else:
            small[name] = value
    return small


def _sections(parts: list[int], *, total: int) -> list[int]:
    small = [max(1, item * total // sum(parts)) for item in parts]
    small[-1] += total - sum(small)
    return small


def _first(config: PretrainedConfig, *names: str) -> int | None:
    for name in names:
        if isinstance(value := known(config, name), int) and not isinstance(value, bool) and value:
            return value
    return None
