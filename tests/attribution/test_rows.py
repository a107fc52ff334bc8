"""Rows of maps, Jacobian norms and removals, against slow and obvious computations."""

import copy

import pytest
import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2ForSequenceClassification

import normlens as nl
from normlens.attribution import ask
from normlens.attribution.embeddings import reading
from normlens.attribution.rollouts import MAPS

TEXT = "the big cat sat on the mat"


def asked(lens, text=TEXT, target=None):
    return ask(lens, text, target)[0][0].question


def test_a_prediction_is_read_from_the_first_position_the_last_or_the_one_asked_for(classifier, writer, translator):
    first = torch.zeros(9)
    first[0] = 1
    torch.testing.assert_close(reading(asked(classifier)), first)
    torch.testing.assert_close(reading(asked(writer)), torch.eye(7)[6])
    torch.testing.assert_close(reading(asked(translator, "the cat", "dog")), torch.ones(1))


def test_a_classifier_that_reads_its_last_token_is_asked_about_that(writer):
    torch.manual_seed(0)
    config = GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=20, n_positions=40, num_labels=2)
    config.update({"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2})
    lens = nl.load(GPT2ForSequenceClassification(config).eval(), writer.subject.tokenizer)
    torch.testing.assert_close(reading(asked(lens)), torch.eye(7)[6])


class Averaging(torch.nn.Module):
    """A classifier that reads the mean of all positions."""

    def __init__(self, config):
        super().__init__()
        self.bert, self.head = BertModel(config, add_pooling_layer=False), torch.nn.Linear(config.hidden_size, 3)
        self.config = config

    def forward(self, input_ids=None, attention_mask=None, output_hidden_states=False):
        output = self.bert(input_ids, attention_mask, output_hidden_states=output_hidden_states)
        output.logits = self.head(output.last_hidden_state.mean(dim=1))
        return output

    def get_input_embeddings(self):
        return self.bert.get_input_embeddings()


def test_a_head_that_averages_reads_every_position_alike(classifier):
    torch.manual_seed(0)
    config = BertConfig(**{**classifier.subject.config.to_dict(), "num_labels": 3})
    lens = nl.load(Averaging(config).eval(), classifier.subject.tokenizer)
    torch.testing.assert_close(reading(asked(lens)), torch.full((9,), 1 / 9))
    rows = lens.trace(TEXT).rollout("weights").values[0]
    torch.testing.assert_close(lens.attribute(TEXT, by="rollout").scores[0], rows.mean(dim=0))


@pytest.mark.parametrize("by", MAPS)
def test_a_map_is_read_at_the_position_that_makes_the_prediction(classifier, writer, by):
    quantity = MAPS[by][0]
    field = "encoder_norms" if by == "globenc" else quantity
    for lens, position in ((classifier, 0), (writer, -1)):
        if lens is writer and by == "rollout_normed":
            with pytest.raises(nl.NormlensError, match="has no"):
                lens.attribute(TEXT, by=by)
            continue
        expected = lens.trace(TEXT, fields=(field,)).rollout(quantity).of(position)
        torch.testing.assert_close(lens.attribute(TEXT, by=by).scores, expected)


@pytest.mark.parametrize("by", ["rollout", "alti"])
def test_a_translation_has_shares_of_its_source_and_of_what_is_written(translator, by):
    scores = translator.attribute("the cat", answer="a dog", by=by).steps[1].scores[0]
    assert scores.shape == (5,)
    assert scores.sum().item() == pytest.approx(1, abs=1e-5)
    assert (scores >= 0).all()


def test_jacobian_norms_are_those_of_the_whole_matrix(classifier, writer):
    for lens, position in ((classifier, 0), (writer, -1)):
        model = copy.deepcopy(lens.subject.model).double()
        base = model.base_model
        ids = torch.tensor([lens.subject.tokenizer(TEXT)["input_ids"]])
        vectors = model.get_input_embeddings()(ids).detach()
        whole = torch.autograd.functional.jacobian(
            lambda given, base=base, position=position: base(inputs_embeds=given).last_hidden_state[0, position],
            vectors,
        )
        norms = whole[:, 0].square().sum(dim=(0, 2)).sqrt()
        found = lens.attribute(TEXT, by="jacobian").scores[0]
        torch.testing.assert_close(found.double(), norms / norms.sum(), rtol=1e-4, atol=1e-6)


def test_leaving_a_token_out_is_the_models_answer_without_it(classifier, writer):
    ids = classifier.subject.tokenizer(TEXT)["input_ids"]
    model = classifier.subject.model
    whole = model(torch.tensor([ids])).logits[0, 2]
    found = classifier.attribute(TEXT, "good", by="leave_one_out").scores[0]
    deleted = classifier.attribute(TEXT, "good", by="leave_one_out_deleted").scores[0]
    for place in range(len(ids)):
        mask = torch.ones(1, len(ids), dtype=torch.long)
        mask[0, place] = 0
        hidden = model(torch.tensor([ids]), attention_mask=mask).logits[0, 2]
        shorter = model(torch.tensor([ids[:place] + ids[place + 1 :]])).logits[0, 2]
        assert found[place].item() == pytest.approx((whole - hidden).item(), abs=1e-4)
        assert deleted[place].item() == pytest.approx((whole - shorter).item(), abs=1e-4)
    assert writer.attribute(TEXT, by="leave_one_out").scores.shape == (1, 7)


def test_the_first_word_of_a_translation_has_shares_too(translator):
    """The decoder is fed one token: one row, which looks like a vector that all rows have in common."""
    found = translator.attribute("the cat sat", answer="a dog", by="alti")
    for step in found.steps:
        assert step.scores.sum().item() == pytest.approx(1, abs=1e-5)


def test_one_token_alone_has_the_numbers_of_the_first_of_several(writer):
    fields = ("alti", "residual_norms")
    alone, several = writer.trace("cat", fields=fields), writer.trace("cat sat on", fields=fields)
    for one, first in zip(alone.blocks, several.blocks, strict=True):
        for name in fields:
            torch.testing.assert_close(one[name], first[name][..., :1, :1])
