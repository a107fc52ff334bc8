"""Cuts: their scores against loops, peaks against the definition, windows against the whole."""

import json
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import normlens as nl
from normlens.cli.main import main
from normlens.studies import SegmentError, segmentation_scores
from normlens.studies.cuts import at_random, interval, joined, punctuated, scored, units
from normlens.studies.segmentation import Cutting, _relative, _windows, cut_again, novelty

TEXT = (
    "The mill stood by the river, and the river stood still. Nobody believed it. Why would they? A mill needs water "
    "that moves. “It moved once,” said the baker. She sold bread, and she sold it well."
)


@st.composite
def cut_texts(draw):
    size = draw(st.integers(1, 40))
    places = st.lists(st.integers(1, max(1, size - 1)), unique=True, max_size=size - 1) if size > 1 else st.just([])
    return sorted(draw(places)), sorted(draw(places)), size


@given(cut_texts())
def test_the_scores_are_those_of_plain_loops(case):
    cuts, reference, size = case
    got = scored(cuts, reference, size)
    window = max(2, round(size / (len(reference) + 1) / 2))
    unlike, differs, places = 0, 0, 0
    for start in range(size - window):
        ours, theirs = (sum(start < cut <= start + window for cut in part) for part in (cuts, reference))
        unlike += (ours > 0) != (theirs > 0)
        differs += ours != theirs
        places += 1
    if places:
        assert got.p_k == pytest.approx(unlike / places)
        assert got.window_diff == pytest.approx(differs / places)
    else:
        assert np.isnan(got.p_k)
        assert np.isnan(got.window_diff)
    right = len([cut for cut in cuts if cut in reference])
    if cuts and reference and right:
        precision, recall = right / len(cuts), right / len(reference)
        assert (got.precision, got.recall) == (precision, recall)
        assert got.f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_the_true_cuts_have_no_error_and_no_cut_finds_nothing():
    perfect, none = scored([3, 7], [3, 7], 12), scored([], [3, 7], 12)
    assert (perfect.p_k, perfect.window_diff, perfect.f1) == (0, 0, 1)
    assert (none.recall, none.f1) == (0, 0)
    assert none.p_k > 0


def test_a_near_miss_costs_less_than_a_far_one_by_window_and_the_same_by_f1():
    near, far = scored([9], [10], 20), scored([2], [10], 20)
    assert near.p_k < far.p_k
    assert near.f1 == far.f1 == 0


def test_punctuation_ends_a_sentence_also_inside_quotes_and_never_at_the_end():
    words = [TEXT[a:b] for a, b in units(TEXT)]
    ends = [words[cut - 1] for cut in punctuated(TEXT)]
    assert ends == ["still.", "it.", "they?", "moves.", "baker."]


def test_scripts_without_spaces_are_cut_between_characters():
    text = "水が流れる。水車は回る。"
    assert len(units(text)) == len(text)
    assert punctuated(text) == [6]


def test_joined_segments_have_their_cuts_where_they_met():
    text, cuts = joined(["One two.", " ", "Three\nfour five."])
    assert text == "One two. Three four five."
    assert cuts == [2]


def test_random_cuts_are_as_many_as_asked_for_and_the_same_for_a_seed():
    first, second = (at_random(4, 30, np.random.default_rng(3)) for _ in range(2))
    assert first == second
    assert len(set(first)) == 4
    assert min(first) >= 1
    assert max(first) < 30
    assert at_random(4, 1, np.random.default_rng(0)) == []


def test_an_interval_holds_its_mean_and_one_text_has_none():
    mean, low, high = interval(np.linspace(0, 1, 50))
    assert low < mean < high
    assert np.isnan(interval(np.array([0.5]))[1])


@given(size=st.integers(2, 12), reach=st.integers(1, 5), seed=st.integers(0, 99))
def test_novelty_compares_each_side_with_itself_and_with_the_other(size, reach, seed):
    alike = np.random.default_rng(seed).random((size, size))
    got = novelty(alike, reach)
    for cut in range(1, size):
        left, right = range(max(0, cut - reach), cut), range(cut, min(size, cut + reach))
        mean = [np.mean([alike[i, j] for i in a for j in b]) for a, b in ((left, left), (right, right), (left, right))]
        assert got[cut - 1] == pytest.approx((mean[0] + mean[1]) / 2 - mean[2])


