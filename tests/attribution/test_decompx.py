"""The vector of each token, carried to the logit: against the same written out, and what it adds up to."""

from copy import deepcopy

import pytest
import slow_decompx as slow
import torch
from small_models import IDS, SIZES, asked, bert, gpt2, llama, random, rotated_by
from torch import nn
from torch.nn import functional
from transformers import (
    BertForMaskedLM,
    MarianConfig,
    MarianMTModel,
    MixtralConfig,
    MixtralForCausalLM,
    RobertaConfig,
    RobertaForSequenceClassification,
    XLNetConfig,
    XLNetForSequenceClassification,
)

from normlens.attribution import AttributionError
from normlens.attribution.decompx import ROWS, decompx

METHODS = {method.name: method for method in ROWS}


def scores(name, *question, **more):
    return METHODS[name].compute(asked(*question, **more))


def same(found, expected):
    torch.testing.assert_close(found.values.double(), expected.detach(), rtol=1e-4, atol=1e-5)


def classified(model, parts):
    """Behind BERT's pooler and classifier, biases shared where they are added."""
    pooled = slow.linear(parts[:, :1], model.bert.pooler.dense.weight, model.bert.pooler.dense.bias)
    return slow.linear(slow.active(pooled, torch.tanh), model.classifier.weight, model.classifier.bias)[:, 0]


@pytest.mark.parametrize("name", ["decompx", "decompx_authors"])
def test_a_classifier_on_bert_is_that_written_out(name):
    model = bert()
    exact = deepcopy(model).double()
    rows = exact.bert.embeddings(IDS)[0]
    parts = slow.bert(exact.bert.encoder, rows, 2, theirs=name == "decompx_authors")
    same(scores(name, model, {"input_ids": IDS}), classified(exact, parts)[:, 1])


def test_the_published_way_of_sharing_biases_is_another():
    ours, theirs = (scores(name, bert(), {"input_ids": IDS}).values for name in ("decompx", "decompx_authors"))
    assert (ours - theirs).abs().max() > 1e-3


def test_a_masked_word_is_that_written_out():
    model = bert(BertForMaskedLM)
    exact = deepcopy(model).double()
    parts = slow.bert(exact.bert.encoder, exact.bert.embeddings(IDS)[0], 2)
    head = exact.cls.predictions
    turned = slow.active(slow.linear(parts, head.transform.dense.weight, head.transform.dense.bias), functional.gelu)
    logits = slow.linear(slow.layer_norm(turned, head.transform.LayerNorm), head.decoder.weight, head.decoder.bias)
    same(scores("decompx", model, {"input_ids": IDS}, row=3), logits[:, 3, 1])


def test_a_contrast_is_the_difference_of_two_logits():
    model, inputs = bert(), {"input_ids": IDS}
    this, that = (scores("decompx", model, inputs, wanted=((number, 1.0),)) for number in (0, 2))
    both = scores("decompx", model, inputs, wanted=((0, 1.0), (2, -1.0)))
    torch.testing.assert_close(both.values, this.values - that.values)


def test_gpt2_is_that_written_out():
    model = gpt2()
    expected = slow.gpt2(deepcopy(model).double(), IDS[0])
    for row in (-1, 2):
        same(scores("decompx", model, {"input_ids": IDS}, row=row), expected[:, row, 1])


@pytest.mark.parametrize(("name", "gated"), [("decompx", "gate"), ("decompx_both", "both")])
def test_llama_is_that_written_out_by_either_rule(name, gated):
    model = llama()
    exact = deepcopy(model).double()
    expected = slow.llama(exact, IDS[0], rotated_by(exact), gated)
    same(scores(name, model, {"input_ids": IDS}, row=-1), expected[:, -1, 1])


def test_marian_is_that_written_out():
    config = MarianConfig(
        d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=32, decoder_ffn_dim=32, vocab_size=40, pad_token_id=0, decoder_start_token_id=0,
        scale_embedding=True,
    )  # fmt: skip
    model, written = random(MarianMTModel(config)), torch.tensor([[0, 8, 17, 30]])
    expected = slow.marian(deepcopy(model).double(), IDS[0], written[0])
    found = scores("decompx", model, {"input_ids": IDS, "decoder_input_ids": written}, row=2)
    same(found, expected[:, 2, 1])
    assert len(found.values) == 11


