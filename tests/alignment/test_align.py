"""Sentence pairs in, links out: in order, with a choice that is told, and nothing lost on the way."""

import pytest
from translators import PAIRS, marian

import normlens as nl
from normlens.alignment import (
    NothingToChoose,
    Reading,
    align,
    choose,
    compare_methods,
    each_alignment,
    paired,
    splitter,
)
from normlens.alignment.aligner import both, mutual, shares, strongest
from normlens.alignment.links import symmetrised
from normlens.alignment.maps import SHARD, each_map

SOURCES = [" ".join(source) for source, _ in PAIRS]
TARGETS = [" ".join(target) for _, target in PAIRS]
SWAPPED = [(target, source) for source, target in PAIRS]


@pytest.fixture(scope="module")
def forward():
    return marian(0)


@pytest.fixture(scope="module")
def backward():
    return marian(1)


def test_one_direction_links_each_word_to_what_brings_it_most(forward):
    found = align(forward, SOURCES, TARGETS, layers=1)
    reading = Reading("norms", "input", 1)
    assert list(found) == [strongest(maps[reading]) for maps in each_map(forward, PAIRS, [reading])]


def test_two_directions_are_multiplied_before_links_are_cut(forward, backward):
    found = align(forward, SOURCES, TARGETS, reverse=backward, layers=(0, 1), reverse_layers=1, second_link=1.0)
    readings = [Reading("norms", "input", 0), Reading("norms", "input", 1)]
    slow = [
        mutual(both(shares([one[r] for r in readings]), shares([two[readings[1]]])))
        for one, two in zip(each_map(forward, PAIRS, readings), each_map(backward, SWAPPED, readings), strict=True)
    ]
    assert list(found) == slow
    assert any(alignment.links for alignment in found)


@pytest.mark.parametrize("how", ["intersection", "union", "grow-diag", "grow-diag-final-and"])
def test_hard_links_of_two_directions_can_be_combined_instead(forward, backward, how):
    found = align(forward, SOURCES, TARGETS, reverse=backward, layers=0, combine=how)
    ahead = align(forward, SOURCES, TARGETS, layers=0)
    behind = align(backward, TARGETS, SOURCES, layers=0)
    assert list(found) == [symmetrised(a, b.reversed(), how) for a, b in zip(ahead, behind, strict=True)]


def test_words_may_be_given_as_words(forward):
    assert list(align(forward, *zip(*PAIRS, strict=True), layers=0)) == list(align(forward, SOURCES, TARGETS, layers=0))


def test_the_signature_says_what_was_chosen(forward, backward):
    found = align(forward, SOURCES, TARGETS, reverse=backward)
    assert "AWI L" in str(found.signature) or "AWO L" in str(found.signature)
    assert "links:soft" in str(found.signature)
    assert "words:whitespace" in str(found.signature)
    assert "words:punctuation" in str(align(forward, SOURCES, TARGETS, layers=0, words="punctuation").signature)
    assert "words:own" in str(align(forward, SOURCES, TARGETS, layers=0, words=str.split).signature)
    assert "agree" in found.plan.forward.why


def test_lines_without_words_stay_where_they_are(forward):
    found = align(forward, ["das haus", "", "das"], ["the house", "a", ""], layers=0)
    assert [bool(alignment.links) for alignment in found][1:] == [False, False]
    assert found.left_out == {1: "the source is empty", 2: "the target is empty"}


def test_a_side_that_only_one_direction_cannot_read_is_named_as_the_user_named_it(forward, backward):
    long = " ".join(["haus"] * 30)
    found = align(forward, ["das haus", long], ["the house", "the house"], reverse=backward, layers=0)
    assert found.left_out == {1: "the source has 61 pieces, the model takes 12"}
    assert align(backward, ["a"], [""], reverse=forward, layers=0).left_out == {0: "the target is empty"}


def test_a_choice_from_few_pairs_is_called_uncertain(forward, backward):
    for reverse in (None, backward):
        assert "uncertain" in align(forward, SOURCES, TARGETS, reverse=reverse).plan.forward.why
        assert "uncertain" not in align(forward, SOURCES * 7, TARGETS * 7, reverse=reverse).plan.forward.why


