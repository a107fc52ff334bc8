"""Hand-made layers, one twist each: what mixes tokens behind the attention is never split as if it did not."""

import pytest
import torch
from torch import nn

import normlens as nl

FIELDS = ("layer_inputs", "layer_outputs", "residual_norms", "output_norms", "mixing_output")


class Layer(nn.Module):
    """Attention of two heads, and what `twist` makes of it."""

    def __init__(self, twist):
        super().__init__()
        self.twist, self.first, self.second = twist, nn.LayerNorm(8), nn.LayerNorm(8)
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8) for _ in range(4))
        self.side, self.wide = nn.Linear(8, 16), nn.Parameter(torch.randn(16))
        self.up, self.down, self.gate = nn.Linear(8, 16), nn.Linear(16, 8), nn.Parameter(torch.randn(8))

    def attend(self, x):
        q, k, v = (matrix(x).unflatten(-1, (2, -1)).transpose(1, 2) for matrix in (self.q, self.k, self.v))
        return self.o((torch.softmax(q @ k.mT / 2, -1) @ v).transpose(1, 2).flatten(2))

    def feed(self, x):
        return self.down(torch.relu(self.up(x)))

    def fed(self, state):
        return state + self.feed(self.second(state))

    def summed(self, x):
        return x + self.attend(self.first(x))

    def forward(self, x):
        return self.twist(self, x)


def in_place(layer, x):
    residual = x.clone()
    residual += layer.attend(layer.first(x))
    residual += layer.feed(layer.second(residual))
    return residual


def in_place_at_the_end(layer, x):
    state = layer.summed(x)
    return layer.feed(layer.second(state)).add_(state)


def asked_with_positions(layer, x):
    """Queries, keys and values are computed from a sum; the residual is what was added up in it."""
    return layer.fed(x + layer.attend(x + torch.sin(x)))


def in_padded_windows(layer, x):
    """Windows of four positions; what is added to fill the last one up is thrown away behind the attention."""
    wide = torch.nn.functional.pad(layer.first(x), (0, 0, 0, -x.shape[1] % 4))
    windows = layer.attend(wide.reshape(-1, 4, 8)).reshape(wide.shape)
    return layer.fed(x + windows[:, : x.shape[1]])


def gate_and_units_on_an_axis(layer, x):
    """Both halves of the units stand on an axis of their own, and what they write is one row for a moment."""
    state = layer.summed(x)
    units = layer.up(layer.second(state)).view(*x.shape[:2], 2, 8)
    written = (torch.sigmoid(units[..., 0, :]) * units[..., 1, :]) @ layer.down.weight[:, :8].T
    return state + written.flatten().reshape(x.shape)


def halves_of_tokens(layer, x):
    """The same axis, but the gate is that of the token before."""
    state = layer.summed(x)
    units = layer.up(layer.second(state)).view(*x.shape[:2], 2, 8)
    return state + (torch.sigmoid(units[..., 0, :].roll(1, 1)) * units[..., 1, :]) @ layer.down.weight[:, :8].T


def flattened_in_another_order(layer, x):
    state = layer.summed(x)
    return state + layer.feed(layer.second(state)).flatten().reshape(x.shape[0], 8, -1).mT


def units_normed(layer, x):
    state = layer.summed(x)
    units = nn.functional.layer_norm(torch.relu(layer.up(layer.second(state))), (16,), layer.wide, layer.wide / 2)
    return state + layer.down(units)