def test_two_blocks_of_like_tokens_are_cut_between_them():
    alike = np.kron(np.eye(2), np.ones((6, 6)))
    assert novelty(alike, 4).argmax() == 5


def test_a_cut_is_a_peak_above_the_threshold_at_the_end_of_its_word(minilm):
    segmented = nl.segment(minilm, TEXT, threshold=0.5)
    peaks = set()
    for at, score in enumerate(segmented.scores):
        before = segmented.scores[at - 1] if at else -np.inf
        after = segmented.scores[at + 1] if at + 1 < len(segmented.scores) else -np.inf
        if score > before and score >= after and score > 0.5:
            peaks.add(int(segmented.words[at]) + 1)
    assert set(segmented.cuts) == peaks - {len(units(TEXT))}
    assert "".join(" ".join(segmented.segments).split()) == "".join(TEXT.split())


@pytest.mark.parametrize("by", ["separators", "similarity"])
def test_the_scores_of_a_short_text_are_those_of_a_trace(minilm, by):
    segmented = nl.segment(minilm, TEXT, by=by, layers=2, reach=5)
    trace = minilm.trace(TEXT, fields=("weights", "similarity"))
    real = [at for at, special in enumerate(trace.sides[0].special) if not special]
    if by == "separators":
        received = [block.weights[0].double().mean(dim=(0, 1)) for block in list(trace.self_attention)[-2:]]
        expected = torch.stack(received).mean(dim=0).numpy()[real]
    else:
        cosines = []
        for block in list(trace.self_attention)[-2:]:
            products = block["similarity"][0].double()
            norms = products.diagonal(dim1=1, dim2=2).sqrt()
            cosines.append((products / norms[:, :, None] / norms[:, None]).mean(dim=0))
        expected = novelty(torch.stack(cosines).mean(dim=0).numpy()[np.ix_(real, real)], 5)
    expected = (expected - expected.mean()) / expected.std()
    np.testing.assert_allclose(segmented.scores, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("model", ["minilm", "causal"])
def test_every_token_of_a_long_text_is_scored_once_where_it_is_deepest(request, model):
    lens = request.getfixturevalue(model)
    windows = _windows(lens, TEXT * 3, 32)
    assert len(windows.ids) > 3
    ids = lens.subject.tokenizer(TEXT * 3, add_special_tokens=False)["input_ids"]
    owners = np.zeros(len(ids), int)
    for row, first in enumerate(windows.first):
        own = np.array(windows.ids[row])[windows.real[row]]
        assert own.tolist() == ids[first : first + len(own)]
        owners[first : first + len(own)] += windows.owned[row]
        inner = np.flatnonzero(windows.owned[row])
        if first and first + len(own) < len(ids):
            assert inner.min() >= 5
            assert inner.max() < len(own) - 5
    assert (owners == 1).all()
    segmented = nl.segment(lens, TEXT * 3, window=32)
    assert np.isfinite(segmented.scores).all()


def test_a_tokenizer_that_cuts_the_beginning_of_texts_gives_the_same_scores(minilm, monkeypatch):
    expected = nl.segment(minilm, TEXT * 3, window=32)
    monkeypatch.setattr(minilm.subject.tokenizer, "truncation_side", "left")
    got = nl.segment(minilm, TEXT * 3, window=32)
    assert minilm.subject.tokenizer.truncation_side == "left"
    assert got.cuts == expected.cuts
    np.testing.assert_array_equal(got.scores, expected.scores)


def test_asking_for_segments_gives_that_many_and_the_highest_peaks_first(minilm):
    cuts = [set(nl.segment(minilm, TEXT, segments=n).cuts) for n in range(1, 6)]
    assert [len(part) for part in cuts] == [0, 1, 2, 3, 4]
    assert all(fewer < more for fewer, more in pairwise(cuts))


def test_with_punctuation_only_every_segment_ends_in_a_mark(minilm):
    segmented = nl.segment(minilm, TEXT, punctuation=True, threshold=-1.0)
    assert len(segmented.segments) > 1
    assert all(not part[-1].isalnum() for part in segmented.segments)


def test_a_threshold_can_be_changed_without_the_model(minilm):
    low, high = (nl.segment(minilm, TEXT, threshold=k) for k in (0.0, 1.5))
    assert tuple(cut_again(low, Cutting(threshold=1.5))) == high.cuts


@pytest.mark.parametrize("causal", [False, True])
def test_no_token_stands_out_where_every_query_attends_equally_to_all_it_sees(causal):
    """Early keys of a causal model are seen by more queries, and by queries with fewer keys."""
    visible = torch.ones(1, 2, 9, 9).tril() if causal else torch.ones(1, 2, 9, 9)
    torch.testing.assert_close(_relative(visible / visible.sum(dim=-1, keepdim=True), visible[:, 0]), torch.ones(1, 9))


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"by": "colour"}, "no by 'colour'"),
        ({"measure": "lengths"}, "no measure 'lengths'"),
        ({"layers": 9}, "the model has 6"),
        ({"segments": 0}, "segments must be at least 1"),
        ({"window": 4}, "window must be at least 8"),
    ],
    ids=str,
)
def test_a_choice_that_does_not_exist_is_refused_in_words(minilm, choices, words):
    with pytest.raises(SegmentError, match=words):
        nl.segment(minilm, TEXT, **choices)


