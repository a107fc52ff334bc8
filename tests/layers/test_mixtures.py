"""Mixtures of experts: every part is that of vectors written out, by loops over tokens and experts.

Which experts a token is sent to, and by what weight, is noted as the model computed it.
"""

import pytest
import torch
from slow_layers import Notes, attention_parts, mixing, rms_norm, with_own
from torch.nn.functional import silu

import normlens as nl
from normlens import probes

FIELDS = "weights transformed output_norms output_norms_both mixing_output".split()
EXACT = (
    "mixtral qwen2_moe qwen3_moe olmoe phimoe deepseek_v2 deepseek_v3 gpt_oss granitemoe granitemoeshared dbrx jamba "
    "llama4_text ernie4_5_moe glm4_moe minimax_m2 hunyuan_v1_moe gemma4_text nemotron_h flex_olmo zaya"
).split()


def traced(kind, layer, change=None):
    """A block, its layer, what its norms read and returned, and what its experts were given."""
    built = probes.build(kind)
    if change is not None:
        change(built.model)
    module, given = built.model.get_submodule(layer), {}

    def routing(_, args, kwargs):
        given["routing"] = (*args, *kwargs.values())

    handle = module.mlp.experts.register_forward_pre_hook(routing, with_kwargs=True)
    names = [f"{layer}.{name}" for name in ("input_layernorm", "post_attention_layernorm")]
    lens = nl.load(built.model, probe=built.probes[0].inputs)
    with Notes(built.model, names) as notes:
        trace = lens.trace({"input_ids": built.probes[0].inputs["input_ids"][:, :4].clamp_min(3)}, fields=FIELDS)
    handle.remove()
    block = trace.self_attention[1]
    parts = with_own(attention_parts(block), notes.of[names[0]].read)
    norm = module.post_attention_layernorm
    read = rms_norm(parts, notes.of[names[1]].read, norm.weight, norm.variance_epsilon)
    _, chosen, weights = given["routing"]
    return block, module.mlp, parts, read, notes.of[names[1]].returned, chosen, weights.double()


def experts_by_loops(read, state, chosen, weights, expert):
    """Σ_e r_ie · (every part of token i in expert e)."""
    batch, tgt = read.shape[:2]
    written = torch.zeros_like(read)
    for b in range(batch):
        for i in range(tgt):
            row = b * tgt + i
            for e, weight in zip(chosen[row].tolist(), weights[row], strict=True):
                written[b, i] += weight * expert(e, state[b, i], read[b, i])
    return written


def gated(gate, up, down, rule):
    """One expert: the state that it reads and the parts of it, to what becomes of each part."""

    def part(x, c):
        g, u = gate @ x, up @ x
        frozen = silu(g) * (c @ up.mT)
        if rule == "gate":
            return frozen @ down.mT
        return (frozen + silu(g) / g * (c @ gate.mT) * u) @ down.mT / 2

    return part


def stacked(experts, rule):
    gate, up = experts.gate_up_proj.detach().double().chunk(2, dim=1)
    down = experts.down_proj.detach().double()
    return lambda e, x, c: gated(gate[e], up[e], down[e], rule)(x, c)


def same(ours, expected):
    torch.testing.assert_close(ours.double(), expected, rtol=1e-5, atol=1e-6)


def implemented(how):
    def change(model):
        for module in model.modules():
            if hasattr(module, "config"):
                module.config._experts_implementation = how

    return change


@pytest.mark.parametrize("how", ["grouped_mm", "batched_mm", "eager"])
def test_mixtral_is_its_experts_written_out_however_they_are_run(how):
    block, mlp, parts, read, state, chosen, weights = traced("mixtral", "layers.1", implemented(how))
    for name, rule in (("output_norms", "gate"), ("output_norms_both", "both")):
        whole = parts + experts_by_loops(read, state, chosen, weights, stacked(mlp.experts, rule))
        same(block[name], whole.norm(dim=-1))
        if rule == "gate":
            same(block.mixing_output, mixing(whole))


def test_deepseek_adds_what_its_shared_experts_write():
    block, mlp, parts, read, state, chosen, weights = traced("deepseek_v3", "layers.1")
    shared = [getattr(mlp.shared_experts, f"{name}_proj").weight.detach().double() for name in ("gate", "up", "down")]
    for name, rule in (("output_norms", "gate"), ("output_norms_both", "both")):
        written = experts_by_loops(read, state, chosen, weights, stacked(mlp.experts, rule))
        every = torch.zeros_like(chosen[:, :1])
        own = gated(*shared, rule)
        once = torch.ones_like(weights[:, :1])
        alone = experts_by_loops(read, state, every, once, lambda _, x, c, own=own: own(x, c))
        same(block[name], (parts + written + alone).norm(dim=-1))


def test_qwen2_moe_gates_its_shared_expert_by_a_number_of_the_token():
    block, mlp, parts, read, state, chosen, weights = traced("qwen2_moe", "layers.1")
    shared = [getattr(mlp.shared_expert, f"{name}_proj").weight.detach().double() for name in ("gate", "up", "down")]
    number = (state.flatten(0, 1) @ mlp.shared_expert_gate.weight.detach().double().mT).sigmoid()
    written = experts_by_loops(read, state, chosen, weights, stacked(mlp.experts, "gate"))
    every = torch.zeros_like(chosen[:, :1])
    alone = experts_by_loops(read, state, every, number, lambda _, x, c: gated(*shared, "gate")(x, c))
    same(block.output_norms, (parts + written + alone).norm(dim=-1))


@pytest.mark.parametrize("limit", [7.0, 0.6])
def test_gpt_oss_clamps_its_gate_and_its_units(limit):
    def change(model):
        for layer in model.layers:
            layer.mlp.experts.limit = limit
            layer.mlp.experts.gate_up_proj.data *= 20

    block, mlp, parts, read, state, chosen, weights = traced("gpt_oss", "layers.1", change)
    both, bias = mlp.experts.gate_up_proj.detach().double(), mlp.experts.gate_up_proj_bias.detach().double()
    down = mlp.experts.down_proj.detach().double()
    bitten = []

    def expert(e, x, c, rule):
        sums = x @ both[e] + bias[e]
        gate, up = sums[::2], sums[1::2]
        kept, limited = gate.clamp(max=limit), up.clamp(-limit, limit)
        bitten.append(bool((limited != up).any()))
        active = kept * (1.702 * kept).sigmoid()
        c_gate, c_up = (c @ both[e])[:, ::2], (c @ both[e])[:, 1::2]
        frozen = active * (limited / up) * c_up
        if rule == "gate":
            return frozen @ down[e]
        return (frozen + (active / gate) * c_gate * (limited + 1)) @ down[e] / 2

    for name, rule in (("output_norms", "gate"), ("output_norms_both", "both")):
        written = experts_by_loops(read, state, chosen, weights, lambda e, x, c, rule=rule: expert(e, x, c, rule))
        same(block[name], (parts + written).norm(dim=-1))
    assert any(bitten)


@pytest.mark.parametrize("kind", EXACT)
def test_every_layer_with_experts_is_exact(kind):
    built = probes.build(kind)
    lens = nl.load(built.model, probe=built.probes[0].inputs)
    trace = lens.trace(built.probes[0].inputs, fields=["output_norms"])
    assert all(bool(block.output_norms.isfinite().all()) for block in trace.self_attention)
