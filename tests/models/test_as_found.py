"""Whatever a run changes about a model is put back, and said."""

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel, BigBirdConfig, BigBirdModel, DynamicCache, GPT2Config, GPT2Model

import normlens as nl
from normlens.models import NotPutBack, as_found


class Restless(nn.Module):
    """A module that changes everything it can."""

    def __init__(self):
        super().__init__()
        self.layer, self.names, self.table, self.count = nn.Linear(2, 2), ["a"], {"a": 1}, 0
        self.register_buffer("seen", torch.zeros(3))
        self.register_buffer("cache", torch.zeros(1))
        self.plain = torch.zeros(2)
        self.config = BertConfig(hidden_size=8, num_attention_heads=2)

    def forward(self):
        self.layer = nn.Linear(3, 3)
        self.names.append("b")
        self.table["b"] = 2
        self.count += 1
        self.new = "here"
        self.seen += 1
        self.plain += 1
        self.register_buffer("cache", torch.ones(9))
        self.config.hidden_size = 16
        self.train()


def test_everything_a_run_changes_is_put_back():
    model = Restless().eval()
    layer, cache = model.layer, model.cache
    with as_found(model) as changes:
        model()
    assert model.layer is layer
    assert model.cache is cache
    assert (model.names, model.table, model.count, model.training) == (["a"], {"a": 1}, 0, False)
    assert not hasattr(model, "new")
    assert float(model.seen.sum()) == float(model.plain.sum()) == 0
    assert model.config.hidden_size == 8
    assert set(changes.names) == set("layer names table count new cache seen plain config.hidden_size training".split())


def test_a_model_at_rest_changes_nothing():
    model = Restless()
    with as_found(model) as changes:
        model.layer(torch.zeros(1, 2))
    assert changes.names == ()


def test_a_parameter_changed_in_place_is_said():
    model = nn.Linear(2, 2)
    with pytest.raises(NotPutBack, match="weight in place"), as_found(model), torch.no_grad():
        model.weight += 1


def test_an_exception_in_the_run_leaves_nothing_behind():
    model = Restless().eval()

    def fail():
        model()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), as_found(model):
        fail()
    assert model.count == 0


def test_a_model_that_switches_its_attention_is_switched_back():
    """A text too short for block-sparse attention makes BigBird replace its attention modules, by itself for good."""
    torch.manual_seed(0)
    model = BigBirdModel(
        BigBirdConfig(
            vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
            block_size=4, num_random_blocks=1, max_position_embeddings=128,
        )
    ).eval()  # fmt: skip
    ids = torch.arange(1, 49)[None] % 60
    with torch.no_grad():
        before = model(ids).last_hidden_state
    modules = [id(part) for part in model.modules()]
    lens = nl.load(model)
    lens.trace([1, 2, 3])
    assert any("attention_type" in name for name in lens.examination.changed)
    assert [id(part) for part in model.modules()] == modules
    assert model.config.attention_type == "block_sparse"
    with torch.no_grad():
        assert torch.equal(model(ids).last_hidden_state, before)


def test_hooks_of_transformers_are_gone_after_loading():
    options = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = BertModel(BertConfig(**options, intermediate_size=16)).eval()
    nl.load(model)
    assert all(not part._forward_hooks and not part._forward_pre_hooks for part in model.modules())
    with torch.no_grad():
        found = model(torch.tensor([[1, 2, 3]]), output_hidden_states=True).hidden_states
    assert len(found) == 3


def test_a_cache_that_the_user_gives_does_not_grow():
    torch.manual_seed(0)
    model = GPT2Model(GPT2Config(n_embd=8, n_layer=2, n_head=2, vocab_size=20)).eval()
    cache = DynamicCache(config=model.config)
    model(torch.tensor([[3, 4, 5]]), past_key_values=cache)  # with gradients, which cannot be copied deeply
    lens = nl.load(model)
    for _ in range(2):
        lens.trace({"input_ids": torch.tensor([[6, 7]]), "past_key_values": cache})
    assert cache.get_seq_length() == 3
