"""A module that calls itself attention and shows no softmax is refused, unless all it does is done row by row."""

import numpy as np
import pytest
import torch
from torch import nn

from normlens.capture import examine


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        return self.o(torch.softmax(self.q(x) @ self.k(x).mT, -1) @ self.v(x))


class ExtraAttention(nn.Module):
    """It stands behind one that attends, and does whatever it is given."""

    def __init__(self, work):
        super().__init__()
        self.work, self.matrix, self.norm = work, nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        return self.work(self, x)


class Both(nn.Module):
    def __init__(self, work):
        super().__init__()
        self.first, self.extra = Attends(), ExtraAttention(work)

    def forward(self, x):
        return self.extra(x + self.first(x))


def matrix_and_norm(module, x):
    return module.norm(torch.relu(module.matrix(x)) + x)


def running_sum(module, x):
    return module.norm(x.cumsum(1))


def over_positions(module, x):
    return x + module.matrix(x.mT.contiguous()).mT


def across_positions(module, x):
    return x + torch.einsum("bid,bjd->bij", x, x) @ x


def in_numpy(module, x):
    return torch.from_numpy(np.cumsum(x.numpy(), axis=1))


def in_python(module, x):
    return x + torch.tensor(x.flip(1).tolist())


@pytest.mark.parametrize("work", [running_sum, over_positions, across_positions, in_numpy, in_python])
def test_what_brings_positions_together_is_refused(work):
    blocks = examine(Both(work).eval(), {"x": torch.randn(2, 8, 8)}).blocks
    assert [block.reason for block in blocks] == [None, "no softmax was seen in this ExtraAttention"]


def test_a_matrix_and_a_norm_are_no_attention_whatever_they_are_called():
    (block,) = examine(Both(matrix_and_norm).eval(), {"x": torch.randn(2, 8, 8)}).blocks
    assert block.exact
