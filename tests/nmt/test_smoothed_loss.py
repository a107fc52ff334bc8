"""The loss that never holds all logits is torch's own label-smoothed cross-entropy, value and gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from normlens.nmt.model import ROWS, smoothed_loss


@given(
    rows=st.sampled_from([1, 7, ROWS, ROWS + 1, 2 * ROWS + 3]),
    vocabulary=st.integers(2, 40),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
    scale=st.sampled_from([0.1, 1.0, 100.0]),
)
def test_it_is_the_cross_entropy_of_torch(rows, vocabulary, smoothing, scale):
    torch.manual_seed(rows + vocabulary)
    hidden = (scale * torch.randn(rows, 5, dtype=torch.float64)).requires_grad_()
    weight = torch.randn(vocabulary, 5, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(0, vocabulary, (rows,))
    ours = smoothed_loss(hidden, weight, labels, smoothing=smoothing)
    theirs = torch.nn.functional.cross_entropy(hidden @ weight.T, labels, label_smoothing=smoothing)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(3 * ours, (hidden, weight)), torch.autograd.grad(3 * theirs, (hidden, weight))
    )


def test_huge_logits_stay_finite():
    hidden = torch.full((3, 2), 1e4, requires_grad=True)
    weight = torch.tensor([[1.0, 1.0], [-1.0, -1.0]])
    loss = smoothed_loss(hidden, weight, torch.tensor([0, 0, 1]), smoothing=0.0)
    assert float(loss.detach()) == pytest.approx(4e4 / 3, rel=1e-6)
