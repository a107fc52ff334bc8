"""The weights that are read are those the model itself returns, cell by cell, or the block is refused."""

import pytest
import torch
from torch import nn
from transformers.utils import ModelOutput

from normlens import probes
from normlens.capture import examine

HEADS, WIDTH = 3, 12
TEXT = torch.randn(2, 5, WIDTH, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", "bert albert gpt2 llama t5 bart vit clip deberta xlnet qwen3".split())
def test_they_agree_for_models_that_return_them(kind):
    built = probes.build(kind)
    examination = examine(built.model, built.probes[0].inputs)
    assert {block.own for block in examination.blocks} == {"agrees"}
    assert examination.exact


class Attention(nn.Module):
    """Two layers of attention that return `report(weights, scores)`, the second perhaps in another order of keys."""

    def __init__(self, report, *, order=None):
        super().__init__()
        torch.manual_seed(0)
        self.qkv = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2))
        self.out = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.report, self.order = report, order
        self.eval()

    def forward(self, x, output_attentions=False):
        returned = []
        for layer, (qkv, out) in enumerate(zip(self.qkv, self.out, strict=True)):
            q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in qkv(x).chunk(3, -1))
            scores = 3 * q @ k.mT
            weights = torch.softmax(scores, -1)
            returned.append(self.report(weights, scores))
            if self.order is not None and layer:
                weights, v = weights[..., self.order], v[:, :, self.order]
            x = x + out((weights @ v).transpose(1, 2).flatten(2))
        return ModelOutput(last_hidden_state=x, attentions=tuple(returned) if output_attentions else None)


def test_keys_in_another_order_are_put_back_and_agree():
    """Inside, column j is not token j; in what we show it is, as in what the model returns."""
    assert [b.own for b in examine(Attention(lambda w, s: w, order=[4, 2, 0, 1, 3]), {"x": TEXT}).blocks] == [
        "agrees"
    ] * 2


def test_a_block_that_the_model_contradicts_is_refused():
    first, second = examine(Attention(lambda w, s: w.flip(-1)), {"x": TEXT}).blocks
    assert (second.exact, second.own) == (False, "differs")
    assert "from those the model returns in attentions[1]" in second.reason
    assert not first.exact


OTHER = {
    "scores": (lambda w, s: s, "other", "no probabilities"),
    "the mean over heads": (lambda w, s: w.mean(1), "other", "the mean over heads"),
    "another shape": (lambda w, s: w.transpose(0, 1), "other", "the block has"),
}


@pytest.mark.parametrize("way", OTHER)
def test_what_else_a_model_returns_is_said_and_is_no_refusal(way):
    report, own, reason = OTHER[way]
    examination = examine(Attention(report), {"x": TEXT})
    assert examination.exact
    for block in examination.blocks:
        assert block.own == own
        assert reason in block.own_reason


def test_a_model_that_returns_none_is_exact_without():
    model = Attention(lambda w, s: w)
    model.forward = lambda x: Attention.forward(model, x)
    (first, _) = examine(model, {"x": TEXT}).blocks
    assert (first.own, first.own_reason) == ("none", "the model returns no attentions")
