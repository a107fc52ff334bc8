"""Numbers that a model writes over, through views or into shared memory, are followed or refused."""

import pytest
import torch
from textbook import Textbook
from torch import nn

import normlens as nl

X = torch.randn(1, 4, 6, generator=torch.Generator().manual_seed(3))


def alpha(model, x):
    q, k = (model.split(part(x)) for part in (model.q, model.k))
    return torch.softmax(q @ k.mT / model.dim**0.5, -1)


def right_or_refused(model, x=X):
    try:
        trace = nl.load(model, probe={"x": x}).trace({"x": x})
    except nl.NormlensError:
        return
    (block,) = trace.blocks
    assert (block.kind, block.tgt, block.src) == ("self", "x", "x")
    torch.testing.assert_close(block.weights, alpha(model, x))


class ValuesTurnedThroughAView(Textbook):
    def order(self, q, k, v):
        flat = v.flatten(0, 1)
        v.view(flat.shape).copy_(flat.flip(1))
        return q, k, v


class KeysScaledThroughAView(Textbook):
    def order(self, q, k, v):
        k = k.clone()
        k[..., :1].mul_(1.0)
        return q, k, v


class AllRolled(Textbook):
    """`roll` without an axis goes over all cells: here by one token."""

    def order(self, q, k, v):
        return q, *(self.split(rows.transpose(1, 2).flatten(2).roll(self.width)) for rows in (k, v))


class WeightsZeroedAfterwards(Textbook):
    def mix(self, weights, v):
        mixed = super().mix(weights, v)
        weights.zero_()
        return mixed


class ChannelsFirst(Textbook):
    """The input is (batch, channel, position); keys and values stand in reverse."""

    def forward(self, x):
        rows = x.mT
        q, k, v = self.split(self.q(rows)), self.split(self.k(rows.flip(1))), self.split(self.v(rows.flip(1)))
        return rows + self.close(self.mix(self.weigh(self.score(q, k)), v), rows)


@pytest.mark.parametrize("case", [ValuesTurnedThroughAView, KeysScaledThroughAView, AllRolled, WeightsZeroedAfterwards])
@pytest.mark.parametrize("inference", [False, True], ids=["", "inference mode"])
def test_what_is_written_over_is_followed_or_refused(case, inference):
    with torch.inference_mode(inference):
        right_or_refused(case())


def test_a_position_axis_that_is_the_last_one_is_not_taken_for_ordered():
    model, x = ChannelsFirst(), X.mT.contiguous()
    try:
        (block,) = nl.load(model, probe={"x": x}).trace({"x": x}).blocks
    except nl.NormlensError:
        return
    torch.testing.assert_close(block.weights, alpha(model, X))


def test_an_embedding_changed_in_place_stays_the_text():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.inner, self.shift = nn.Embedding(20, 6), Textbook(), nn.Parameter(torch.randn(6))
            self.eval()

        def forward(self, input_ids):
            x = self.embed(input_ids)
            x[:, 0].add_(self.shift)
            return self.inner(x)

    ids = {"input_ids": torch.tensor([[3, 4, 5, 6]])}
    (block,) = nl.load(Model(), probe=ids).trace(ids).blocks
    assert (block.kind, block.tgt, block.src) == ("self", "text", "text")


class Behind(nn.Module):
    """A further matrix behind the attention: in the parent, as a buffer, behind torch's own."""

    def __init__(self, inner, matrix):
        super().__init__()
        self.inner, self.matrix = inner, matrix
        self.register_buffer("turn", torch.randn(6, 6, generator=torch.Generator().manual_seed(5)))
        self.eval()

    def forward(self, x):
        y = self.inner(x)
        return x + (self.matrix(y) if self.matrix is not None else y @ self.turn)


@pytest.mark.parametrize("way", ["in the parent", "a buffer"])
def test_a_matrix_behind_the_attention_is_part_of_f_or_refused(way):
    torch.manual_seed(0)
    inner, matrix = Textbook(), nn.Linear(6, 6) if way == "in the parent" else None
    inner.forward = inner.attend
    model = Behind(inner, matrix)
    try:
        (block,) = nl.load(model, probe={"x": X}).trace({"x": X}, fields=("weights", "transformed_norms")).blocks
    except nl.NormlensError:
        return
    whole = matrix.weight if matrix is not None else model.turn.T
    values = inner.split(inner.v(X))
    sent = torch.einsum("bhjd,mhd->bhjm", values, (whole @ inner.out.weight).unflatten(1, (inner.heads, inner.dim)))
    torch.testing.assert_close(block.transformed_norms, sent.norm(dim=-1))


def test_a_matrix_behind_torch_s_own_attention_is_refused():
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(6, 2, batch_first=True)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.behind = attention, nn.Linear(6, 6)
            self.eval()

        def forward(self, x):
            return x + self.behind(self.attention(x, x, x)[0])

    with pytest.raises(nl.ReconstructionError, match="another matrix"):
        nl.load(Model(), probe={"x": X})


def test_texts_padded_in_front_give_what_they_give_alone():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    ids = {"vocab_size": 60, "bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    lens = nl.load(GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=32, **ids)).eval())
    whole = torch.tensor([[0, 0, 5, 6, 7], [8, 9, 10, 11, 12]])
    batch = lens.trace({"input_ids": whole, "attention_mask": (whole > 0).long()})
    alone = lens.trace({"input_ids": whole[:1, 2:]})
    for block, single in zip(batch[0].blocks, alone.blocks, strict=True):
        torch.testing.assert_close(block.weights, single.weights)