def gated_units_normed(layer, x):
    state = layer.summed(x)
    units = torch.sigmoid(layer.up(state)) * layer.side(state)
    return state + layer.down(layer.wide * (units * (units.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt()))


def smaller_of_two(layer, x):
    """The smaller of two tensors, cell by cell, is a part of the activation."""
    state = layer.summed(x)
    units = layer.up(layer.second(state))
    return state + layer.down(torch.where(units > 0, units, torch.expm1(torch.min(units, units.new_zeros(())))))


def gated_by_its_size(layer, x):
    state = layer.summed(x)
    state = state * torch.sigmoid(state.square().mean(-1, keepdim=True))
    return state + layer.feed(state)


def gated_by_itself(layer, x):
    state = layer.summed(x)
    return state * torch.sigmoid(state @ layer.gate)[..., None] + layer.feed(state)


def beside_mixes_tokens(layer, x):
    return x + layer.attend(layer.first(x)) + layer.feed(layer.first(x)).cumsum(1)


def feeds_the_token_before(layer, x):
    state = layer.summed(x)
    return state + layer.feed(layer.second(state.roll(1, 1)))


def adds_up_over_tokens(layer, x):
    state = layer.summed(x)
    return state + torch.cumsum(layer.feed(state), 1)


def normed_over_tokens(layer, x):
    state = layer.summed(x)
    state = (state - state.mean(1, keepdim=True)) / state.std(1, keepdim=True)
    return state + layer.feed(state)


def units_compete(layer, x):
    state = layer.summed(x)
    return state + layer.down(torch.softmax(layer.up(layer.second(state)), -1))


def units_normed_over_tokens(layer, x):
    state = layer.summed(x)
    units = torch.sigmoid(layer.up(state)) * layer.side(state)
    return state + layer.down(units * (units.pow(2).mean(1, keepdim=True) + 1e-5).rsqrt())


EXACT = [in_place, in_place_at_the_end, gated_by_its_size, asked_with_positions, units_normed, gated_units_normed]
EXACT += [smaller_of_two, gate_and_units_on_an_axis]
REFUSED = [gated_by_itself, beside_mixes_tokens, feeds_the_token_before, adds_up_over_tokens, normed_over_tokens]
REFUSED += [units_compete, units_normed_over_tokens]
REFUSED += [halves_of_tokens, flattened_in_another_order]


def stacked(twist):
    torch.manual_seed(0)
    model = nn.Sequential(Layer(twist), Layer(twist)).eval()
    lens = nl.load(Named(model).eval(), probe={"x": torch.randn(2, 5, 8)})
    x = torch.randn(2, 6, 8)
    with torch.no_grad():
        states = [x, model[0](x.clone()), model(x.clone())]
    return lens.trace({"x": x}, fields=FIELDS).blocks, states


class Named(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)


@pytest.mark.parametrize("twist", EXACT)
def test_the_states_of_a_layer_are_those_of_the_model(twist):
    blocks, states = stacked(twist)
    for index, block in enumerate(blocks):
        torch.testing.assert_close(block["layer_inputs"], states[index], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(block["layer_outputs"], states[index + 1], rtol=1e-5, atol=1e-5)
        assert block.mixing_output.shape == (2, 6)


@pytest.mark.parametrize("twist", REFUSED)
def test_what_cannot_be_split_among_tokens_has_no_output_norms_and_says_why(twist):
    blocks, states = stacked(twist)
    for index, block in enumerate(blocks):
        torch.testing.assert_close(block["layer_inputs"], states[index], rtol=1e-5, atol=1e-5)
        assert not {"output_norms", "mixing_output", "layer_outputs"} & set(block.kept)
        with pytest.raises(nl.NormlensError, match=r"has no 'output_norms': \w{2}"):
            _ = block.output_norms


def blocks_of(model, x, fields=FIELDS):
    lens = nl.load(Named(model).eval(), probe={"x": torch.randn(2, 5, 8)})
    return lens.trace({"x": x}, fields=fields).blocks


def test_positions_that_fill_a_window_up_have_nothing_behind_the_attention():
    torch.manual_seed(0)
    model, x = nn.Sequential(Layer(in_padded_windows), Layer(in_padded_windows)).eval(), torch.randn(2, 6, 8)
    with torch.no_grad():
        states = [x, model[0](x), model(x)]
    for index, block in enumerate(blocks_of(model, x)):
        for name, state in (("layer_inputs", states[index]), ("layer_outputs", states[index + 1])):
            found = block[name].reshape(2, 8, 8)
            torch.testing.assert_close(found[:, :6], state, rtol=1e-5, atol=1e-5)
            assert not found[:, 6:].any()
        assert not block.output_norms.reshape(2, 8, 4)[:, 6:].any()
        assert not block.mixing_output.reshape(2, 8)[:, 6:].any()


def left_out_comes_back(layer, x):
    attended = layer.attend(layer.first(x))
    return torch.cat([layer.fed(x[:, :3] + attended[:, :3]), attended[:, 3:]], 1)


def left_out_of_what_a_view_writes(layer, x):
    attended = layer.attend(layer.first(x))
    attended[:, :3].add_(x[:, :3])
    return layer.fed(attended)


def left_out_of_what_is_set(layer, x):
    attended = layer.attend(layer.first(x))
    attended[:, :3] = layer.fed(attended[:, :3] + x[:, :3])
    return attended


def position_is_added(layer, x):
    """What the next layer reads has the position added; what goes on has not."""
    attended = layer.second(layer.attend(layer.first(x)))
    return attended + layer.down(torch.relu(layer.up(attended + layer.first(x))))


LEFT_OUT = [left_out_comes_back, left_out_of_what_a_view_writes, left_out_of_what_is_set, position_is_added]


@pytest.mark.parametrize("twist", LEFT_OUT)
def test_a_sum_that_does_not_take_all_of_the_attention_output_is_no_residual(twist):
    torch.manual_seed(0)
    for block in blocks_of(nn.Sequential(Layer(twist), Layer(twist)), torch.randn(2, 6, 8)):
        assert not {"layer_inputs", "residual_norms", "output_norms"} & set(block.kept)


class Pooled(nn.Module):
    """A layer, and a head that asks with one learned vector."""

    def __init__(self, finish):
        super().__init__()
        self.layer, self.head, self.query = Layer(in_place), Layer(in_place), nn.Parameter(torch.randn(1, 1, 8))
        self.finish = finish

    def forward(self, x):
        x = self.layer(x)
        query = self.query.expand(len(x), 1, 8)
        q, k, v = (m(y).unflatten(-1, (2, -1)).transpose(1, 2) for m, y in zip(self.qkv, (query, x, x), strict=True))
        pooled = self.head.o((torch.softmax(q @ k.mT / 2, -1) @ v).transpose(1, 2).flatten(2))
        return self.finish(self.head, pooled, query, x)

    @property
    def qkv(self):
        return self.head.q, self.head.k, self.head.v


def no_residual(head, pooled, query, x):
    return pooled + head.feed(head.second(pooled))


def learned_residual(head, pooled, query, x):
    return head.fed(query + pooled)


def lost_residual(head, pooled, query, x):
    return torch.cat([pooled, x[:, :1]], -1).unflatten(-1, (2, 8)).sum(-2)


def several_streams(head, pooled, query, x):
    """A residual of another width: four streams side by side."""
    streams = x[:, :4].flatten(1)[:, None]
    return streams + (pooled[:, :, None] * torch.tanh(x[:, :4, :1])[:, None]).flatten(2)


def test_a_pooling_head_has_no_layer_a_learned_residual_is_one_and_a_lost_one_is_lost():
    absent = {}
    for finish in (no_residual, learned_residual, lost_residual, several_streams):
        torch.manual_seed(0)
        *_, block = blocks_of(Pooled(finish), torch.randn(2, 6, 8))
        absent[finish] = block.absent.get("residual_norms")
        if finish is learned_residual:
            assert {"residual_norms", "output_norms"} <= set(block.kept)
    assert absent[no_residual].startswith("nothing is added to what it writes")
    assert absent[learned_residual] is None
    for finish in (lost_residual, several_streams):
        assert absent[finish].startswith("no sum with a residual was seen")
