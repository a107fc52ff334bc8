"""Slopes of the logit by the embeddings of the tokens."""

from dataclasses import replace

import pytest
import torch

from normlens.attribution.embeddings import asked_of, embedded
from normlens.attribution.gradients import integrated

TEXT = "the big cat sat on the mat"


def question(lens, text=TEXT, target=None):
    from normlens.attribution.asking import ask

    return ask(lens, text, target)[0][0].question


def test_gradient_x_input_is_the_change_of_the_logit_when_an_embedding_grows(classifier):
    """Against a difference quotient in double precision, by the model's own `inputs_embeds`."""
    lens = classifier
    found = lens.attribute(TEXT, "good", by="gradient_x_input").scores[0]
    import copy

    model = copy.deepcopy(lens.subject.model).double()
    vectors = model.get_input_embeddings()(torch.tensor([lens.subject.tokenizer(TEXT)["input_ids"]])).detach()
    for place in range(vectors.shape[1]):
        ends = []
        for step in (-1e-5, 1e-5):
            moved = vectors.clone()
            moved[0, place] *= 1 + step
            ends.append(model(inputs_embeds=moved).logits[0, 2].item())
        assert found[place].item() == pytest.approx((ends[1] - ends[0]) / 2e-5, rel=1e-3, abs=1e-4)


def test_integrated_gradients_is_the_mean_slope_on_the_way_from_nothing(classifier):
    """Against a plain sum over a thousand midpoints."""
    asked = question(classifier, target="good")
    vectors = embedded(asked)
    model, places = classifier.subject.model, (torch.arange(1000) + 0.5) / 1000
    given = (places[:, None, None] * vectors).requires_grad_()
    model(inputs_embeds=given).logits[:, 2].sum().backward()
    model.zero_grad(set_to_none=True)
    torch.testing.assert_close(
        integrated(asked, vectors, 64), (given.grad.mean(dim=0) * vectors).sum(dim=-1).detach(), rtol=1e-2, atol=1e-2
    )


def test_integrated_gradients_add_up_with_what_embeddings_of_zero_predict(classifier, writer, translator, filler):
    for lens, text in ((classifier, TEXT), (writer, TEXT), (translator, TEXT), (filler, "the <mask> sat")):
        found = lens.attribute(text, 2, by="integrated_gradients")
        assert found.adds_up
        assert found.error < 0.01
        total = found.scores.sum() + found.unowned.sum()
        assert total.item() == pytest.approx(found.logit.item(), abs=0.01 * found.scores.abs().sum().item())


def test_the_embeddings_are_those_the_model_looks_up_source_first(translator):
    asked = question(translator, "the cat", target="dog")
    table = translator.subject.model.get_input_embeddings()
    ids = torch.tensor([5, 7, 2, 0])
    assert asked.sources == 4
    rows = embedded(asked)
    ratio = rows / table(ids)
    assert torch.isfinite(rows).all()
    torch.testing.assert_close(ratio[:3], ratio[0, 0].detach().expand(3, 16), rtol=1e-4, atol=1e-4)


def test_of_a_writer_only_the_logits_from_the_row_that_is_read_are_computed(writer, monkeypatch):
    asked = [question(writer, target=2)]
    asked.append(replace(asked[0], row=(asked[0].row or 0) - 2))
    head, rows = writer.subject.model.get_output_embeddings(), []
    expected = [writer.subject.model(**one.inputs).logits[0, one.row, 2].item() for one in asked]
    watched = head.register_forward_hook(lambda module, args, output: rows.append(output.shape[1]))
    found = [asked_of(one, embedded(one)[None]).item() for one in asked]
    watched.remove()
    assert found == pytest.approx(expected, rel=1e-5)
    assert rows[1::2] == [1, 3]
