"""Scores added up over sentences and passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import normlens as nl
from normlens.attribution.passages import sentences

CONTEXT = "the big cat sat . a dog ran under the tree !"


def test_a_sentence_ends_with_its_full_stop_and_what_closes_it():
    names = '[CLS] he said : " no . " then he left ! [SEP] why ? ? yes'.split()
    special = [name.startswith("[") for name in names]
    assert sentences(names, special) == [None, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, None, 2, 2, 2, 3]


def test_the_passages_and_what_is_left_add_up_to_all_scores(writer):
    found = writer.attribute(CONTEXT, answer="the cat slept", by="gradient_x_input")
    by_sentence = found.passages()
    assert [(one.first, one.last) for one in by_sentence] == [(0, 11), (12, 13)]
    given_ones = found.passages(["the big cat", "a dog  RAN"])
    assert [(one.text, one.first, one.last) for one in given_ones[:2]] == [("the big cat", 0, 2), ("a dog RAN", 5, 7)]
    assert [one.text for one in given_ones[2:]] == ["(the answer so far)", "(other tokens)"]
    total = found.scores.sum().item()
    for passages in (by_sentence, given_ones):
        assert sum(one.score for one in passages) == pytest.approx(total, abs=1e-4)
    assert given_ones[0].score == pytest.approx(found.scores[0, :3].sum().item(), abs=1e-5)


def test_a_passage_that_is_not_there_is_refused(writer):
    with pytest.raises(nl.NormlensError, match="Passage 1 is not found"):
        writer.attribute(CONTEXT).passages(["a dog", "the big cat"])


def test_a_passage_begins_and_ends_with_tokens_so_that_none_is_counted_twice(classifier):
    found = classifier.attribute("the cat sat at mat", by="gradient_x_input")
    (first, _) = found.passages(["s a t"])
    assert (first.first, first.last) == (3, 3)
    for parts in (["s", "at"], ["th"], ["at mat at"]):  # "s" stands in <s> and </s> too
        with pytest.raises(nl.NormlensError, match="is not found"):
            found.passages(parts)
    (mat, _) = found.passages(["mat"])
    assert mat.score == pytest.approx(found.scores[0, 5].item())


@given(st.lists(st.sampled_from("a . ! ” [SEP]".split()), max_size=12))
def test_sentences_are_numbered_from_left_to_right(names):
    numbers = sentences(names, [name == "[SEP]" for name in names])
    there = [number for number in numbers if number is not None]
    assert [number is None for number in numbers] == [name == "[SEP]" for name in names]
    assert there == sorted(there)
    assert set(there) == set(range(len(set(there))))
