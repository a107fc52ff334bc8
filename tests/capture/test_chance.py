"""A model whose output depends on chance is refused, whoever draws the random numbers."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from transformers import BertConfig, BertModel

import normlens as nl
from normlens.capture import examine

WIDTH, HEADS = 12, 3
TEXT = torch.randn(2, 5, WIDTH, generator=torch.Generator().manual_seed(0))


class Attention(nn.Module):
    def __init__(self, disturb):
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.out, self.disturb = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), disturb
        self.eval()

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        weights = self.disturb(torch.softmax(q @ k.mT / 2, -1))
        return self.out((weights @ v).transpose(1, 2).flatten(2))


WAYS = {
    "dropout that never sleeps": lambda weights: functional.dropout(weights, 0.5),
    "a number from torch": lambda weights: weights * torch.rand(()),
    "a number from numpy": lambda weights: weights * np.random.rand(),
    "a number from Python": lambda weights: weights * random.random(),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_random_output_is_refused(way):
    examination = examine(Attention(WAYS[way]), {"x": TEXT})
    assert "its output is random: two runs differ by" in examination.reason


def test_numbers_drawn_for_nothing_do_no_harm():
    assert examine(Attention(lambda weights: weights + 0 * torch.rand(())), {"x": TEXT}).exact


def test_the_caller_s_random_numbers_are_left_alone():
    """Not asked of Python's own, which the type checker of these tests draws from."""
    model = Attention(WAYS["a number from numpy"])
    torch.manual_seed(3), np.random.seed(3)
    expected = torch.rand(()), np.random.rand()
    torch.manual_seed(3), np.random.seed(3)
    examine(model, {"x": TEXT})
    assert (torch.rand(()), np.random.rand()) == expected


def test_one_part_in_training_mode_is_enough_to_refuse():
    options = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = BertModel(BertConfig(**options, intermediate_size=16)).eval()
    lens = nl.load(model)
    model.encoder.layer[1].attention.train()
    with pytest.raises(nl.ReconstructionError, match="training mode"):
        lens.trace([1, 2, 3])
    with pytest.raises(nl.LoadError, match=r"training mode in \d+ of its modules, first in 'encoder.layer.1"):
        nl.load(model)
    assert model.encoder.layer[1].attention.training
    assert not model.training
