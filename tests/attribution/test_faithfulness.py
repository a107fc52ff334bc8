"""Which attribution is faithful: a classifier whose reason is known, every kind of model, and resumed runs."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

import normlens as nl
from normlens.attribution import METHODS, AttributionError, Method, Scores
from normlens.cli.main import main
from normlens.studies import StudyError
from normlens.studies.orders import SHARES, counts_of

TEXTS = ["the cat sat quietly", "a big dog ran under the old cat", "cat and dog", "the big cat slept"]
OTHER = ["the cat sat on the mat", "a big dog ran", "the dog slept under the tree and sat", "old tree"]
GRADIENT = "gradient_x_input"
SMALL = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}


@pytest.fixture(scope="module")
def spotting(classifier):
    """A classifier that says 1 where there is a cat, and nothing else changes what it says."""
    tokenizer = classifier.subject.tokenizer
    model = BertForSequenceClassification(BertConfig(**SMALL, vocab_size=len(tokenizer), num_labels=2)).eval()
    for name, parameter in model.named_parameters():
        if "LayerNorm" not in name:
            parameter.data.zero_()
    table = model.bert.embeddings.word_embeddings.weight.data
    table[:] = torch.tensor([0.0, 0, 1, -1, 0, 0, 0, 0])
    table[tokenizer.convert_tokens_to_ids("cat")] = torch.tensor([1.0, -1, 0, 0, 0, 0, 0, 0])
    attention = model.bert.encoder.layer[0].attention
    attention.self.query.bias.data[0] = 20.0
    for matrix, value in ((attention.self.key, 1.0), (attention.self.value, 1.0), (attention.output.dense, 10.0)):
        matrix.weight.data[0, 0] = value
    model.bert.pooler.dense.weight.data[0, 0] = 5.0
    model.classifier.weight.data[1, 0] = 5.0
    model.classifier.bias.data[0] = 1.0
    return nl.load(model, tokenizer)


@pytest.fixture
def made(monkeypatch):
    """Methods whose answers are known: the cat first, the cat last, no answer, and none at all."""

    def compute(factor):
        def scores(question):
            return Scores(torch.tensor([factor * (token == "cat") for token in question.encoded.sides[0].tokens]))

        return scores

    def fails(question):
        raise AttributionError("Such a model has no such thing.")

    for name, answer in (("first", compute(1.0)), ("last", compute(-1.0)), ("equal", compute(0.0)), ("none", fails)):
        monkeypatch.setitem(METHODS, name, Method(name, f"The cat {name}", "A made-up score.", "-", answer))
    return ("first", "last", "equal", "none")


def test_the_reason_is_found_and_its_opposite_is_not(spotting, made):
    result = nl.faithfulness(spotting, TEXTS * 5, methods=made)
    reached = result.means(result.normalised)
    assert reached["first"] == pytest.approx(1, abs=1e-6)
    assert reached["last"] == pytest.approx(0, abs=1e-6)
    chance = np.mean([by_chance(text) for text in TEXTS])
    assert reached["random"] == pytest.approx(chance, abs=0.1)
    assert reached["equal"] == pytest.approx(chance, abs=0.2)
    assert result.ranking == ["first", "equal", "last"]
    assert result.better_than_random == ["first"]
    assert result.no_worse == []
    np.testing.assert_allclose(result.kept[0], 0, atol=1e-5)  # the cat alone is enough
    assert result.kept[1].min() > 1  # and without it nothing is
    first, *_ = result.section().sentences
    assert first.startswith(
        "On this model trust The cat first, not The cat equal and The cat last (normalised AOPC 1.0"
    )
    assert result.refused == {"none": "Such a model has no such thing."}
    assert "none is left out: Such a model has no such thing." in result.show()


def by_chance(text):
    """The share of random orders that have the cat among the first tokens, mean over shares."""
    words = len(text.split())
    return (counts_of(SHARES, words) / words).mean()


def test_two_methods_that_answer_alike_are_not_told_apart(spotting, made, monkeypatch):
    monkeypatch.setitem(METHODS, "twin", METHODS["first"])
    result = nl.faithfulness(spotting, TEXTS, methods=("first", "twin"))
    assert "No difference was seen between the methods" in result.section().sentences[0]
    assert result.difference("first", "twin") == (0, 0, 0)


def test_a_method_that_may_be_as_good_as_the_first_is_not_called_untrustworthy(spotting, made):
    result = nl.faithfulness(spotting, TEXTS * 5, methods=("first", "last", "equal"))
    removed = np.array([0.7, 0, 0.6, 0.5])[:, None, None].repeat(20, axis=1).repeat(len(SHARES), axis=2)
    removed[2, ::2], removed[2, 1::2] = 0.1, 1.1
    first, *others = replace(result, removed=removed, worst=np.zeros(20), best=np.ones(20)).section().sentences
    assert first.startswith("On this model trust The cat first, not The cat last (")
    assert "No difference was seen between it and The cat equal." in others
    assert any(line.startswith("Told apart neither from it nor from random orders: The cat equal;") for line in others)


def test_where_nothing_matters_nothing_is_trusted(spotting, made):
    result = nl.faithfulness(spotting, ["a big dog ran", "the old tree"], methods=("first", "equal"))
    assert result.counted == 0
    assert result.section().sentences == ["Nothing was compared."]
    assert any("every order is alike" in note for note in result.section().notes)


@pytest.mark.parametrize("by", ["mask", "delete", "mean", "mask_token"])
def test_what_is_lost_is_what_the_model_says_without_the_tokens(classifier, by):
    result = nl.faithfulness(classifier, OTHER[:1], methods=(GRADIENT,), removal=by, shares=(0.3,))
    tokenizer, model = classifier.subject.tokenizer, classifier.subject.model
    inputs = tokenizer(OTHER[0], return_tensors="pt")
    inputs.pop("token_type_ids", None)
    with torch.no_grad():
        logits = model(**inputs).logits[0]
    scores = classifier.attribute(OTHER[0], by=GRADIENT).scores[0, 1:-1]
    gone = 1 + scores.argsort(descending=True)[:2]
    ids, mask = inputs["input_ids"].clone(), torch.ones_like(inputs["input_ids"])
    given = {}
    if by == "mask":
        mask[0, gone] = 0
    elif by == "mask_token":
        ids[0, gone] = tokenizer.mask_token_id
    elif by == "delete":
        left = [place for place in range(ids.shape[1]) if place not in gone.tolist()]
        ids, mask = ids[:, left], mask[:, left]
    else:
        table = model.get_input_embeddings().weight.detach()
        given["inputs_embeds"] = table[ids].clone()
        given["inputs_embeds"][0, gone] = table.mean(dim=0)
    with torch.no_grad():
        without = model(attention_mask=mask, **(given or {"input_ids": ids})).logits[0]
    target = int(logits.argmax())
    assert result.removed[0, 0, 0] == pytest.approx(float(logits[target] - without[target]), abs=1e-5)


@pytest.mark.parametrize("kind", ["classifier", "writer", "translator", "filler"])
def test_every_kind_of_model_is_compared_within_its_bounds(kind, request):
    lens = request.getfixturevalue(kind)
    texts = [text.replace("sat", "<mask>") for text in OTHER[:1]] if kind == "filler" else OTHER
    result = nl.faithfulness(lens, texts, methods=(GRADIENT,), limit=2, width=1)
    assert len(result.texts) + result.short == min(2, len(texts))
    values = result.normalised[np.isfinite(result.normalised)]
    assert values.size
    assert ((values >= 0) & (values <= 1)).all()
    assert (result.worst <= result.best).all()
    np.testing.assert_allclose(result.aopc, result.removed.mean(axis=-1))
    assert {row["method"] for row in result.rows()} == {GRADIENT, "random"}
    for row in result.rows():
        assert row["low"] is None or row["low"] <= row["normalised_aopc"] <= row["high"]
    itself = result.agreement["gradient_x_input"][result.names.index("gradient_x_input")]
    assert np.nanmin(itself) == pytest.approx(1)


def test_a_run_is_gone_on_with_and_finds_the_same(classifier, tmp_path, monkeypatch):
    whole = nl.faithfulness(classifier, OTHER, methods=(GRADIENT,), seed=3, width=1)
    monkeypatch.setattr(sys.modules["normlens.studies.faithfulness"], "SAVE", 0.0)

    class Stop(Exception):
        pass

    def stop(items, total):
        if items:
            raise Stop

    options = {"methods": (GRADIENT,), "seed": 3, "width": 1, "out": tmp_path / "run"}
    with pytest.raises(Stop):
        nl.faithfulness(classifier, OTHER, progress=stop, **options)
    with pytest.raises(StudyError, match="another one"):
        nl.faithfulness(classifier, OTHER, resume=True, **options | {"seed": 4})
    done = []
    resumed = nl.faithfulness(classifier, OTHER, resume=True, progress=lambda *counts: done.append(counts), **options)
    assert done[0] == (1, 4)
    assert len(done) == 4
    for name in ("removed", "kept", "worst", "best"):
        np.testing.assert_allclose(getattr(resumed, name), getattr(whole, name))
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {"report.html", "tables", "figures"}


def test_the_probability_of_a_class_can_be_explained_instead(classifier):
    logits, chances = (
        nl.faithfulness(classifier, OTHER, methods=(GRADIENT,), value=value) for value in ("logit", "log_probability")
    )
    assert not np.allclose(logits.removed, chances.removed)


def test_what_is_not_there_is_refused(classifier):
    for wrong, what in (
        ({"methods": ("gradients",)}, "no method 'gradients'"),
        ({"methods": ("random",)}, "no method 'random'"),
        ({"removal": "burn"}, "no removal 'burn'"),
        ({"value": "loss"}, "no value 'loss'"),
        ({"shares": (2.0,)}, "shares must be"),
    ):
        with pytest.raises(StudyError, match=what):
            nl.faithfulness(classifier, OTHER, **wrong)


def test_the_command_prints_every_method_and_writes_a_page(classifier, tmp_path, capsys):
    classifier.subject.model.save_pretrained(tmp_path / "model")
    classifier.subject.tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "texts.txt").write_text("\n".join(OTHER))
    command = ["faithful", str(tmp_path / "texts.txt"), "--model", str(tmp_path / "model"), "--methods"]
    command += [GRADIENT, "--limit", "2", "--width", "1"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "Gradient x input" in printed
    assert "random order" in printed
    assert (tmp_path / "out" / "report.html").exists()
    assert main([*command, "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)["tables"]
    assert {"faithfulness", "faithfulness_pairs", "faithfulness_texts"} <= tables.keys()
    assert main(["faithful", str(tmp_path / "texts.txt"), "--methods", "nothing", "--model", command[3]]) == 1