@pytest.mark.parametrize("name", METHODS)
def test_padding_changes_nothing_and_has_no_score(name):
    model = random(RobertaForSequenceClassification(RobertaConfig(**SIZES, num_labels=3, pad_token_id=1)))
    padded = {
        "input_ids": torch.cat([IDS, torch.ones(1, 3, dtype=torch.long)], 1),
        "attention_mask": torch.tensor([[1] * 7 + [0] * 3]),
    }
    alone, beside = scores(name, model, {"input_ids": IDS}), scores(name, model, padded)
    torch.testing.assert_close(beside.values, alone.values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_scores_add_up_to_the_logit_of_the_model(name):
    model = bert()
    found = scores(name, model, {"input_ids": IDS}, wanted=((2, 1.0), (0, -1.0)))
    logits = model(IDS).logits[0].detach()
    assert found.adds_up_to == pytest.approx(float(logits[2] - logits[0]), abs=1e-5)
    assert float(found.values.sum()) + found.unowned == pytest.approx(found.adds_up_to, abs=1e-5)


@pytest.mark.parametrize("model", [llama(), gpt2()])
def test_with_biases_apart_one_slope_says_it_all(model):
    """Nothing is left but what is linear in the embeddings, so parts carried to the end and the slope agree."""
    question = asked(model, {"input_ids": IDS}, row=-1)
    carried, sloped = decompx(question, sharing="none"), METHODS["decompx_unshared"].compute(question)
    torch.testing.assert_close(carried.values, sloped.values, rtol=1e-4, atol=1e-5)
    assert carried.unowned == pytest.approx(sloped.unowned, abs=1e-5)


def test_without_biases_there_is_nothing_to_share():
    model, inputs = llama(), {"input_ids": IDS}
    ours, apart = (scores(name, model, inputs, row=-1) for name in ("decompx", "decompx_unshared"))
    torch.testing.assert_close(ours.values, apart.values, rtol=1e-4, atol=1e-5)
    assert abs(apart.unowned) < 1e-5


@pytest.mark.parametrize("gated", ["gate", "both"])
def test_equal_experts_are_one_network(gated):
    """With the same matrices in every expert the routing changes nothing, and the network is that of Llama."""
    plain = llama()
    like = {name: getattr(plain.config, name) for name in ("rms_norm_eps", "rope_parameters", "num_key_value_heads")}
    mixture = MixtralForCausalLM(MixtralConfig(**SIZES, **like, num_local_experts=3)).eval()
    with torch.no_grad():
        mixture.load_state_dict(plain.state_dict(), strict=False)
        for to, of in zip(mixture.model.layers, plain.model.layers, strict=True):
            to.mlp.experts.gate_up_proj.copy_(torch.cat([of.mlp.gate_proj.weight, of.mlp.up_proj.weight])[None])
            to.mlp.experts.down_proj.copy_(of.mlp.down_proj.weight[None])
    ours, theirs = (decompx(asked(model, {"input_ids": IDS}, row=-1), gated=gated) for model in (mixture, plain))
    torch.testing.assert_close(ours.values, theirs.values, rtol=1e-4, atol=1e-5)


class Beside(nn.Module):
    """A matrix, and the same states by another way."""

    def __init__(self, dense, way):
        super().__init__()
        self.dense, self.way = dense, way

    def forward(self, states):
        return self.dense(states) + self.way(states)


def through_numpy(states):
    return torch.from_numpy(states.detach().numpy().copy())[..., :16]


def through_a_number(states):
    return torch.tensor(float(states.mean()))


def behind_the_watch(states):
    with torch._C.DisableTorchFunction():
        return states[..., :16] * 2


@pytest.mark.parametrize("way", [through_numpy, through_a_number, behind_the_watch])
def test_what_leaves_the_sight_of_the_watch_is_no_constant(way):
    """Taken for a constant, it would be shared out among the tokens, and the scores would still add up."""
    model = bert()
    last = model.bert.encoder.layer[1].output
    last.dense = Beside(last.dense, way).eval()
    with pytest.raises(AttributionError, match=r"'bert\.encoder\.layer\.1\.output\.dense'"):
        scores("decompx", model, {"input_ids": IDS})


class Largest(nn.Module):
    """What no rule can split: the largest number over the tokens."""

    def __init__(self, dense):
        super().__init__()
        self.dense = dense

    def forward(self, states):
        return self.dense(states) + self.dense(states).max(dim=1, keepdim=True).values


def test_what_cannot_be_split_is_refused_by_name():
    model = bert()
    last = model.bert.encoder.layer[1].output
    last.dense = Largest(last.dense).eval()
    with pytest.raises(AttributionError, match=r"'bert\.encoder\.layer\.1\.output\.dense'.*'max'"):
        scores("decompx", model, {"input_ids": IDS})


def rolled(ids):
    return ids.roll(1, dims=1)


def shifted(ids):
    new = ids.new_zeros(ids.shape)
    new[:, 1:] = ids[:, :-1]
    return new


def hashed(ids):
    return (ids * 7) % 40


@pytest.mark.parametrize("change", [rolled, shifted, hashed])
def test_tokens_that_are_not_looked_up_in_their_places_are_refused(change):
    """Their vectors would be given to other tokens, or to none, and the sum would be right all the same."""
    model = bert()
    forward = model.forward
    model.forward = lambda input_ids, **more: forward(change(input_ids), **more)
    with pytest.raises(AttributionError, match="moved or computed with before they are looked up"):
        scores("decompx", model, {"input_ids": IDS})


def test_a_model_that_puts_positions_before_texts_is_refused():
    size = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24, "vocab_size": 40}
    model = random(XLNetForSequenceClassification(XLNetConfig(**size)))
    with pytest.raises(AttributionError, match="not by text and position"):
        scores("decompx", model, {"input_ids": IDS})


def test_half_precision_is_refused():
    with pytest.raises(AttributionError, match="bfloat16, in which small"):
        scores("decompx", llama().to(torch.bfloat16), {"input_ids": IDS}, 6)
