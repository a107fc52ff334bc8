"""What is asked about a prediction, and what the answer holds, whatever the method."""

import re
from pathlib import Path

import pytest
import torch
from transformers import BartConfig, BartForSequenceClassification

import normlens as nl
from normlens.attribution import METHODS

TEXT = "the big cat sat on the mat"


def logits(lens, *texts, **more):
    inputs = lens.subject.tokenizer(*texts, return_tensors="pt")
    inputs.pop("token_type_ids", None)
    with torch.no_grad():
        return lens.subject.model(**inputs, **more).logits[0]


def test_a_class_is_the_models_own_prediction_unless_another_is_named(classifier):
    own = logits(classifier, TEXT)
    found = classifier.attribute(TEXT)
    assert found.prediction == found.target == (("bad", "so-so", "good")[own.argmax()],)
    torch.testing.assert_close(found.logits[0], own)
    assert found.logit.item() == pytest.approx(own.max().item())
    for name, number in (("good", 2), ("GOOD", 2), ("0", 0), (1, 1)):
        assert classifier.attribute(TEXT, name).logit.item() == pytest.approx(own[number].item(), abs=1e-6)


def test_a_contrast_is_the_difference_of_two_logits_and_of_two_attributions(classifier):
    own = logits(classifier, TEXT)
    found = classifier.attribute(TEXT, ("good", "bad"), by="gradient_x_input")
    assert found.target == ("good rather than bad",)
    assert found.logit.item() == pytest.approx((own[2] - own[0]).item(), abs=1e-6)
    good, bad = (classifier.attribute(TEXT, name, by="gradient_x_input").scores for name in ("good", "bad"))
    torch.testing.assert_close(found.scores, good - bad)


@pytest.mark.parametrize("by", METHODS)
@pytest.mark.parametrize("batch", [["the cat", TEXT], [TEXT, "a dog ran"]])
def test_a_text_in_a_batch_has_the_scores_it_has_alone(classifier, by, batch):
    together = classifier.attribute(batch, "good", by=by)
    assert together.scores.shape == (2, 9)
    for number, text in enumerate(batch):
        alone = classifier.attribute(text, "good", by=by)
        assert together[number].tokens == alone.tokens
        torch.testing.assert_close(together[number].scores, alone.scores)
        assert not together.scores[number, alone.scores.shape[1] :].any()


@pytest.mark.parametrize("by", METHODS)
@pytest.mark.parametrize("left", [True, False])
def test_padding_has_no_score_and_changes_none(classifier, writer, by, left):
    for lens in (classifier,) if by == "rollout_normed" else (classifier, writer):
        ids = lens.subject.tokenizer(TEXT)["input_ids"]
        mask = [1] * len(ids)
        padded = {"input_ids": [[0, 0, *ids] if left else [*ids, 0, 0]]}
        padded["attention_mask"] = [[0, 0, *mask] if left else [*mask, 0, 0]]
        torch.testing.assert_close(
            lens.attribute(padded, 1, by=by).scores, lens.attribute(TEXT, 1, by=by).scores, rtol=1e-4, atol=1e-5
        )


def test_a_language_model_is_asked_for_the_next_token(writer):
    own = logits(writer, TEXT)[-1]
    found = writer.attribute(TEXT)
    assert found.prediction == (writer.subject.tokenizer.convert_ids_to_tokens(int(own.argmax())),)
    assert found.tokens == [tuple(TEXT.split())]
    assert writer.attribute(TEXT, "dog").logit.item() == pytest.approx(own[8].item(), abs=1e-5)


def test_each_token_of_an_answer_is_explained_by_the_prompt_and_the_answer_so_far(writer):
    found = writer.attribute("the cat", answer="sat on the mat", by="gradient_x_input")
    assert [step.target for step in found.steps] == [("sat",), ("on",), ("the",), ("mat",)]
    prompt = "the cat"
    for step, word in zip(found.steps, "sat on the mat".split(), strict=True):
        alone = writer.attribute(prompt, word, by="gradient_x_input")
        torch.testing.assert_close(step.scores, alone.scores)
        assert step.tokens == alone.tokens
        prompt += f" {word}"
    assert found.scores.shape == (1, 5)
    assert found.scores.sum().item() == pytest.approx(sum(step.scores.sum().item() for step in found.steps), rel=1e-4)
    assert found.logit.item() == pytest.approx(sum(step.logit.item() for step in found.steps), rel=1e-4)


def test_a_model_that_writes_its_own_answer_predicts_each_token_of_it(writer, translator):
    for lens in (writer, translator):
        found = lens.attribute("the cat sat", answer=4)
        assert 0 < len(found.steps) <= 4
        assert found.target == found.prediction


def test_a_translation_is_explained_by_the_source_and_what_is_written_so_far(translator):
    found = translator.attribute("the cat", answer="a dog ran", by="gradient_x_input")
    assert [step.target for step in found.steps] == [("a",), ("dog",), ("ran",)]
    assert found.steps[2].tokens == [("the", "cat", "</s>", "<pad>", "a", "dog")]
    own = logits(translator, "the cat", decoder_input_ids=torch.tensor([[0, 6, 8]]))
    for place, (step, number) in enumerate(zip(found.steps, (6, 8, 10), strict=True)):
        assert step.logit.item() == pytest.approx(own[place, number].item(), abs=1e-5)


