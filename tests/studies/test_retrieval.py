"""Retrieval of a planted needle: where it is planted, and heads with a known answer."""

from dataclasses import replace
from typing import Any

import blocks
import numpy as np
import pytest
import torch

from normlens.cli.main import main
from normlens.corpora import corpus
from normlens.lens import Block
from normlens.models import text_side
from normlens.studies import Group, RetrievalStudy, StudyError, planted, seen_block, study

pytestmark = pytest.mark.usefixtures("as_users_run_it")
NEEDLE, QUESTION = "The red fox hid a golden coin.", "What was it?"
TEXTS = [
    "It rained. The mill stood by the river, and the river stood still. Nobody came. Nobody went. All was quiet.",
    "Seven men came over the hill. They sang. They had bread, wine and a horse. Then they slept until noon.",
    "No stop and no pause in this text of many words which goes on and on without an end that anyone could ever see",
]
SETTINGS = RetrievalStudy(needle=NEEDLE, question=QUESTION)


def texts_of(lens, **options):
    arguments: Any = {"needle": NEEDLE, "question": QUESTION, "length": 64, **options}
    return list(planted(corpus(TEXTS), lens.subject, **arguments))


def test_a_planted_text_holds_the_needle_twice_and_its_haystack_in_order(minilm):
    tokenizer = minilm.subject.tokenizer
    needle, question = tokenizer.tokenize(NEEDLE), tokenizer.tokenize(QUESTION)
    for item, text, depth in zip(texts_of(minilm), TEXTS, (0.1, 0.5, 0.9), strict=True):
        tokens = list(item.tokens or ())
        assert tokens[0] == "[CLS]"
        assert tokens[-len(needle) - 1 :] == [*needle, "[SEP]"]
        assert tokens[-len(needle) - 1 - len(question) : -len(needle) - 1] == question
        inner = tokens[1 : -len(needle) - 1 - len(question)]
        starts = [at for at in range(len(inner)) if inner[at : at + len(needle)] == needle]
        assert len(starts) == 1
        haystack = inner[: starts[0]] + inner[starts[0] + len(needle) :]
        assert haystack == tokenizer.tokenize(text)[: len(haystack)]
        assert len(tokens) <= 64
        ends = [0] + [at + 1 for at, token in enumerate(haystack) if token in ".!?"]
        aim = round(depth * len(haystack))
        nearest = min(abs(end - aim) for end in ends) if len(ends) > 1 else 0
        assert abs(starts[0] - aim) == nearest


def test_texts_that_are_too_short_are_left_out_and_said(minilm):
    short = corpus([*TEXTS, "Too short."])
    made = planted(short, minilm.subject, needle=NEEDLE, length=64)
    assert len(list(made)) == 3
    assert made.notes == ["texts of fewer than 16 tokens were left out: too short for the needle"]


def hand_made(lens, maps, norms=None):
    """The statistics of planted texts for heads whose maps are made of (needle, copy, size, length) of each text."""
    items = texts_of(lens)
    tokenizer = lens.subject.tokenizer
    sides = [text_side("text", tokenizer, tokenizer.convert_tokens_to_ids(list(item.tokens or ()))) for item in items]
    lengths = np.array([len(side.ids) for side in sides])
    ids, special = np.zeros((3, lengths.max()), np.int64), np.zeros((3, lengths.max()), bool)
    categories = np.full(ids.shape, -1, np.int8)
    needle = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(NEEDLE))
    weights = torch.zeros(3, len(maps), lengths.max(), lengths.max())
    for row, side in enumerate(sides):
        n = len(side.ids)
        ids[row, :n], special[row, :n], categories[row, :n] = side.ids, side.special, 0
        start = next(at for at in range(n) if list(side.ids[at : at + len(needle)]) == needle)
        for head, made in enumerate(maps):
            weights[row, head, :n, :n] = made(start, n - 1 - len(needle), len(needle), n)
    group = Group(ids, categories, special, lengths, tuple(sides))
    shape = (3, len(maps), lengths.max())
    f = torch.ones(shape) if norms is None else torch.tensor(norms, dtype=torch.float32).expand(shape).clone()
    kept = {"weights": weights, "transformed_norms": f}
    kept["visible"] = (kept["weights"] != 0).any(dim=1).float()
    block = Block("self", 0, "attention", tuple(range(len(maps))), 0.0, "text", "text", kept, ())
    run = replace(blocks.RUN, lens=lens, kept={})
    return SETTINGS.see(seen_block(run, block, group, group, 0))


def copying(needle, copy, size, n):
    maps = torch.full((n, n), 0.4 / n)
    for t in range(size - 1):
        maps[copy + t, needle + 1 + t] = 0.6
    return maps


def duplicating(needle, copy, size, n):
    maps = torch.full((n, n), 0.4 / n)
    for t in range(size - 1):
        maps[copy + t, needle + t] = 0.6
    return maps


def parking(needle, copy, size, n):
    maps = copying(needle, copy, size, n)
    maps[:, 0] = 2.0
    return maps


def test_a_head_that_copies_one_that_finds_the_same_token_and_one_that_parks(minilm):
    found: Any = hand_made(minilm, [copying, duplicating, parking])
    np.testing.assert_allclose(found["rates_weights"].mean[:, :2], [[1, 1], [1, 0], [0, 0]])
    np.testing.assert_allclose(found["rates_weights"].mean[:, 2], 0)


