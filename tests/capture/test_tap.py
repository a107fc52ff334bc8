"""The tap on hand-made attention: every way of writing it is read alike, and what cannot be split is refused."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from normlens.capture import examine, run

HEADS, DIM, WIDTH = 3, 4, 12
TEXT = torch.randn(2, 5, WIDTH, generator=torch.Generator().manual_seed(0))


class Attention(nn.Module):
    """Textbook attention. `mix` says how α meets the values, `close` what follows."""

    def __init__(self, mix, close=None):
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.extra, self.matrix = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.randn(WIDTH, HEADS, DIM))
        self.mix, self.close = mix, close or (lambda module, context: module.out(merged(context)))

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (HEADS, DIM)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        return self.close(self, self.mix(q, k, v))


def merged(context):
    return context.transpose(1, 2).reshape(context.shape[0], context.shape[2], -1)


def alpha(q, k):
    return torch.softmax(q @ k.mT / DIM**0.5, -1)


def by_bmm(q, k, v):
    flat = [part.reshape(-1, *part.shape[2:]) for part in (alpha(q, k), v)]
    return torch.bmm(*flat).view(v.shape)


def by_windows(q, k, v):
    parts = [alpha(q[:, :, a:b], k[:, :, a:b]) @ v[:, :, a:b] for a, b in ((0, 2), (2, 5))]
    return torch.cat(parts, dim=2)


def with_a_sink(q, k, v):
    scores = torch.cat([q @ k.mT, torch.zeros(*q.shape[:3], 1)], -1)
    return functional.dropout(torch.softmax(scores, -1)[..., :-1], 0.1, training=False) @ v


WAYS = {
    "matmul": lambda q, k, v: torch.matmul(alpha(q, k), v),
    "operator": lambda q, k, v: alpha(q, k).to(v.dtype) @ v,
    "values first": lambda q, k, v: (v.mT @ alpha(q, k).mT).mT,
    "bmm": by_bmm,
    "einsum": lambda q, k, v: torch.einsum("bhij,bhjd->bhid", alpha(q, k), v),
    "einsum of a list": lambda q, k, v: torch.einsum("bhij,bhjd->bhid", [alpha(q, k), v]),
    "fused": functional.scaled_dot_product_attention,
    "fused causal": lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
    "fused scaled": lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, scale=0.1),
    "fused masked": lambda q, k, v: functional.scaled_dot_product_attention(
        q, k, v, attn_mask=torch.tensor([True, True, False, True, True])[None, None, None]
    ),
    "grouped": lambda q, k, v: functional.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True),
    "shared values": lambda q, k, v: alpha(q, k) @ v[:, :1],
    "windows": by_windows,
    "sink": with_a_sink,
}
CLOSINGS = {
    "einsum": lambda m, c: torch.einsum("bhid,mhd->bim", c, m.matrix),
    "addmm": lambda m, c: torch.addmm(m.out.bias, merged(c).view(-1, WIDTH), m.out.weight).view(TEXT.shape),
    "matmul": lambda m, c: merged(c) @ m.out.weight,
    "convolution": lambda m, c: functional.conv1d(merged(c).mT, m.out.weight[..., None], m.out.bias).mT,
    "grouped convolution": lambda m, c: functional.conv1d(merged(c).mT, m.out.weight[:, :4, None], groups=3).mT,
    "positions first": lambda m, c: m.out(merged(c).transpose(0, 1)).transpose(0, 1),
    "a gate": lambda m, c: m.out(merged(c) * torch.sigmoid(m.extra(TEXT))),
    "a norm": lambda m, c: m.out(functional.layer_norm(merged(c), (WIDTH,))),
    "one position": lambda m, c: m.out(merged(c)[:, :1]),
}
REFUSED = {
    "a gate of itself": (lambda m, c: m.out(merged(c) * torch.sigmoid(m.extra(merged(c)))), "two matrices"),
    "an activation": (lambda m, c: m.out(functional.gelu(merged(c))), "gelu"),
    "two readers": (lambda m, c: m.out(merged(c)) + m.extra(merged(c)), "two matrices"),
    "a sum in place": (lambda m, c: m.out(merged(c).add_(TEXT)), "a sum"),
    "no matrix": (lambda m, c: merged(c), "never reaches"),
    "mixed heads": (
        lambda m, c: m.out(merged(c).roll(1, -1)[:, :, : WIDTH - 1].repeat(1, 1, 2)[..., :WIDTH]),
        "repeat",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_the_product_is_exact(way):
    examination = examine(Attention(WAYS[way]).eval(), {"x": TEXT})
    assert [b.reason for b in examination.blocks] == [None]
    assert examination.exact
    assert examination.blocks[0].heads == HEADS
    assert examination.blocks[0].out == "out.weight"


@pytest.mark.parametrize("way", CLOSINGS)
def test_every_way_to_write_the_projection_is_exact(way):
    examination = examine(Attention(WAYS["matmul"], CLOSINGS[way]).eval(), {"x": TEXT})
    assert [b.reason for b in examination.blocks] == [None]
    assert examination.exact


@pytest.mark.parametrize("way", REFUSED)
def test_what_cannot_be_split_is_refused_with_the_reason(way):
    close, reason = REFUSED[way]
    examination = examine(Attention(WAYS["matmul"], close).eval(), {"x": TEXT})
    assert len(examination.blocks) == 1
    assert not examination.exact
    assert reason in examination.blocks[0].reason


def test_weights_are_the_ones_that_multiplied_the_values():
    model, blocks = Attention(WAYS["sink"]).eval(), []
    run(model, {"x": TEXT}, blocks.append)
    assert (blocks[0].weights.sum(-1) < 1).all()


def test_windows_come_back_as_one_block_that_looks_nowhere_else():
    blocks = []
    run(Attention(by_windows).eval(), {"x": TEXT}, blocks.append)
    (block,) = blocks
    assert block.weights.shape == (2, HEADS, 5, 5)
    assert block.weights[:, :, :2, 2:].abs().max() == 0


def test_a_softmax_over_experts_is_no_attention():
    model = nn.Sequential(nn.Linear(WIDTH, 4), nn.Softmax(-1))
    assert examine(Wrapped(model), {"x": TEXT}).blocks == ()


def test_attention_read_by_hand_is_refused():
    """Weights that meet the values outside a product, as in deformable attention."""
    weighted = Attention(lambda q, k, v: (alpha(q, k)[..., None] * v[:, :, None]).sum(-2))
    (block,) = examine(weighted.eval(), {"x": TEXT}).blocks
    assert "does not multiply the values" in block.reason


def test_attention_without_a_softmax_is_not_passed_over():
    class LinearAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, -1)
            return functional.elu(q) @ (functional.elu(k).mT @ v)

    (block,) = examine(Wrapped(LinearAttention()), {"x": TEXT}).blocks
    assert block.reason == "no softmax was seen in this LinearAttention"


@pytest.mark.parametrize("batch_first", [True, False])
def test_torch_multi_head_attention_is_exact(batch_first):
    torch.manual_seed(0)
    inner = nn.MultiheadAttention(WIDTH, HEADS, batch_first=batch_first).eval()
    nn.init.normal_(inner.out_proj.bias)
    nn.init.normal_(inner.in_proj_bias)
    examination = examine(Wrapped(lambda x: inner(x, x, x)[0], inner), {"x": TEXT})
    assert examination.exact
    assert examination.blocks[0].heads == HEADS


def test_a_watched_run_that_differs_is_refused():
    model = Attention(
        WAYS["matmul"], lambda m, c: m.out(merged(c)) + float(len(torch.overrides._get_current_function_mode_stack()))
    ).eval()
    assert "changes by" in examine(model, {"x": TEXT}).reason


class Wrapped(nn.Module):
    def __init__(self, job, module=None):
        super().__init__()
        self.module, self.job = module if module is not None else job, job
        self.eval()

    def forward(self, x):
        return self.job(x)
