"""Our gradients against those of other people's tools, where they are installed: pip install captum inseq."""

import pytest
import torch

from normlens.attribution import ask
from normlens.attribution.embeddings import embedded
from normlens.attribution.gradients import integrated

TEXT = "the big cat sat on the mat"


@pytest.mark.parametrize("name", ["classifier", "writer"])
def test_gradients_of_embeddings_are_those_of_captum(name, request):
    attr = pytest.importorskip("captum.attr", reason="captum is not installed: pip install captum")
    lens = request.getfixturevalue(name)
    asked = ask(lens, TEXT, 2)[0][0].question
    vectors = embedded(asked)

    def logits(given):
        found = lens.subject.model(inputs_embeds=given).logits
        return found if found.ndim == 2 else found[:, -1]

    whole = attr.IntegratedGradients(logits).attribute(vectors[None], target=2, n_steps=64)
    torch.testing.assert_close(integrated(asked, vectors, 64), whole[0].sum(dim=-1).float(), rtol=1e-4, atol=1e-4)
    given = vectors[None].clone().requires_grad_()
    slope = attr.InputXGradient(logits).attribute(given, target=2)
    found = lens.attribute(TEXT, 2, by="gradient_x_input").scores[0]
    torch.testing.assert_close(found, slope[0].sum(dim=-1).detach(), rtol=1e-4, atol=1e-4)


def test_gradients_of_an_answer_are_those_of_inseq(writer):
    """Inseq writes the answer step by step as we do, from the same model."""
    inseq = pytest.importorskip("inseq", reason="inseq is not installed: pip install inseq")
    model = inseq.load_model(writer.subject.model, "input_x_gradient", tokenizer=writer.subject.tokenizer)
    theirs = model.attribute(
        "the cat", "the cat sat on the mat", attributed_fn="logit", show_progress=False, pretty_progress=False
    )
    values = theirs.sequence_attributions[0].target_attributions.sum(dim=-1)
    found = writer.attribute("the cat", answer="sat on the mat", by="gradient_x_input")
    for number, step in enumerate(found.steps):
        seen = step.scores.shape[1]
        torch.testing.assert_close(step.scores[0], values[:seen, number], rtol=1e-3, atol=1e-4)
