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
        self.up, self.down, self.gate = nn.Linear(8, 16), nn.Linear(16, 8), nn.Parameter(torch.randn(8))

    def attend(self, x):
        q, k, v = (matrix(x).unflatten(-1, (2, -1)).transpose(1, 2) for matrix in (self.q, self.k, self.v))
        return self.o((torch.softmax(q @ k.mT / 2, -1) @ v).transpose(1, 2).flatten(2))

    def feed(self, x):
        return self.down(torch.relu(self.up(x)))

    def summed(self, x):
        return x + self.attend(self.first(x))

    def forward(self, x):
        return self.twist(self, x)


def in_place(layer, x):
    residual = x.clone()
    residual += layer.attend(layer.first(x))
    residual += layer.feed(layer.second(residual))
    return residual


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


EXACT = [in_place, gated_by_its_size]
REFUSED = [gated_by_itself, beside_mixes_tokens, feeds_the_token_before, adds_up_over_tokens, normed_over_tokens]
REFUSED += [units_compete]


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