def test_by_norms_the_head_that_parks_on_a_zero_vector_retrieves(minilm):
    size = max(len(item.tokens or ()) for item in texts_of(minilm))
    found: Any = hand_made(minilm, [parking], [0.0] + [1.0] * (size - 1))
    np.testing.assert_allclose(found["rates_weights"].mean[0, :2], [0, 0])
    np.testing.assert_allclose(found["rates_norms"].mean[0, :2], [1, 1])


def test_every_depth_is_counted_apart(minilm):
    def only_late(needle, copy, size, n):
        return copying(needle, copy, size, n) if needle > n / 3 else parking(needle, copy, size, n)

    found: Any = hand_made(minilm, [only_late])
    assert found["at_depth_weights"].count[0].tolist() == [1, 1, 1]
    assert found["at_depth_weights"].mean[0, 0] == 0
    assert found["at_depth_weights"].mean[0, 2] == 1


def slowly(lens):
    """Rates of every head by loops, and how often the model predicts the next token."""
    inside, right, predicted = [], [], []
    for item in texts_of(lens):
        tokenizer = lens.subject.tokenizer
        ids = tokenizer.convert_tokens_to_ids(list(item.tokens or ()))
        needle = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(NEEDLE))
        m, n = len(needle), len(ids)
        start, copy = next(at for at in range(n) if ids[at : at + m] == needle), n - 1 - m
        there = torch.ones(1, n, dtype=torch.long)
        inputs = {"input_ids": torch.tensor([ids]), "attention_mask": there, "token_type_ids": 0 * there}
        trace = lens.trace(inputs)
        tops = np.stack([block.weighted_norms[0].argmax(-1).numpy() for block in trace.self_attention])
        queries = range(copy, copy + m - 1)
        inside.append(np.mean([(tops[:, :, q] >= start) & (tops[:, :, q] < start + m) for q in queries], axis=0))
        right.append(np.mean([tops[:, :, q] == start + 1 + q - copy for q in queries], axis=0))
        with torch.no_grad():
            logits = getattr(lens.subject.model(**inputs), "logits", None)
        if logits is not None:
            predicted.append(np.mean([int(logits[0, q].argmax()) == ids[q + 1] for q in queries]))
    return np.mean(inside, axis=0), np.mean(right, axis=0), np.mean(predicted) if predicted else None


@pytest.mark.parametrize("model", ["minilm", "causal"])
def test_rates_are_those_of_loops_over_texts_and_queries(model, request):
    lens = request.getfixturevalue(model)
    result = study(lens, TEXTS, studies=(SETTINGS,), length=64)["retrieval"]["self"]
    inside, right, predicted = slowly(lens)
    np.testing.assert_allclose(result.rates["inside", "norms"], inside, atol=1e-9)
    np.testing.assert_allclose(result.rates["next", "norms"], right, atol=1e-9)
    assert result.predicted == (None if predicted is None else pytest.approx(predicted))
    assert result.texts == 3
    assert 0 < result.chance[1] < result.chance[0] < 1


def test_columns_of_heads_and_the_note_of_encoders(minilm):
    findings = study(minilm, TEXTS, studies=(SETTINGS,), length=64)
    row = findings.document().tables()["retrieval_self"].rows[0]
    assert {"retrieval_weights", "retrieval_norms", "retrieval_next_weights"} <= row.keys()
    assert "not causal" in findings.show()
    assert "with a needle" in findings.run.corpus


def test_a_study_that_changes_the_texts_runs_alone(minilm, translator):
    with pytest.raises(StudyError, match="changes the texts, so it runs alone"):
        study(minilm, TEXTS, studies=("targets", "retrieval"))
    with pytest.raises(StudyError, match="No needle can be planted"):
        study(translator, TEXTS, studies=("retrieval",))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"length": 20}, "do not fit into 20"),
        ({"depths": ()}, "depths must be between"),
        ({"depths": (1.5,)}, "depths must be between"),
        ({"needle": "a"}, "two tokens at least"),
    ],
)
def test_a_needle_that_cannot_be_planted_is_refused(minilm, arguments, told):
    with pytest.raises(StudyError, match=told):
        texts_of(minilm, **arguments)


def test_a_run_that_is_resumed_gives_the_same_numbers_and_so_does_the_command_line(
    minilm, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("normlens.studies.run.SHARD", 1)
    monkeypatch.setattr("normlens.studies.run.SAVE", 0.0)
    done = []

    def progress(items, total):
        done.append(items)
        if sum(done) >= 2:
            raise KeyboardInterrupt

    whole = study(minilm, TEXTS, studies=(SETTINGS,), length=64)["retrieval"]["self"]
    with pytest.raises(KeyboardInterrupt):
        study(minilm, TEXTS, studies=(SETTINGS,), length=64, folder=tmp_path / "run", progress=progress)
    again = study(minilm, TEXTS, studies=(SETTINGS,), length=64, folder=tmp_path / "run", resume=True)
    for key, values in whole.rates.items():
        np.testing.assert_array_equal(again["retrieval"]["self"].rates[key], values)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    given = ["--set", f"needle={NEEDLE}", "--set", f"question={QUESTION}", "--length", "64"]
    assert main(["study", "retrieval", "--corpus", str(tmp_path / "texts.txt"), *given]) == 0
    assert "would be inside the needle" in capsys.readouterr().out.replace("\n  ", " ")
    assert main(["study", "retrieval", "--corpus", str(tmp_path / "texts.txt"), "--length", "20"]) == 1
    said = capsys.readouterr().err
    assert "--length" in said
    assert "Traceback" not in said
