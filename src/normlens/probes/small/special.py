"""What cannot be found out about a model type, one row each, with its reason."""

from typing import Any

# Which class stands for the type, where the auto mapping names one part of a composite.
CLASSES: dict[str, str] = {
    "musicgen": "MusicgenForConditionalGeneration",  # AutoModel gives the decoder alone
    "musicgen_melody": "MusicgenMelodyForConditionalGeneration",  # as musicgen
    "speecht5": "SpeechT5ForTextToSpeech",  # the base model takes what a task's own prenet makes
    "lw_detr_vit": "LwDetrViTBackbone",  # the encoder alone does not take pictures
    "rf_detr_dinov2": "RfDetrDinov2Backbone",  # as lw_detr_vit
    "qwen3_omni_moe": "Qwen3OmniMoeForConditionalGeneration",  # the shortest class name is a part of the vocoder
}

_COMPASS_ROPE = {"full_attention": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [24, 20, 20]}}

# Arguments of the default configuration, where transformers' own default cannot be built.
DEFAULTS: dict[str, dict[str, Any]] = {
    # the default has no attention layer, and then the mask code has nothing to ask
    "granitemoehybrid": {"num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"]},
    "lfm2_moe": {"num_hidden_layers": 4, "layer_types": ["conv", "conv", "conv", "full_attention"]},
    # tuples by default, and the modelling code adds them to lists
    "vitmatte": {"fusion_hidden_sizes": [256, 128, 64, 32], "convstream_hidden_sizes": [48, 96, 192]},
    # read by the modelling code, written only by the composite
    "pix2struct_text_model": {"initializer_range": 0.02},
    "dbrx": {"attn_config": {"rope_theta": 10_000.0, "kv_n_heads": 2, "clip_qkv": 8.0}},
    # the default speaks of no layer type, and the rotary code looks one up
    "cohere_compass_text": {"rope_parameters": _COMPASS_ROPE},
    "cohere_compass": {"text_config": {"rope_parameters": _COMPASS_ROPE}},
    "lw_detr": {"projector_scale_factors": [1.0]},  # none by default, and then there is nothing to detect on
    "granite4_vision": {"deepstack_layer_map": [(-1, 0)], "spatial_target_layers": [1], "downsample_rate": "1/2"},
    "nougat": {"encoder": {"model_type": "donut-swin"}, "decoder": {"model_type": "mbart"}},  # default misspells a type
}

# Fields that are given this value where they have none.
MISSING: dict[str, dict[str, Any]] = {
    "autoformer": {"prediction_length": 4, "context_length": 16},  # no default: the data decide
    "informer": {"prediction_length": 4, "context_length": 8},
    "time_series_transformer": {"prediction_length": 4, "context_length": 8},
    "bamba": {"attn_layer_indices": [1]},  # otherwise no attention layer
    "blip-2": {"image_token_index": 98},  # no default: the processor adds the token
    "instructblip": {"image_token_index": 98},
    "instructblipvideo": {"video_token_index": 98},
    "chameleon": {"vocabulary_map": {"<image>": 4}},  # no default: comes with the tokenizer
    "emu3": {"vocabulary_map": {"<image>": 4, "<|extra_200|>": 5}},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "deepseek_ocr2_text": {"num_experts_per_tok": 2, "mlp_layer_types": ["dense", "sparse"]},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "diffusion_gemma_text": {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 32},
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},
    "t5gemma2_text": {"dropout_rate": 0.0},  # read by the modelling code, written only by the composite
    "t5gemma2_decoder": {"dropout_rate": 0.0},
    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 96},  # as t5gemma2_text
    "qwen4_exp_text": {
        "indexer_n_heads": 4,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 16,
        "indexer_budget": 4,
        "indexer_compress_ratio": 2,
    },  # no default, and its full-attention layers are then not buildable
    "xmod": {"default_language": "en_XX"},
    "step3p5": {"sliding_window": 4},
    "moonshine_streaming": {"num_key_value_heads": 4},  # read by the decoder, not a field
    "qwen2_5_omni_thinker": {"vision_start_token_id": 96, "vision_end_token_id": 97},  # read by get_rope_index
    "qwen3_omni_moe_thinker": {"vision_start_token_id": 96, "vision_end_token_id": 97},
}

# Multimodal rotary sections the modelling code falls back to, where they are not (16, 24, 24).
SECTIONS: dict[str, list[int]] = {
    "paddleocr_vl_text": [16, 24, 24],  # its configuration does not name them
    "ernie4_5_vl_moe_text": [22, 22, 20],  # height, width, time, and the first two must be equal
}

# Fields that keep their value.
KEPT: dict[str, frozenset[str]] = {
    # windows per stage and global blocks are counted over all blocks
    "hrm_text": frozenset({"num_layers_per_stack"}),  # derived from num_hidden_layers, which is then rewritten
    "nemotron3_5_asr": frozenset({"default_prompt_id"}),  # a row of a table, not a token
    "tvp": frozenset({"max_img_size"}),  # the visual prompt frames the picture
    "sam2_hiera_det_model": frozenset({"blocks_per_stage", "global_attention_blocks"}),
}

# Fields that take this value on every rung.
OVERRIDES: dict[str, dict[str, Any]] = {
    "molmo2_adapter": {"vision_feature_layer": [1, 0]},  # indexes the vision tower's layers
    "inkling_vision": {"num_hidden_layers": 4},  # the layers factor the patch; the default does not, and is 760 billion
    "depth_pro": {"intermediate_hook_ids": (1, 0)},  # indexes the picture tower's layers
    "janus_vqgan": {"num_patches": 4},  # per side, of a small picture
    "seggpt": {"merge_index": 1},  # must come before the first tapped layer
}

# Least number of layers.
LAYERS: dict[str, int] = {
    "zamba": 9,  # two hybrid layers, because they share their weights
    "seggpt": 6,  # four tapped layers after the merge
}
