"""Attributions of attention weights, against autograd on the weights themselves."""

import pytest
import torch
from torch import nn

from normlens.attribution import ask
from normlens.attribution.attattr import attention_attributions, tree

TEXT = "the big cat sat on the mat"


def question(lens, text=TEXT, target=None):
    return ask(lens, text, target)[0][0].question


def eager(model):
    """Attention as transformers writes it out, whose weights a hook can reach."""
    model.set_attn_implementation("eager")
    return model


@pytest.mark.parametrize("layer", [0, 1])
def test_the_attribution_of_a_weight_is_the_weight_times_its_mean_slope(classifier, layer, monkeypatch):
    """Against derivatives by the weights of the softmax, in double precision, one step at a time."""
    import copy

    found = attention_attributions(question(classifier, target="good"))[layer].values
    model = eager(copy.deepcopy(classifier.subject.model).double())
    ids = torch.tensor([classifier.subject.tokenizer(TEXT)["input_ids"]])
    softmax, calls, slopes = nn.functional.softmax, [], []

    def scaled(scores, *args, **more):
        weights = softmax(scores, *args, **more)
        calls.append(weights)
        if len(calls) - 1 == layer:
            weights = (weights.detach() * place).requires_grad_()
            calls[-1] = weights
        return weights

    monkeypatch.setattr(nn.functional, "softmax", scaled)
    for step in range(20):
        place = (step + 0.5) / 20
        calls.clear()
        model(ids).logits[0, 2].backward()
        slopes.append(calls[layer].grad)
        whole = calls[layer] / place
    expected = whole[0].detach() * torch.stack(slopes).mean(dim=0)[0]
    torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-5)


def test_the_attributions_of_a_layer_add_up_to_what_its_attention_adds(writer):
    asked = question(writer)
    model = writer.subject.model
    whole = asked.logit(model(**asked.inputs).logits).item()
    for number, layer in enumerate(attention_attributions(asked, steps=100)):
        projection = model.transformer.h[number].attn.c_proj
        handle = projection.register_forward_pre_hook(lambda _, args: (torch.zeros_like(args[0]),))
        without = asked.logit(model(**asked.inputs).logits).item()
        handle.remove()
        assert layer.values.sum().item() == pytest.approx(whole - without, abs=2e-3)


def test_the_score_of_a_token_is_the_sum_over_what_attends_to_it(classifier, translator):
    layers = attention_attributions(question(classifier, target="good"))
    expected = sum(layer.values.sum(dim=(0, 1)) for layer in layers)
    torch.testing.assert_close(classifier.attribute(TEXT, "good", by="attattr").scores[0], expected)
    assert translator.attribute("the cat", "dog", by="attattr").scores.shape == (1, 4)


def test_the_authors_take_the_left_end_of_each_step(classifier):
    asked = question(classifier, target="good")
    ours, theirs = (attention_attributions(asked, steps=400, authors=name)[1].values for name in (False, True))
    torch.testing.assert_close(ours, theirs, rtol=0.05, atol=2e-3)
    assert not torch.equal(ours, theirs)


def test_the_tree_grows_from_the_position_that_is_read(classifier):
    asked = question(classifier, target="good")
    edges = tree(asked, threshold=0.2)
    layers = attention_attributions(asked)
    reached = {0}
    for number in (1, 0):
        scores = layers[number].values.sum(dim=0)
        here = [edge for edge in edges if edge.layer == number]
        assert {edge.tgt for edge in here} <= reached
        for edge in here:
            assert edge.score == pytest.approx(scores[edge.tgt, edge.src].item())
            assert edge.score >= 0.2 * scores.max().item()
        reached |= {edge.src for edge in here}
    assert len(tree(asked, threshold=0.9)) <= len(edges)