def test_what_cannot_be_cut_is_refused_in_words(minilm, translator):
    with pytest.raises(SegmentError, match="no text to cut"):
        nl.segment(minilm, " \n")
    with pytest.raises(SegmentError, match="cannot cut a text"):
        nl.segment(translator, TEXT)
    with pytest.raises(SegmentError, match="not those of this text"):
        nl.segment(minilm, TEXT).score(["Another text.", "Altogether."])
    with pytest.raises(SegmentError, match="no text has two segments"):
        segmentation_scores(minilm, [["Only one."]])
    with pytest.raises(SegmentError, match="every way is tried"):
        segmentation_scores(minilm, [["One.", "Two."]], by="similarity")


DOCUMENTS = [
    ["The mill stood by the river.", "Nobody believed it.", "Why would they?"],
    ["She sold bread in the old town.", "He bought two loaves of it."],
]


def test_texts_of_known_segments_are_scored_beside_cuts_that_need_no_model(minilm):
    scores = segmentation_scores(minilm, DOCUMENTS, seed=1)
    rows = {row["method"]: row for row in scores.rows}
    assert rows["punctuation"]["f1"] == 1
    assert rows["punctuation"]["p_k"] == 0
    assert rows["no cut"]["f1"] == 0
    assert 0 < rows["random, number known"]["f1"] < 1
    assert rows["similarity, number known"]["cuts"] == 1.5
    assert rows["attention α"]["f1_low"] <= rows["attention α"]["f1"] <= rows["attention α"]["f1_high"]
    assert scores.rows == segmentation_scores(minilm, DOCUMENTS, seed=1).rows
    assert "not better than punctuation" in scores.sentence or "no better than chance" in scores.sentence


def test_the_command_cuts_a_file_and_says_so_in_text_and_in_json(tmp_path, capsys):
    file = tmp_path / "story.txt"
    file.write_text(TEXT, encoding="utf-8")
    assert main(["segment", str(file), "--segments", "3"]) == 0
    assert "3 segments | model:" in capsys.readouterr().out
    assert main(["segment", str(file), "--segments", "3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [TEXT[s["start"] : s["end"]] for s in told["segments"]] == [s["text"] for s in told["segments"]]
    assert len(told["tokens"]) == len(told["scores"])


@pytest.mark.parametrize("known", ["lines", "paragraphs", "items"])
def test_the_command_scores_known_lines_paragraphs_and_items(tmp_path, capsys, known):
    file = tmp_path / ("known.jsonl" if known == "items" else "known.txt")
    if known == "items":
        content = "\n".join(json.dumps({"text": part[:2]}) for part in DOCUMENTS)
    else:
        content = "\n\n".join("\n".join(part) for part in DOCUMENTS)
    file.write_text(content, encoding="utf-8")
    assert main(["segment", str(file), "--score", known, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["texts"] == (1 if known == "paragraphs" else 2)
    assert {row["method"] for row in told["scores"]} >= {"attention α", "punctuation", "random, number known"}


def test_the_command_refuses_a_file_that_is_not_there_without_a_traceback(tmp_path, capsys):
    assert main(["segment", str(tmp_path / "none.txt")]) == 1
    assert "There is no file" in capsys.readouterr().err
