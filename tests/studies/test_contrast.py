"""Contrasts between sets of words: against loops over pairs of words, and against hand-made maps."""

import json
from typing import Any

import numpy as np
import pytest
import torch

import normlens as nl
from normlens.cli.main import main
from normlens.models import Side
from normlens.signature import Signature
from normlens.statistics import Moments
from normlens.studies import ContrastStudy, Facts, Group, StudyError, Sums, seen_block, study
from normlens.studies.intervals import of_mean, of_ratios, total

pytestmark = pytest.mark.usefixtures("as_users_run_it")
TEXTS = (
    "The doctor said he was late, and she laughed.",
    "She met the nurse. The nurse told her that he left.",
    "His doctor and her nurse spoke of unbelievableness.",
    "He said nothing.",
    "Doctor, doctor: she is here, he is not, and they are.",
)
SETS = {"words": ("doctor", "nurse", "unbelievableness"), "first": ("he", "his"), "second": ("she", "her")}


def words_slowly(trace):
    """(word, positions) of a text of the bundled tokenizer, which writes punctuation as words of their own."""
    words = []
    for position, (token, special) in enumerate(zip(trace.tokens[0], trace.special[0], strict=True)):
        if special:
            continue
        if token.startswith("##"):
            word, positions = words[-1]
            words[-1] = (word + token[2:], [*positions, position])
        else:
            words.append((token, [position]))
    return words


def slowly(lens, direction, measure):
    """For each set the value of every pair, each (layer, head), with the number of its text and its distance."""
    pairs = {"first": [], "second": []}
    for number, text in enumerate(TEXTS):
        trace = lens.trace(text)
        maps = [b.weights if measure == "weights" else b.weighted_norms for b in trace.self_attention]
        maps = np.stack([m[0].double().numpy() for m in maps])
        visible = np.any(maps > 0, axis=(0, 1))
        maps = maps / maps.sum(-1, keepdims=True)
        for a, at in words_slowly(trace):
            for b, to in words_slowly(trace):
                for which in pairs:
                    if a in SETS["words"] and b in SETS[which]:
                        queries, keys = (at, to) if direction == "query" else (to, at)
                        if not visible[queries[0], keys[-1]]:
                            continue
                        value = np.mean([maps[:, :, i, keys].sum(-1) for i in queries], axis=0)
                        far = np.mean([abs(i - j) for i in queries for j in keys])
                        pairs[which].append((value, number, far))
    return pairs


@pytest.mark.parametrize("model", ["minilm", "causal"])
@pytest.mark.parametrize("direction", ["query", "key"])
@pytest.mark.parametrize("measure", ["weights", "norms"])
def test_differences_are_those_of_loops_over_pairs_of_words(model, direction, measure, request):
    lens = request.getfixturevalue(model)
    result = study(lens, list(TEXTS), studies=(ContrastStudy(**SETS),))["contrast"]["self"]
    pairs = slowly(lens, direction, measure)
    for which, those in pairs.items():
        values = np.mean([value for value, _, _ in those], axis=0)
        np.testing.assert_allclose(result.means[direction, measure, which], values, atol=2e-6)
        assert result.pairs[direction, which] == pytest.approx(len(those))
        assert result.distance[direction, which] == pytest.approx(np.mean([far for _, _, far in those]))
        assert result.texts[direction, which] == len({number for _, number, _ in those})
    within = []
    for number in range(len(TEXTS)):
        parts = [[value for value, text, _ in pairs[which] if text == number] for which in pairs]
        if all(parts):
            within.append(np.mean(parts[0], axis=0) - np.mean(parts[1], axis=0))
    assert result.both[direction] == len(within)
    difference = result.in_texts[direction, measure]
    np.testing.assert_allclose(difference.mean, np.mean(within, axis=0), atol=2e-6)
    over = result.over_pairs[direction, measure]
    np.testing.assert_allclose(
        over.mean, result.means[direction, measure, "first"] - result.means[direction, measure, "second"], atol=1e-9
    )
    few = min(result.texts[direction, which] for which in pairs) < 2
    assert np.isnan(over.low).all() if few else (over.low < over.mean).all()