def test_with_a_target_the_answer_is_what_is_written_so_far(writer, translator):
    for lens in (writer, translator):
        found = lens.attribute("the cat", ("sat", "ran"), answer="and", by="gradient_x_input")
        assert len(found.steps) == 1
        assert found.target == ("sat rather than ran",)
        assert found.tokens[0][-1] == "and"
    assert translator.attribute("the cat", "sat").tokens == [("the", "cat", "</s>", "<pad>")]


def test_a_model_that_fills_gaps_is_asked_for_the_gap(filler):
    own = logits(filler, "the <mask> sat")
    assert filler.attribute("the <mask> sat", "cat").logit.item() == pytest.approx(own[2, 7].item(), abs=1e-5)
    assert filler.attribute(TEXT, "cat", position=1).tokens[0][0] == "<s>"
    with pytest.raises(nl.NormlensError, match="predicts at every position"):
        filler.attribute(TEXT)


def test_what_cannot_be_asked_is_refused_with_what_to_do(classifier, writer, minilm):
    with pytest.raises(nl.NormlensError, match="predicts nothing") as refused:
        minilm.attribute(TEXT)
    assert "a classifier, a language model or a translation model" in str(refused.value)
    for lens, target, wrong in (
        (classifier, "godo", "There is no class 'godo'"),
        (classifier, 7, "no class 7: the model has classes 0 to 2"),
        (classifier, ("good", "good"), "Both targets"),
        (classifier, ("good", "bad", "so-so"), "a pair"),
        (writer, "the cat", "is not one token"),
        (writer, 2.5, "type float"),
    ):
        with pytest.raises(nl.NormlensError, match=wrong):
            lens.attribute(TEXT, target)
    with pytest.raises(nl.NormlensError, match="writes no answer"):
        classifier.attribute(TEXT, answer="good")
    with pytest.raises(nl.NormlensError, match="did you mean 'random'"):
        classifier.attribute(TEXT, by="randon")
    with pytest.raises(nl.NormlensError, match="Give one thing"):
        classifier.attribute()


def test_the_model_is_left_as_it_was_found(classifier):
    model = classifier.subject.model
    before = {name: (value.clone(), value.requires_grad, value.grad) for name, value in model.named_parameters()}
    for by in METHODS:
        classifier.attribute(TEXT, by=by)
    for name, value in model.named_parameters():
        kept, trained, grad = before[name]
        assert torch.equal(value, kept)
        assert (value.requires_grad, value.grad) == (trained, grad)
    assert not any(module._forward_hooks for module in model.modules())


def test_a_table_has_a_row_for_each_token_of_each_prediction(writer):
    pytest.importorskip("pandas")
    table = writer.attribute("the cat", answer="sat on").to_dataframe()
    assert table.token.tolist() == ["the", "cat", "the", "cat", "sat"]
    assert table.side.tolist() == ["text", "text", "text", "text", "answer"]
    assert table.target.tolist() == ["sat", "sat", "on", "on", "on"]


def test_the_docs_have_every_method():
    page = Path(__file__).parent.parent.parent / "docs" / "attribution.md"
    named = set(re.findall(r"`([a-z_]+)`", page.read_text(encoding="utf-8")))
    assert METHODS.keys() <= named


@pytest.mark.parametrize("by", ["leave_one_out", "leave_one_out_deleted"])
def test_a_translation_is_asked_without_each_token_but_the_one_it_starts_with(translator, by):
    found = translator.attribute("the cat sat", answer="a dog", by=by)
    first, second = found.steps
    assert first.scores[0, -1] == 0
    assert first.scores[0, :-1].abs().min() > 0
    assert second.scores[0].abs().min() > 0


def test_a_word_that_is_unknown_is_a_step_of_an_answer_and_so_is_an_end_that_comes_first(writer, translator):
    assert writer.attribute("the cat", answer="zebra cat").target == ("<unk> cat",)
    assert translator.attribute("the cat", answer="zebra cat").target == ("<unk> cat",)
    assert writer.attribute("the cat", answer=[2]).target == ("</s>",)


@pytest.mark.parametrize("answer", [0, -1, True])
def test_an_answer_that_is_none_is_refused_in_words(writer, answer):
    with pytest.raises(nl.NormlensError, match="how many tokens to write: at least 1"):
        writer.attribute("the cat", answer=answer)


def test_a_classifier_that_reads_its_text_twice_is_refused():
    size = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 20, "max_position_embeddings": 40}
    size |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    model = BartForSequenceClassification(BartConfig(**size, bos_token_id=1, eos_token_id=2, pad_token_id=0)).eval()
    with pytest.raises(nl.NormlensError, match="reads its text twice"):
        nl.load(model).attribute([[1, 5, 6, 2]])


@pytest.mark.parametrize("suffix", [".csv", ".html", ".svg"])
def test_a_place_that_cannot_be_written_is_an_error_in_words(classifier, tmp_path, suffix):
    (tmp_path / "taken").write_text("a file, no folder")
    with pytest.raises(nl.NormlensError, match="cannot be written"):
        classifier.attribute(TEXT, by="random").save(tmp_path / "taken" / f"film{suffix}")


def test_a_mask_with_a_hole_is_no_padding(writer):
    """Without the hidden token what is behind it moves up: that would be another prediction."""
    ids = torch.tensor([[5, 6, 7, 8]])
    with pytest.raises(nl.NormlensError, match="in its midst"):
        writer.attribute({"input_ids": ids, "attention_mask": torch.tensor([[1, 0, 1, 1]])})
    padded = writer.attribute({"input_ids": ids, "attention_mask": torch.tensor([[0, 0, 1, 1]])})
    assert padded.tokens == [("cat", "dog")]
