"""Shortened texts: what is kept, against plain loops, and a classifier that reads one token."""

import math

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

import normlens as nl
from normlens.corpora import corpus
from normlens.studies import StudyError, shorten
from normlens.studies.cutting import cut_inputs, kept_positions, random_scores, token_scores
from normlens.studies.losses import in_batches
from normlens.studies.shortening import wilson

LABELLED = [
    {"text": "a good film", "label": 1},
    {"text": "a bad film that nobody wants to see twice", "label": 0},
    {"text": "why not", "label": 0},
    {"text": "good", "label": 1},
]
SMALL = {"vocab_size": 30522, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3}
SMALL |= {"intermediate_size": 16, "max_position_embeddings": 32, "initializer_range": 0.4}


@pytest.fixture(scope="module")
def lens(minilm):
    torch.manual_seed(0)
    return nl.load(BertForSequenceClassification(BertConfig(**SMALL)).eval(), minilm.subject.tokenizer)


def batches(lens, texts):
    return list(in_batches(lens, corpus(texts, label_column="label"), length=32, limit=None, batch_tokens=4096))


def test_scores_are_sums_over_queries_and_heads_of_the_text_alone(lens):
    (batch,) = batches(lens, LABELLED)
    scores = token_scores(lens, batch, 0)
    for row, item in enumerate(batch.items):
        block = lens.trace(item.texts[0]).self_attention[0]
        tokens = block.weights.shape[-1]
        for key in range(tokens):
            weights = norms = contributions = 0.0
            for head in range(block.weights.shape[1]):
                length = float(block.transformed_norms[0, head, key])
                norms += length
                for query in range(tokens):
                    weights += float(block.weights[0, head, query, key])
                    contributions += float(block.weights[0, head, query, key]) * length
            for name, expected in (("weights", weights), ("norms", norms), ("contributions", contributions)):
                assert scores[name][row, key] == pytest.approx(expected, rel=1e-4), (name, row, key)


def test_the_highest_scores_stay_in_their_order_and_special_tokens_always(lens):
    (batch,) = batches(lens, [{"text": "why not see a good film", "label": 1}])
    scores = np.array([[0, 1, 6, 2, 5, 3, 4, 0]], float)  # [CLS] why not see a good film [SEP]
    assert [places.tolist() for places in kept_positions(batch, scores, 0.5)] == [[0, 2, 4, 6, 7]]
    assert [places.tolist() for places in kept_positions(batch, scores, 0.01)] == [[0, 2, 7]]
    assert [places.tolist() for places in kept_positions(batch, scores, 1.0)] == [list(range(8))]


def test_a_shortened_text_is_the_text_of_its_kept_tokens(lens):
    (batch,) = batches(lens, LABELLED)
    positions = kept_positions(batch, random_scores(batch, 3), 0.5)
    inputs = cut_inputs(lens, batch, range(len(positions)), positions)
    with torch.no_grad():
        together = lens.subject.model(**inputs).logits
    for row, places in enumerate(positions):
        ids = batch.groups["text"].ids[row, places]
        with torch.no_grad():
            alone = lens.subject.model(input_ids=torch.tensor([ids.tolist()])).logits[0]
        torch.testing.assert_close(together[row], alone, atol=1e-5, rtol=1e-4)


def spotting(tokenizer, word):
    """A classifier that says 1 where a word is in the text; the word receives nearly all attention."""
    config = BertConfig(**(SMALL | {"hidden_size": 8, "num_attention_heads": 1, "num_hidden_layers": 1}))
    model = BertForSequenceClassification(config).eval()
    for name, parameter in model.named_parameters():
        if "LayerNorm" not in name:
            parameter.data.zero_()
    spot, plain = torch.tensor([1.0, -1, 0, 0, 0, 0, 0, 0]), torch.tensor([0.0, 0, 1, -1, 0, 0, 0, 0])
    model.bert.embeddings.word_embeddings.weight.data[:] = plain
    model.bert.embeddings.word_embeddings.weight.data[tokenizer.convert_tokens_to_ids(word)] = spot
    attention = model.bert.encoder.layer[0].attention
    attention.self.query.bias.data[0] = 20.0
    attention.self.key.weight.data[0, 0] = 1.0
    attention.self.value.weight.data[0, 0] = 1.0
    attention.output.dense.weight.data[0, 0] = 10.0
    model.bert.pooler.dense.weight.data[0, 0] = 5.0
    model.classifier.weight.data[1, 0] = 5.0
    model.classifier.bias.data[0] = 1.0
    return nl.load(model, tokenizer)


def test_where_one_token_decides_attention_and_contribution_keep_it_and_chance_loses_it(minilm):
    lens = spotting(minilm.subject.tokenizer, "good")
    texts = [
        {"text": f"nobody wants to see this good film {word} today", "label": 1} for word in ("here", "there", "at")
    ]
    texts += [{"text": f"nobody wants to see this film {word} today", "label": 0} for word in ("here", "there", "at")]
    result = shorten(lens, texts, fractions=(0.1, 1), seeds=4)
    assert result.accuracy == 1
    assert result.accuracies["weights"].tolist() == [1, 1]
    assert result.accuracies["contributions"].tolist() == [1, 1]
    assert result.accuracies["norms"].tolist() == [1, 1]
    assert result.random[:, 0].mean() < 1
    assert (result.random[:, 1] == 1).all()
    assert "Kept by received attention α, 10 % of the tokens are enough for 95 % of that accuracy." in result.show()


def test_batches_and_their_padding_change_no_accuracy(lens):
    together, alone = (shorten(lens, LABELLED, seeds=2, batch_tokens=tokens) for tokens in (4096, 1))
    assert together.rows() == alone.rows()


def test_every_row_has_an_interval_around_its_accuracy(lens):
    result = shorten(lens, LABELLED, fractions=(0.5, 1), seeds=2)
    assert [row["kept_by"] for row in result.rows()] == ["weights", "norms", "contributions", "random"] * 2
    for row in result.rows():
        assert row["low"] <= row["accuracy"] <= row["high"]
    assert len(result.to_dataframe()) == 8
    low, high = wilson(0.9, 100)
    assert (low, high) == (pytest.approx(0.8256, abs=1e-4), pytest.approx(0.9448, abs=1e-4))
    assert math.isclose(wilson(0.0, 10)[0], 0, abs_tol=1e-12)


def test_what_cannot_be_shortened_is_refused(lens, minilm):
    with pytest.raises(StudyError, match="predicts nothing"):
        shorten(minilm, LABELLED)
    with pytest.raises(StudyError, match="cannot be kept by 'luck'"):
        shorten(lens, LABELLED, scores=("luck",))
    with pytest.raises(StudyError, match="above 0 and at most 1"):
        shorten(lens, LABELLED, fractions=(0, 1))
    with pytest.raises(StudyError, match="no class for the label '7'"):
        shorten(lens, [{"text": "a text", "label": 7}])
