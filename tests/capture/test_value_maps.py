"""W_V and b_V of hand-made attention: found however the values were made, or refused with the reason."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from transformers.pytorch_utils import Conv1D

from normlens.capture import run, value_maps
from normlens.capture.value_maps import ValueMap, Watch

HEADS, DIM, WIDTH = 3, 4, 12
TEXT = torch.randn(2, 5, WIDTH, generator=torch.Generator().manual_seed(0))


class Attention(nn.Module):
    """Textbook attention. `make` says how the values of shape (batch, head, src, head_dim) are made."""

    def __init__(self, make):
        super().__init__()
        torch.manual_seed(0)
        self.query_key, self.value, self.out = (nn.Linear(WIDTH, n * WIDTH) for n in (2, 1, 1))
        self.fused, self.convolved = Conv1D(3 * WIDTH, WIDTH), nn.Conv1d(WIDTH, WIDTH, 1, groups=2)
        self.down, self.up, self.one = nn.Linear(WIDTH, 5), nn.Linear(5, WIDTH), nn.Linear(WIDTH, DIM)
        self.matrix, self.shift = nn.Parameter(torch.randn(WIDTH, HEADS, DIM)), nn.Parameter(torch.randn(WIDTH))
        nn.init.normal_(self.fused.bias)
        self.make = make

    def forward(self, x):
        q, k = (split(part) for part in self.query_key(x).chunk(2, -1))
        weights = torch.softmax(q @ k.mT / DIM**0.5, -1)
        context = weights @ self.make(self, x)
        return x + self.out(context.transpose(1, 2).flatten(2))


class Model(nn.Module):
    """Blocks one after the other."""

    def __init__(self, *makes):
        super().__init__()
        self.layers = nn.ModuleList(Attention(make) for make in makes)
        self.eval()

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def split(tensor):
    return tensor.unflatten(-1, (HEADS, DIM)).transpose(1, 2)


def by_head(matrix):
    """(model, head * head_dim) to (head, model, head_dim)."""
    return matrix.unflatten(1, (HEADS, DIM)).transpose(0, 1)


def plain(m):
    return by_head(m.value.weight.T), m.value.bias.view(HEADS, DIM)


WAYS = {
    "a matrix": (lambda m, x: split(m.value(x)), plain),
    "copied": (lambda m, x: split(m.value(x).clone()).contiguous(), plain),
    "fused with queries and keys": (
        lambda m, x: split(m.fused(x).chunk(3, -1)[2]),
        lambda m: (by_head(m.fused.weight[:, -WIDTH:]), m.fused.bias[-WIDTH:].view(HEADS, DIM)),
    ),
    "heads innermost": (
        lambda m, x: m.value(x).unflatten(-1, (DIM, HEADS)).permute(0, 3, 1, 2),
        lambda m: (m.value.weight.T.unflatten(1, (DIM, HEADS)).permute(2, 0, 1), m.value.bias.view(DIM, HEADS).T),
    ),
    "positions first": (lambda m, x: split(m.value(x.transpose(0, 1)).transpose(0, 1)), plain),
    "positions turned round": (lambda m, x: split(m.value(x).flip(1)), plain),
    "in two calls": (lambda m, x: split(torch.cat([m.value(x[:, :2]), m.value(x[:, 2:])], dim=1)), plain),
    "padding emptied": (lambda m, x: split(m.value(x) * torch.tensor([1.0, 1, 1, 1, 0])[:, None]), plain),
    "one head for all": (
        lambda m, x: m.one(x)[:, None].expand(-1, HEADS, -1, -1),
        lambda m: (m.one.weight.T.expand(HEADS, -1, -1), m.one.bias.expand(HEADS, -1)),
    ),
    "a product with a parameter": (
        lambda m, x: split(x @ m.value.weight.mT),
        lambda m: (by_head(m.value.weight.T), None),
    ),
    "an einsum": (
        lambda m, x: torch.einsum("bsm,mhd->bhsd", x, m.matrix),
        lambda m: (m.matrix.transpose(0, 1), None),
    ),
    "a grouped convolution": (
        lambda m, x: split(m.convolved(x.mT).mT),
        lambda m: (
            by_head(torch.block_diag(*m.convolved.weight[..., 0].chunk(2)).T),
            m.convolved.bias.view(HEADS, DIM),
        ),
    ),
    "a bias added later": (
        lambda m, x: split(functional.linear(x, m.value.weight)) + m.shift.view(HEADS, 1, DIM),
        lambda m: (by_head(m.value.weight.T), m.shift.view(HEADS, DIM)),
    ),
}
REFUSED = {
    "normalised": (lambda m, x: functional.layer_norm(split(m.value(x)), (DIM,)), "no matrix wrote its values"),
    "scaled": (lambda m, x: split(m.value(x)) * 1.7, "no matrix wrote its values"),
    "mixed": (lambda m, x: split(m.value(x) + m.fused(x)[..., :WIDTH]), "no matrix wrote its values"),
    "one position changed": (
        lambda m, x: split(torch.cat([m.value(x)[:, 1:], m.shift.expand(2, 1, -1)], dim=1)),
        "no matrix wrote its values",
    ),
    "latent": (
        lambda m, x: split(m.up(functional.rms_norm(m.down(x), (5,)))),
        "two steps, by 'layers.0.down.weight' and then 'layers.0.up.weight'",
    ),
    "empty": (lambda m, x: torch.zeros(2, HEADS, 5, DIM), "all 0"),
}


def maps_of(model, x=TEXT):
    found = []
    value_maps(model, {"x": x}, lambda attended, value_map: found.append((attended, value_map)))
    return found


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_make_values_shows_its_matrix(way):
    make, expected = WAYS[way]
    model = Model(make)
    ((_, found),) = maps_of(model)
    assert isinstance(found, ValueMap), found
    weight, bias = expected(model.layers[0])
    assert torch.equal(found.weight, weight)
    assert (found.bias is None) == (bias is None)
    if bias is not None:
        torch.testing.assert_close(found.bias, bias, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", REFUSED)
def test_what_is_no_linear_map_is_refused_with_the_reason(way):
    make, reason = REFUSED[way]
    ((_, found),) = maps_of(Model(make))
    assert isinstance(found, str)
    assert reason in found


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("way", ["a matrix", "fused with queries and keys", "a bias added later"])
def test_any_precision(way, dtype):
    make, expected = WAYS[way]
    model = Model(make).to(dtype)
    ((_, found),) = maps_of(model, TEXT.to(dtype))
    assert isinstance(found, ValueMap), found
    assert torch.equal(found.weight, expected(model.layers[0])[0])


def test_every_block_has_its_own_map():
    model = Model(*(WAYS[way][0] for way in ("a matrix", "fused with queries and keys", "a matrix")))
    with torch.no_grad():
        for layer in model.layers:
            layer.value.weight.add_(torch.randn(WIDTH, WIDTH))
    found = [value_map for _, value_map in maps_of(model)]
    assert [value_map.matrix for value_map in found] == [
        "layers.0.value.weight",
        "layers.1.fused.weight",
        "layers.2.value.weight",
    ]
    for layer, value_map in zip(model.layers[::2], found[::2], strict=True):
        assert torch.equal(value_map.weight, plain(layer)[0])


def test_a_block_may_take_the_values_of_the_block_before():
    kept = []
    model = Model(lambda m, x: kept.append(split(m.value(x))) or kept[-1], lambda m, x: kept[-1])
    assert [value_map.matrix for _, value_map in maps_of(model)] == ["layers.0.value.weight"] * 2


def test_blocks_that_run_side_by_side_have_their_own_maps():
    """Both write their values before either looks at them."""
    torch.manual_seed(0)
    values, out = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2)), nn.Linear(WIDTH, WIDTH)

    def side_by_side(x):
        written = [split(value(x)) for value in values]
        weights = torch.softmax(split(x) @ split(x).mT, -1)
        return sum(out((weights @ v).transpose(1, 2).flatten(2)) for v in written)

    found = [value_map for _, value_map in maps_of(Wrapped(side_by_side, nn.ModuleList([values, out])))]
    assert [value_map.matrix for value_map in found] == ["module.0.0.weight", "module.0.1.weight"]


def test_torch_multi_head_attention_shows_its_matrix():
    torch.manual_seed(0)
    inner = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
    nn.init.normal_(inner.in_proj_bias)
    ((_, found),) = maps_of(Wrapped(lambda x: inner(x, x, x)[0], inner))
    assert found.matrix == "module.in_proj_weight"
    assert torch.equal(found.weight, by_head(inner.in_proj_weight[-WIDTH:].T))
    assert torch.equal(found.bias, inner.in_proj_bias[-WIDTH:].view(HEADS, DIM))


def test_the_map_applied_to_what_its_matrix_read_gives_the_values():
    for make, _ in WAYS.values():
        ((attended, found),) = maps_of(Model(make))
        values = torch.einsum("bsm,hmd->bhsd", TEXT, found.weight)
        values = values if found.bias is None else values + found.bias[:, None]
        real = attended.values.any(dim=-1, keepdim=True)
        turned = values.flip(2)
        near = [torch.allclose(v * real, attended.values, rtol=1e-4, atol=1e-5) for v in (values, turned)]
        assert any(near)


def test_columns_the_probe_cannot_tell_apart_are_not_guessed():
    """On an input of zeros every column shows only its bias, and here two heads have the same."""
    model = Model(WAYS["a matrix"][0])
    nn.init.ones_(model.layers[0].value.bias)
    ((_, found),) = maps_of(model, torch.zeros_like(TEXT))
    assert "cannot be told" in found


def test_watching_for_matrices_changes_nothing():
    model, watched, alone = Model(*(make for make, _ in WAYS.values())), [], []
    run(model, {"x": TEXT}, alone.append)
    watched = [attended for attended, _ in maps_of(model)]
    for left, right in zip(watched, alone, strict=True):
        assert torch.equal(left.weights, right.weights)
        assert torch.equal(left.output, right.output)
    assert torch.overrides._get_current_function_mode_stack() == []


def test_nothing_is_left_on_the_model_or_its_input():
    model = Model(*(make for make, _ in WAYS.values()))
    model.register_buffer("scale", torch.ones(WIDTH))
    before = {id(tensor): set(vars(tensor)) for tensor in (*model.parameters(), *model.buffers(), TEXT)}
    maps_of(model)
    assert {id(tensor): set(vars(tensor)) for tensor in (*model.parameters(), *model.buffers(), TEXT)} == before


def test_only_the_matrices_of_two_blocks_are_remembered():
    model, counts = Model(*[WAYS["a matrix"][0]] * 6), []
    with Watch(model) as watch:

        def count(attended):
            counts.append(len(watch.recent) + len(watch.earlier))
            watch.value_map(attended)

        run(model, {"x": TEXT}, count)
    assert counts == [3, 6, 6, 6, 6, 6]  # queries and keys, values, and the output matrix itself


class Wrapped(nn.Module):
    def __init__(self, job, module):
        super().__init__()
        self.module, self.job = module, job
        self.eval()

    def forward(self, x):
        return self.job(x)
