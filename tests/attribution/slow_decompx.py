"""DecompX written out once more: parts (token, position, channel) in double precision, from the modules of a model."""

import torch
from torch.nn import functional


def share(parts, bias, against=None):
    """Each part with its share of a bias, by the absolute dot product of the part and the bias."""
    sizes = ((parts if against is None else against) * bias).sum(-1).abs()
    return parts + (sizes / sizes.sum(0, keepdim=True))[..., None] * bias


def linear(parts, matrix, bias=None):
    made = torch.einsum("kid,ud->kiu", parts, matrix)
    return made if bias is None else share(made, bias)


def layer_norm(parts, norm):
    whole = parts.sum(0)
    spread = (whole.var(-1, correction=0) + norm.eps).sqrt()
    made = (parts - parts.mean(-1, keepdim=True)) / spread[:, None] * norm.weight
    return share(made, norm.bias)


def rms_norm(parts, norm):
    spread = (parts.sum(0).square().mean(-1) + norm.variance_epsilon).sqrt()
    return parts / spread[:, None] * norm.weight


def active(parts, function):
    whole = parts.sum(0)
    return parts * (function(whole) / whole)


def attention_weights(query, key, heads, causal=False):
    """α (head, tgt, src) of whole queries and keys."""
    query, key = (x.unflatten(-1, (heads, -1)).transpose(0, 1) for x in (query, key))
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[1:], dtype=torch.bool).tril(), -torch.inf)
    return scores.softmax(-1)


def mixed(parts, weights, values, out):
    """Σ_h Σ_j α V_h W_O[h] of every part, without biases. `values` and `out` are (unit, model), (model, unit)."""
    heads = len(weights)
    sent = linear(parts, values).unflatten(-1, (heads, -1))
    return linear(torch.einsum("hij,kjhd->kihd", weights, sent).flatten(2), out)


def diagonal(rows, before=0, after=0):
    """Each row is owned by its token."""
    count, width = rows.shape
    parts = rows.new_zeros(before + count + after, count, width)
    parts[before + torch.arange(count), torch.arange(count)] = rows
    return parts


def attended(parts, sources, modules, heads, causal=False):
    """What attention writes, its biases shared out together. `modules`: query, key, value and output matrices."""
    query, key, value, out = modules
    weights = attention_weights(query(parts.sum(0)), key(sources.sum(0)), heads, causal)
    made = mixed(sources, weights, value.weight, out.weight)
    return share(made, out.weight @ value.bias + out.bias)


def bert(encoder, rows, heads, theirs=False):
    """The parts behind every layer of BERT, from the output of its embeddings."""
    parts = diagonal(rows)
    for number, layer in enumerate(encoder.layer):
        own, out = layer.attention.self, layer.attention.output.dense
        if theirs:
            weights = attention_weights(own.query(parts.sum(0)), own.key(parts.sum(0)), heads)
            made, bias = parts + mixed(parts, weights, own.value.weight, out.weight), out.weight @ own.value.bias
            if number == 0:  # inside the tokens
                inside = own.value.bias.unflatten(0, (heads, -1))
                sent = torch.einsum("hd,mhd->hm", inside, out.weight.unflatten(1, (heads, -1)))
                made, bias = made + torch.einsum("hij,hm->jim", weights, sent), torch.zeros_like(bias)
            made = share(made, bias + out.bias)
        else:
            made = parts + attended(parts, parts, (own.query, own.key, own.value, out), heads)
        parts = layer_norm(made, layer.attention.output.LayerNorm)
        inner = active(linear(parts, layer.intermediate.dense.weight, layer.intermediate.dense.bias), functional.gelu)
        written = linear(inner, layer.output.dense.weight, layer.output.dense.bias)
        parts = layer_norm(parts + written, layer.output.LayerNorm)
    return parts


