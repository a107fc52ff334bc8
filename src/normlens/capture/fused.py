"""Torch's own fused attention, written out by its documented definition so that its weights can be seen.
A model that runs these functions keeps running what it runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from normlens.capture.record import Attended


def attention_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, α and values of `scaled_dot_product_attention`, key and value heads repeated where they are shared."""
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    scores = torch.matmul(query * (1 / math.sqrt(query.shape[-1]) if scale is None else scale), key.mT)
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores.masked_fill_(~allowed, -math.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores.masked_fill_(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores += attn_mask
    weights = torch.softmax(scores, dim=-1)
    if attn_mask is not None:
        blind = (
            (attn_mask if attn_mask.dtype == torch.bool else attn_mask > -math.inf).any(-1, keepdim=True).logical_not()
        )
        if bool(blind.any()):
            weights = weights.masked_fill(blind, 0.0)
    return scores, weights, value


def multi_head(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Attended | None, dict[str, Any]]:
    """Run `multi_head_attention_forward` and read its parts, None when it does not show them; and the call by name."""
    call = dict(zip(_MULTI_HEAD, args, strict=False)) | kwargs
    plain = call["query"].ndim == 3 and call.get("bias_k") is None and not call.get("add_zero_attn", False)
    if not plain or call.get("static_v") is not None:
        return func(*args, **kwargs), None, call
    output, weights = func(**(call | {"need_weights": True, "average_attn_weights": False}))
    values = functional.linear(call["value"], *_value_matrix(call))
    src, batch, width = values.shape
    heads = weights.shape[1]
    block = Attended(
        order=0,
        where="",
        out="",
        weights=weights,
        values=values.view(src, batch, heads, width // heads).permute(1, 2, 0, 3),
        out_weight=call["out_proj_weight"].mT.unflatten(0, (heads, -1)),
        out_bias=call["out_proj_bias"],
        output=output.transpose(0, 1),
    )
    if not call.get("need_weights", True):
        weights = None
    elif call.get("average_attn_weights", True):
        weights = weights.mean(dim=1)
    return (output, weights), block, call


def _value_matrix(call: dict[str, Any]) -> tuple[Tensor, Tensor | None]:
    bias = call["in_proj_bias"]
    bias = None if bias is None else bias.chunk(3)[2]
    if call.get("use_separate_proj_weight", False):
        return call["v_proj_weight"], bias
    return call["in_proj_weight"].chunk(3)[2], bias


SCALED = "query key value attn_mask dropout_p is_causal scale enable_gqa".split()
_MULTI_HEAD = (
    "query key value embed_dim_to_check num_heads in_proj_weight in_proj_bias bias_k bias_v add_zero_attn dropout_p "
    "out_proj_weight out_proj_bias training key_padding_mask need_weights attn_mask use_separate_proj_weight "
    "q_proj_weight k_proj_weight v_proj_weight static_k static_v average_attn_weights is_causal"
).split()