def test_the_interval_of_a_mean_is_students():
    values = np.random.default_rng(0).normal(0.3, 1, (12, 3))
    interval = of_mean(Moments.of(values[:5]) + Moments.of(values[5:]))
    error = values.std(axis=0, ddof=1) / np.sqrt(12)
    np.testing.assert_allclose(interval.low, values.mean(axis=0) - 2.2009852 * error)
    np.testing.assert_allclose(interval.high, values.mean(axis=0) + 2.2009852 * error)
    assert np.isnan(of_mean(Moments.of(values[:1])).low).all()


def test_the_interval_over_pairs_covers_the_truth_as_often_as_it_says():
    """Texts of 1 to 4 pairs whose values go together within a text; the true difference is 0.1."""
    random, covered = np.random.default_rng(1), 0
    for _ in range(400):
        units = []
        for _ in range(40):
            shared, counts = random.normal(0, 0.3), random.integers(0, 5, 2)
            sums = [
                (mean + shared + random.normal(0, 0.2, n)).sum() for mean, n in zip((0.5, 0.4), counts, strict=True)
            ]
            units.append([sums[0], counts[0], sums[1], counts[1]])
        moments = Moments.of(np.array(units)[:, None])
        products = Moments.of(np.array([np.outer(u, u) for u in units])[:, None])
        interval = of_ratios(total(moments), total(products), 40)
        covered += interval.low[0] < 0.1 < interval.high[0]
    assert 0.92 <= covered / 400 <= 0.98


def hand_made(maps, norms, tokens, word_ids):
    """The study's result for one head on texts with these maps, one batch each."""
    sums = Sums({}, "contrast")
    counter = ContrastStudy(words=("a",), first=("x", "xz"), second=("y",)).counter(sums, RUN)
    for alpha in maps:
        n = len(tokens)
        side = Side("text", tuple(range(n)), tuple(tokens), (False,) * n, tuple(word_ids))
        group = Group(np.arange(n)[None], np.zeros((1, n), np.int8), np.zeros((1, n), bool), np.array([n]), (side,))
        kept = {
            "weights": torch.tensor(alpha, dtype=torch.float32)[None, None],
            "transformed_norms": torch.tensor(norms, dtype=torch.float32)[None, None],
        }
        kept["visible"] = (kept["weights"] != 0).any(dim=1).float()
        block = nl.Block("self", 0, "attention", (0,), 0.0, "text", "text", kept, ((n, n),))
        counter.see(seen_block(RUN, block, group, group, 0))
    return ContrastStudy(words=("a",), first=("x", "xz"), second=("y",)).result(sums.of("self"), RUN)


RUN = Facts(None, "made", "by hand", Signature(()), ("other",), None, 0, 8)


def test_a_head_that_attends_to_one_set_alone_is_found_and_norms_can_say_the_opposite():
    maps = [np.array([[0.1, part, 0.9 - part], [0.3, 0.3, 0.4], [0.3, 0.3, 0.4]]) for part in (0.7, 0.6, 0.65)]
    result = hand_made(maps, [1, 0, 1], ["a", "x", "y"], [0, 1, 2])
    over = result.over_pairs["query", "weights"]
    assert over.mean[0, 0] == pytest.approx(0.65 - 0.25)
    assert over.clear.all()
    assert result.in_texts["query", "weights"].mean[0, 0] == pytest.approx(0.4)
    assert result.over_pairs["query", "norms"].mean[0, 0] < 0
    assert result.pairs["query", "first"] == 3
    assert result.distance["query", "second"] == 2