def gpt2(model, ids):
    """The parts of the logits of GPT-2."""
    body, heads = model.transformer, model.config.n_head
    parts = diagonal(body.wte(ids) + body.wpe(torch.arange(len(ids))))
    for layer in body.h:
        normed = layer_norm(parts, layer.ln_1)
        fused, wide = layer.attn.c_attn, layer.attn.c_attn.bias.chunk(3)
        query, key, value = fused.weight.mT.chunk(3)
        whole = normed.sum(0)
        weights = attention_weights(whole @ query.mT + wide[0], whole @ key.mT + wide[1], heads, causal=True)
        out = layer.attn.c_proj
        made = mixed(normed, weights, value, out.weight.mT)
        parts = parts + share(made, out.weight.mT @ wide[2] + out.bias)
        inner = linear(layer_norm(parts, layer.ln_2), layer.mlp.c_fc.weight.mT, layer.mlp.c_fc.bias)
        inner = active(inner, lambda x: functional.gelu(x, approximate="tanh"))
        parts = parts + linear(inner, layer.mlp.c_proj.weight.mT, layer.mlp.c_proj.bias)
    return linear(layer_norm(parts, body.ln_f), model.lm_head.weight)


def llama(model, ids, rotated, gated):
    """The parts of the logits of Llama; `rotated(query, key)` turns them by their positions."""
    body, config = model.model, model.config
    parts = diagonal(body.embed_tokens(ids))
    for layer in body.layers:
        own, normed = layer.self_attn, rms_norm(parts, layer.input_layernorm)
        query, key = rotated(own.q_proj(normed.sum(0)), own.k_proj(normed.sum(0)))
        weights = attention_weights(query, key, config.num_attention_heads, causal=True)
        group = config.num_attention_heads // config.num_key_value_heads
        value = own.v_proj.weight.unflatten(0, (config.num_key_value_heads, -1)).repeat_interleave(group, 0)
        parts = parts + mixed(normed, weights, value.flatten(0, 1), own.o_proj.weight)
        normed = rms_norm(parts, layer.post_attention_layernorm)
        gate, up = linear(normed, layer.mlp.gate_proj.weight), linear(normed, layer.mlp.up_proj.weight)
        whole = functional.silu(gate.sum(0))
        units = up * whole
        if gated == "both":
            units = units / 2 + active(gate, functional.silu) * up.sum(0) / 2
        parts = parts + linear(units, layer.mlp.down_proj.weight)
    return linear(rms_norm(parts, body.norm), model.lm_head.weight)


def marian(model, source, written):
    """The parts of the logits of Marian: of the source tokens, then of the tokens fed to the decoder."""
    encoder, decoder = model.model.encoder, model.model.decoder
    scale, heads = model.config.d_model**0.5, model.config.encoder_attention_heads

    def embedded(side, ids):
        return side.embed_tokens(ids) * scale + side.embed_positions.weight[: len(ids)]

    def matrices(module):
        return module.q_proj, module.k_proj, module.v_proj, module.out_proj

    def network(parts, layer):
        inner = active(linear(parts, layer.fc1.weight, layer.fc1.bias), layer.activation_fn)
        return layer_norm(parts + linear(inner, layer.fc2.weight, layer.fc2.bias), layer.final_layer_norm)

    read = diagonal(embedded(encoder, source), after=len(written))
    for layer in encoder.layers:
        made = attended(read, read, matrices(layer.self_attn), heads)
        read = network(layer_norm(read + made, layer.self_attn_layer_norm), layer)
    parts = diagonal(embedded(decoder, written), before=len(source))
    for layer in decoder.layers:
        made = attended(parts, parts, matrices(layer.self_attn), heads, causal=True)
        parts = layer_norm(parts + made, layer.self_attn_layer_norm)
        made = attended(parts, read, matrices(layer.encoder_attn), heads)
        parts = network(layer_norm(parts + made, layer.encoder_attn_layer_norm), layer)
    return share(linear(parts, model.lm_head.weight), model.final_logits_bias[0])