def test_directions_that_hardly_agree_are_told(forward, backward, monkeypatch):
    monkeypatch.setattr("normlens.alignment.layers._agreement", lambda front, back: 0.2)
    assert "may be swapped" in align(forward, SOURCES * 7, TARGETS * 7, reverse=backward).plan.forward.why


def test_more_pairs_than_a_shard_keep_their_order(forward):
    few = align(forward, SOURCES, TARGETS, layers=0)
    many = align(forward, SOURCES * (SHARD // 3 + 2), TARGETS * (SHARD // 3 + 2), layers=0)
    assert [alignment.links for alignment in many] == [alignment.links for alignment in few] * (SHARD // 3 + 2)


def test_links_come_while_the_text_is_still_being_read(forward):
    read = []

    def endless():
        while True:
            read.append(1)
            yield PAIRS[0]

    found = each_alignment(choose(forward, None, PAIRS, layers=0), endless())
    assert next(found).links == align(forward, SOURCES[:1], TARGETS[:1], layers=0)[0].links
    assert len(read) <= SHARD + 1


@pytest.mark.parametrize(("sources", "targets"), [(2, 3), (3, 1), (0, 1)])
def test_sides_of_different_length_are_refused(sources, targets):
    with pytest.raises(nl.InputError, match=f"end after {min(sources, targets)}, the other side does not"):
        list(paired(SOURCES[:sources], TARGETS[:targets], "whitespace"))


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"layers": 7}, "No layer 7: the cross-attention of .* has layers 0 to 1"),
        ({"layers": ()}, "No layers are named"),
        ({"combine": "vote"}, "no combine 'vote'"),
        ({"measure": "gradient"}, "no measure 'gradient'"),
        ({"position": "above"}, "no position 'above'"),
        ({"layers": 0, "head": 2}, "No head 2: layer 0 of the cross-attention has heads 0 to 1"),
        ({"layers": 0, "head": -1}, "No head -1"),
        ({"layers": 0, "min_confidence": 1.0}, r"min_confidence must be at least 0 and below 1 \(got 1\)"),
        ({"layers": 0, "min_confidence": float("nan")}, r"min_confidence must be .* \(got nan\)"),
        ({"layers": 0, "second_link": -3.0}, r"second_link must be above 0 and at most 1 \(got -3\)"),
    ],
)
def test_a_choice_that_does_not_exist_is_refused(forward, choices, said):
    with pytest.raises(nl.InputError, match=said):
        align(forward, SOURCES, TARGETS, **choices)


@pytest.mark.parametrize("asked", [{"gradients": ("guided",)}, {"aligners": ("giza",)}])
def test_an_aligner_that_does_not_exist_is_refused_before_any_work(forward, asked):
    with pytest.raises(nl.InputError, match=r"There is no aligner '(guided|giza)'"):
        compare_methods(forward, None, [], [], **asked)


def test_nothing_to_choose_layers_from_is_said(forward, backward):
    for reverse in (None, backward):
        with pytest.raises(NothingToChoose, match="no sentence pair"):
            align(forward, [""], [""], reverse=reverse)


def test_a_word_with_a_space_in_it_is_no_word(forward):
    with pytest.raises(nl.InputError, match="not a word: 'das haus'"):
        align(forward, [["das haus"]], [["the"]], layers=0)


def test_words_are_split_as_asked():
    assert splitter("whitespace")(" Ja,  das! ") == ["Ja,", "das!"]
    assert splitter("punctuation")("Ja, das kostet 3,50 €!") == ["Ja", ",", "das", "kostet", "3,50", "€", "!"]
    moses = splitter("moses:de")
    assert moses('Ja, das kostet "3,50 €", z. B.') == [
        "Ja",
        ",",
        "das",
        "kostet",
        '"',
        "3,50",
        "€",
        '"',
        ",",
        "z.",
        "B.",
    ]
    assert moses("") == []
    assert splitter(list)("ab") == ["a", "b"]
    with pytest.raises(nl.InputError, match="no word splitter 'letters'"):
        splitter("letters")
