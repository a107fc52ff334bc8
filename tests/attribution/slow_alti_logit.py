"""ALTI-Logit written out: the vectors of every pair of tokens, in double precision, from the modules of a model."""

import slow_decompx as slow
import torch
from torch.nn import functional


def pairs(whole, weights, values, bias, out):
    """Σ_h α f_h(x_j) of every query and key, with the bias of the values inside."""
    heads = len(weights)
    sent = (whole @ values.mT + bias).unflatten(-1, (heads, -1))
    return torch.einsum("hij,jhd,mhd->ijm", weights, sent, out.unflatten(1, (heads, -1)))


def alti(parts, states, whole):
    """c_ij = max(0, ‖y_i‖₁ - ‖y_i - T_ij‖₁), rows to 1; T holds the token's own state on the diagonal."""
    own = parts + torch.diag_embed(states.mT).permute(1, 2, 0)
    near = whole.abs().sum(-1, keepdim=True) - (whole[:, None] - own).abs().sum(-1)
    near = near.clamp_min(0)
    return near / near.sum(-1, keepdim=True)


def traced_back(layers, start, row, slope):
    """`layers`: parts of the attention, and ALTI of the layer. What they add along `slope`, by token."""
    count = len(start)
    scores, made_of = torch.zeros(count).to(start), torch.eye(count).to(start)
    for parts, shares in layers:
        scores = scores + (parts[row] @ slope) @ made_of
        made_of = shares @ made_of
    scores[row] += start[row] @ slope
    return scores


def gpt2(model, ids, row, token):
    body, heads = model.transformer, model.config.n_head
    start = state = body.wte(ids) + body.wpe(torch.arange(len(ids)))
    layers = []
    for layer in body.h:
        normed = layer.ln_1(state)
        query, key, value = layer.attn.c_attn.weight.mT.chunk(3)
        wide = layer.attn.c_attn.bias.chunk(3)
        weights = slow.attention_weights(normed @ query.mT + wide[0], normed @ key.mT + wide[1], heads, causal=True)
        parts = pairs(normed, weights, value, wide[2], layer.attn.c_proj.weight.mT)
        whole = state + parts.sum(1) + layer.attn.c_proj.bias
        layers.append((parts, alti(parts, state, whole)))
        state = whole + layer.mlp(layer.ln_2(whole))
    spread = (state[row].var(correction=0) + body.ln_f.eps).sqrt()
    slope = model.lm_head.weight[token] * body.ln_f.weight / spread
    return traced_back(layers, start, row, slope - slope.mean())


def llama(model, ids, row, token, rotated):
    body, config = model.model, model.config
    start = state = body.embed_tokens(ids)
    layers = []
    group = config.num_attention_heads // config.num_key_value_heads
    for layer in body.layers:
        own, normed = layer.self_attn, layer.input_layernorm(state)
        weights = slow.attention_weights(
            *rotated(own.q_proj(normed), own.k_proj(normed)), config.num_attention_heads, True
        )
        value = own.v_proj.weight.unflatten(0, (config.num_key_value_heads, -1)).repeat_interleave(group, 0)
        parts = pairs(normed, weights, value.flatten(0, 1), 0.0, own.o_proj.weight)
        whole = state + parts.sum(1)
        layers.append((parts, alti(parts, state, whole)))
        fed, mlp = layer.post_attention_layernorm(whole), layer.mlp
        state = whole + mlp.down_proj(functional.silu(mlp.gate_proj(fed)) * mlp.up_proj(fed))
    spread = (state[row].square().mean() + body.norm.variance_epsilon).sqrt()
    return traced_back(layers, start, row, model.lm_head.weight[token] * body.norm.weight / spread)
