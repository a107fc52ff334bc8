"""Which positions of a batch are padding is read off any form of attention mask, or kept when the model takes none."""

import torch
from torch import nn
from transformers import GPT2Config, GPT2Model

import normlens as nl
from normlens import probes
from normlens.models import Subject, encode, real_positions, separately

REAL = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()
IDS = torch.tensor([[5, 6, 7, 8, 9], [5, 6, 7, 0, 0]])


class Settings:
    pad_token_id, eos_token_id = 0, 1


def added(table, dtype=torch.float32):
    return torch.zeros(table.shape).masked_fill(~table, torch.finfo(dtype).min).to(dtype)


def test_a_key_masked_for_every_query_is_padding():
    table = REAL[:, None, None, :].expand(-1, 1, 5, -1)
    for mask in (table, table.long(), table.float(), added(table), added(table, torch.float16), table[:, 0]):
        assert torch.equal(real_positions(IDS, mask, Settings), REAL)


def test_padding_at_the_end_that_only_padding_attends_to_is_padding():
    causal = torch.ones(5, 5).tril().bool().expand(2, 1, -1, -1)
    assert torch.equal(real_positions(IDS, causal, Settings), REAL)
    itself = (causal & REAL[:, None, None, :]) | torch.eye(5).bool()
    assert torch.equal(real_positions(IDS, added(itself), Settings), REAL)


def test_the_last_token_of_a_text_is_no_padding_where_both_have_one_id():
    causal = torch.ones(5, 5).tril().bool().expand(1, 1, -1, -1)

    class Same:
        pad_token_id = eos_token_id = 0

    assert bool(real_positions(torch.tensor([[5, 6, 7, 8, 0]]), causal, Same).all())


def test_padding_tokens_that_others_attend_to_are_tokens():
    assert bool(real_positions(IDS, torch.ones(2, 1, 5, 5), Settings).all())


def test_a_mask_over_cached_keys_says_which_new_tokens_are_real():
    assert torch.equal(real_positions(IDS, torch.cat([torch.ones(2, 3), REAL], dim=1), Settings), REAL)


def test_a_mask_of_four_axes_leaves_no_padding_in_the_result():
    torch.manual_seed(0)
    model = GPT2Model(GPT2Config(n_embd=8, n_layer=2, n_head=2, vocab_size=20, pad_token_id=0, eos_token_id=1)).eval()
    causal = torch.ones(5, 5).tril().bool() & REAL[:, None, None, :]
    lens = nl.load(model)
    trace = lens.trace({"input_ids": IDS, "attention_mask": added(causal | torch.eye(5).bool())})
    assert [len(tokens) for tokens in trace.tokens] == [5, 3]
    expected = lens.trace(IDS[1, :3].tolist()).blocks[1].summed_norms
    torch.testing.assert_close(trace.blocks[1].summed_norms[1:, :3, :3], expected)
    assert trace.blocks[1].summed_norms[1, 3:].abs().max() == 0


class Unmasked(nn.Module):
    """A model that takes token ids and no mask."""

    def __init__(self):
        super().__init__()
        self.inner = probes.build("bert").model
        self.config = self.inner.config

    def forward(self, input_ids):
        return self.inner(input_ids)


def test_padding_is_known_where_the_model_takes_no_mask():
    subject = Subject(Unmasked().eval(), None, "unmasked", "")
    encoded = encode(subject, [[101, 102, 103], [104, 105]])
    assert set(encoded.inputs) == {"input_ids"}
    assert [len(side.tokens) for side in encoded.sides] == [3, 2]
    assert encoded.kept.tolist() == [[True, True, True], [True, True, False]]


def test_the_texts_of_a_batch_can_be_taken_apart():
    subject = Subject(Unmasked().eval(), None, "unmasked", "")
    first, second = separately(subject, encode(subject, [[101, 102, 103], [104, 105]]))
    assert first.inputs["input_ids"].tolist() == [[101, 102, 103]]
    assert second.inputs["input_ids"].tolist() == [[104, 105]]
    assert second.kept is None
    assert len(second.sides) == 1