def test_the_pieces_of_a_key_are_added_and_those_of_a_query_averaged():
    alpha = np.array([[0.1, 0.2, 0.2, 0.5], [0.1, 0.5, 0.2, 0.2], [0.7, 0.1, 0.1, 0.1], [0.7, 0.1, 0.1, 0.1]])
    result = hand_made([alpha], np.ones(4), ["▁a", "a", "▁x", "▁y"], [0, 0, 1, 2])
    assert np.isnan(result.means["query", "weights", "first"]).all()  # "aa" is no word of the set
    result = hand_made([alpha], np.ones(4), ["▁a", ".", "▁x", "▁y"], [0, 0, 1, 2])
    assert result.means["query", "weights", "first"][0, 0] == pytest.approx(0.2)  # the full stop is no part of "a"
    result = hand_made([alpha], np.ones(4), ["a", "x", "##z", "y"], [0, 1, 1, 2])
    assert result.means["query", "weights", "first"][0, 0] == pytest.approx(0.2 + 0.2)
    assert result.means["key", "weights", "first"][0, 0] == pytest.approx((0.1 + 0.7) / 2)
    assert result.pairs["query", "first"] == pytest.approx(1)


def test_one_text_gives_no_interval_and_no_clear_head():
    result = hand_made([np.full((3, 3), 1 / 3)], np.ones(3), ["a", "x", "y"], [0, 1, 2])
    over = result.over_pairs["query", "weights"]
    assert np.isnan(over.low).all()
    assert not over.clear.any()


def test_case_is_matched_only_when_asked(minilm, causal):
    upper: Any = {"words": ("Doctor",), "first": ("HE",), "second": ("She",)}
    loose = study(minilm, list(TEXTS), studies=(ContrastStudy(**upper),))["contrast"]["self"]
    assert loose.occurrences == {"Doctor": 4, "HE": 4, "She": 3}
    strict = study(minilm, list(TEXTS), studies=(ContrastStudy(match_case=True, **upper),))
    assert not any(strict["contrast"]["self"].occurrences.values())  # the bundled tokenizer writes small letters
    assert "No text holds a pair" in strict.show()
    assert "Not in the corpus: Doctor, HE and She." in strict.show()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"first": ("he",), "second": ("He",)}, "first and in the second"),
        ({"words": ("two words",)}, "must be one word"),
        ({"words": ("",)}, "must be one word"),
    ],
)
def test_sets_that_cannot_be_compared_are_refused(arguments, told):
    with pytest.raises(StudyError, match=told):
        ContrastStudy(**arguments)


def test_without_words_the_command_says_which_arguments_to_give(tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    command = ["study", "contrast", "--corpus", str(tmp_path / "texts.txt")]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert "--set words=doctor,nurse --set first=he,his --set second=she,her" in said
    assert "Traceback" not in said
    given = ["--set", "words=doctor,nurse", "--set", "first=he,his", "--set", "second=she,her"]
    assert main([*command, *given, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert "contrast(words=('doctor', 'nurse')" in printed["signature"]
    assert len(printed["tables"]["contrast_self"]) == 72
    assert main([*command, *given]) == 0
    assert "would by chance" in capsys.readouterr().out.replace("\n", " ")


def test_a_run_that_is_resumed_gives_the_same_numbers(minilm, tmp_path, monkeypatch):
    monkeypatch.setattr("normlens.studies.run.SHARD", 2)
    monkeypatch.setattr("normlens.studies.run.SAVE", 0.0)
    done = []

    def progress(items, total):
        done.append(items)
        if sum(done) >= 4:
            raise KeyboardInterrupt

    whole = study(minilm, list(TEXTS), studies=(ContrastStudy(**SETS),))["contrast"]["self"]
    with pytest.raises(KeyboardInterrupt):
        study(minilm, list(TEXTS), studies=(ContrastStudy(**SETS),), folder=tmp_path, progress=progress)
    again = study(minilm, list(TEXTS), studies=(ContrastStudy(**SETS),), folder=tmp_path, resume=True)
    for key, over in again["contrast"]["self"].over_pairs.items():
        np.testing.assert_array_equal(over.low, whole.over_pairs[key].low)
        np.testing.assert_array_equal(over.mean, whole.over_pairs[key].mean)
