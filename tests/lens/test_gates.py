"""Gates on single heads: exact where they are, refused where they cannot be."""

import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
)

import normlens as nl
from normlens.lens import GateError, find_gates
from normlens.models import encode, ready

IDS = {"input_ids": torch.tensor([[5, 6, 7, 8, 9, 6], [9, 8, 5, 5, 7, 6]])}
SMALL = {"vocab_size": 20, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 16}
MODELS = {
    "bert": lambda: BertModel(BertConfig(**SMALL)),
    "gpt2, whose output matrix is a Conv1D": lambda: GPT2Model(
        GPT2Config(vocab_size=20, n_positions=16, n_embd=24, n_layer=2, n_head=3)
    ),
    "llama, whose value heads are shared": lambda: LlamaModel(LlamaConfig(**SMALL, num_key_value_heads=1)),
    "albert, whose layers share one output matrix": lambda: AlbertModel(AlbertConfig(**SMALL, embedding_size=8)),
}


@pytest.fixture(params=MODELS)
def lens(request):
    torch.manual_seed(0)
    return nl.load(MODELS[request.param]().eval())


def hidden(lens):
    with torch.no_grad():
        return lens.subject.model(**IDS).last_hidden_state


def outputs(lens, out, use):
    """What one use of an output matrix writes in a pass that is not watched otherwise."""
    written = []
    module = lens.subject.model.get_submodule(out)
    with module.register_forward_hook(lambda module, args, output: written.append(output)):
        hidden(lens)
    return written[use]


def test_gates_of_1_change_no_bit(lens):
    gates = find_gates(lens, ready(lens.subject, IDS))
    plain = hidden(lens)
    with gates.scaled(torch.ones(len(gates.heads)), batch=2):
        scaled = hidden(lens)
    with gates.recorded(batch=2):
        recorded = hidden(lens)
    assert torch.equal(plain, scaled)
    assert torch.equal(plain, recorded)


def test_a_gate_of_0_takes_away_what_the_lens_finds_for_the_head(lens):
    gates = find_gates(lens, ready(lens.subject, IDS))
    first = gates.blocks[0]  # later blocks read something else once an earlier one has changed
    trace = lens.trace(IDS, fields=("head_outputs",))
    whole = outputs(lens, first.out, first.use)
    for head in range(first.heads):
        values = torch.ones(len(gates.heads))
        values[head] = 0
        with gates.scaled(values, batch=2):
            without = outputs(lens, first.out, first.use)
        torch.testing.assert_close(without, whole - trace.self_attention[0].head_outputs[:, head], atol=1e-6, rtol=1e-5)


def test_layers_that_share_a_matrix_have_gates_of_their_own():
    torch.manual_seed(0)
    lens = nl.load(MODELS["albert, whose layers share one output matrix"]().eval())
    gates = find_gates(lens, ready(lens.subject, IDS))
    assert [block.use for block in gates.blocks] == [0, 1]
    values = torch.ones(len(gates.heads))
    values[3:] = 0  # the second layer
    untouched = outputs(lens, gates.blocks[0].out, 0)
    plain = outputs(lens, gates.blocks[0].out, 1)
    with gates.scaled(values, batch=2):
        assert torch.equal(outputs(lens, gates.blocks[0].out, 0), untouched)
        assert not torch.equal(hidden(lens), plain)


def test_padding_changes_no_gradient(minilm):
    """Each sequence of a batch has gates of its own, so its slopes are those it has alone."""
    texts = ["A short text.", "A text that is quite a bit longer than the other one, so that it is padded."]
    gates = find_gates(minilm, encode(minilm.subject, texts[0]))

    def slopes(data, batch, row):
        with gates.recorded(batch=batch) as recorded:
            output = minilm.subject.model(**encode(minilm.subject, data).inputs)
        loss = output.last_hidden_state[:, 0, :7].sum()
        return [slope.sum(dim=1)[row] for slope in torch.autograd.grad(loss, recorded, materialize_grads=True)]

    for together, alone in zip(slopes(texts, 2, 0), slopes(texts[0], 1, 0), strict=True):
        torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-3)


def test_the_model_is_left_as_it_was_found_also_after_an_error(lens):
    gates = find_gates(lens, ready(lens.subject, IDS))
    plain = hidden(lens)

    def hooks():
        return sum(len(module._forward_pre_hooks) for module in lens.subject.model.modules())

    assert hooks() == 0

    def fails():
        with gates.scaled(torch.zeros(len(gates.heads)), batch=2):
            assert hooks() > 0
            assert not torch.equal(hidden(lens), plain)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert hooks() == 0
    assert torch.equal(hidden(lens), plain)
    assert all(parameter.grad is None for parameter in lens.subject.model.parameters())


def test_a_pass_in_which_a_gated_matrix_does_not_run_is_refused(lens):
    gates = find_gates(lens, ready(lens.subject, IDS))
    with pytest.raises(GateError, match="did not run"), gates.scaled(torch.ones(len(gates.heads)), batch=2):
        pass


class Fused(torch.nn.Module):
    """Torch's own attention: its output matrix is read by a fused function, never called."""

    def __init__(self):
        super().__init__()
        self.config = None
        self.embed = torch.nn.Embedding(20, 8)
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, input_ids):
        embedded = self.embed(input_ids)
        return self.attention(embedded, embedded, embedded)[0]


def test_an_output_matrix_that_is_never_called_has_no_gates():
    torch.manual_seed(0)
    lens = nl.load(Fused().eval(), probe=IDS)
    with pytest.raises(GateError, match="is not called as a module"):
        find_gates(lens, ready(lens.subject, IDS))


class Interleaved(torch.nn.Module):
    """Attention whose heads reach the output matrix coordinate by coordinate, not side by side."""

    def __init__(self):
        super().__init__()
        self.config = None
        self.embed = torch.nn.Embedding(20, 8)
        self.qkv = torch.nn.Linear(8, 24)
        self.out = torch.nn.Linear(8, 8)

    def forward(self, input_ids):
        parts = self.qkv(self.embed(input_ids)).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        states = torch.softmax(query @ key.mT / 2, dim=-1) @ value
        return self.out(states.permute(0, 2, 3, 1).flatten(2))


def test_heads_that_are_interleaved_are_refused_with_the_reason():
    torch.manual_seed(0)
    lens = nl.load(Interleaved().eval(), probe=IDS)
    with pytest.raises(GateError, match="are not its heads"):
        find_gates(lens, ready(lens.subject, IDS))
