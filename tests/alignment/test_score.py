"""Scores agree with counting by hand, add up over shards, and say how far they can be trusted."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normlens.alignment import resample
from normlens.alignment.gold import Gold
from normlens.alignment.links import Alignment, reverse
from normlens.alignment.resample import bootstrap, compare
from normlens.alignment.score import Counts, ScoreError, Tally, numbering_doubts, score, tally

words = st.integers(0, 3)
grids = st.frozensets(st.tuples(words, words), max_size=8)
corpora = st.lists(st.tuples(grids, st.builds(Gold, grids, grids)), min_size=1, max_size=8)


def links(text):
    return frozenset((int(a), int(b)) for a, b in (token.split("-") for token in text.split()))


def gold(sure, possible=""):
    return Gold(links(sure), links(possible))


def test_a_pair_of_sentences_counted_by_hand():
    """First: 0-0 is sure, 1-2 only possible, 3-3 wrong, 1-1 missed. Second: all found, target word 1 has no link."""
    first = score([links("0-0 1-2 3-3")], [gold("0-0 1-1", "1-2 2-2")])
    assert first == Counts(links=3, sure=2, sure_hits=1, possible_hits=2, sentences=1)
    assert (first.aer, first.precision, first.recall) == pytest.approx((1 - 3 / 5, 2 / 3, 1 / 2))
    second = score([Alignment.of(links("0-0 1-2"))], [gold("0-0 1-2")])
    assert (second.aer, second.precision, second.recall) == (0, 1, 1)
    both = first + second
    assert both == Counts(links=5, sure=4, sure_hits=3, possible_hits=4, sentences=2)
    assert both.aer == pytest.approx(1 - 7 / 9)


def test_a_link_to_a_word_that_should_stay_unaligned_is_wrong():
    counts = score([links("0-0 1-1")], [gold("0-0")])
    assert (counts.precision, counts.recall, counts.aer) == pytest.approx((1 / 2, 1, 1 / 3))


def test_possible_links_neither_help_recall_nor_hurt_precision():
    wanted = gold("0-0", "1-1 2-2")
    without, found = score([links("0-0")], [wanted]), score([links("0-0 1-1")], [wanted])
    assert (without.recall, without.precision, without.aer) == (found.recall, found.precision, found.aer) == (1, 1, 0)
    only = score([links("1-1")], [wanted])
    assert (only.recall, only.precision, only.aer) == (0, 1, 0.5)


def test_gold_of_possible_links_only():
    right, wrong = score([links("0-0")], [gold("", "0-0")]), score([links("0-1")], [gold("", "0-0")])
    assert (right.aer, right.precision, wrong.aer, wrong.precision) == (0, 1, 1, 0)
    assert math.isnan(right.recall)
    with pytest.raises(ScoreError, match="Nothing to score"):
        _ = score([frozenset()], [gold("", "0-0")]).aer


def test_finding_nothing_is_all_wrong_and_has_no_precision():
    counts = score([frozenset()], [gold("0-0")])
    assert (counts.aer, counts.recall) == (1, 0)
    assert math.isnan(counts.precision)


@given(corpus=corpora, cut=st.integers(0, 8))
def test_counts_of_shards_are_the_counts_of_the_whole(corpus, cut):
    found, golds = [a for a, _ in corpus], [g for _, g in corpus]
    assert score(found[:cut], golds[:cut]) + score(found[cut:], golds[cut:]) == score(found, golds)
    assert tally(found, golds).total.sentences == len(corpus)


@given(corpus=corpora)
def test_scores_stay_between_zero_and_one_and_gold_itself_is_perfect(corpus):
    found, golds = [a for a, _ in corpus], [g for _, g in corpus]
    counts = score(found, golds)
    if counts.links + counts.sure:
        assert 0 <= counts.aer <= 1
    best = score([g.sure for g in golds], golds)
    if best.sure:
        assert (best.aer, best.precision, best.recall) == (0, 1, 1)


def test_the_direction_does_not_matter_as_long_as_both_agree():
    found, wanted = links("0-1 1-2 2-0"), gold("0-1 2-2", "1-2")
    other = Gold(reverse(wanted.sure), reverse(wanted.possible))
    assert score([found], [wanted]) == score([reverse(found)], [other])


def test_as_many_alignments_as_gold():
    with pytest.raises(ScoreError, match="1 alignments and 2 gold sentences: sentence 2 has no partner"):
        score([frozenset()], [gold("0-0"), gold("0-0")])


def coin(count, share, seed=0):
    """Sentences of one sure link each, found or not: recall is a mean of coin throws."""
    found = (np.random.default_rng(seed).permutation(count) < share * count).astype(np.int32)
    return Tally(np.stack([np.ones_like(found), np.ones_like(found), found, found], axis=1))


def test_the_interval_of_a_mean_is_what_theory_says():
    """Of 400 coin throws, half of them heads: 1.96 · √(0.5 · 0.5 / 400) = 0.049 to either side."""
    intervals = bootstrap(coin(400, 0.5), samples=4000)
    for one in (intervals.recall, intervals.precision, intervals.aer):
        assert (one.low, one.high) == pytest.approx((0.451, 0.549), abs=0.005)
    narrow = bootstrap(coin(400, 0.5), samples=4000, level=0.5).recall
    assert (narrow.low, narrow.high) == pytest.approx((0.5 - 0.67 * 0.025, 0.5 + 0.67 * 0.025), abs=0.003)


def test_the_same_seed_draws_the_same_sentences_in_blocks_of_any_size(monkeypatch):
    one, other = coin(60, 0.4), coin(60, 0.6, seed=1)
    whole = bootstrap(one, samples=50), compare(one, other, samples=50, swaps=50)
    assert bootstrap(one, samples=50) == whole[0]
    assert bootstrap(one, samples=50, seed=1) != whole[0]
    monkeypatch.setattr(resample, "BLOCK", 7 * 60)
    assert (bootstrap(one, samples=50), compare(one, other, samples=50, swaps=50)) == whole


def test_one_sentence_has_an_interval_without_width():
    only = tally([links("0-0 1-1")], [gold("0-0")])
    intervals = bootstrap(only)
    assert intervals.aer.low == intervals.aer.high == pytest.approx(1 / 3)


def test_an_interval_over_resamples_with_nothing_to_score_is_not_made_up():
    intervals = bootstrap(tally([links("0-0"), frozenset()], [gold("0-0"), gold("", "0-0")]))
    assert math.isnan(intervals.aer.low)
    assert math.isnan(intervals.precision.high)


@pytest.mark.parametrize(("sentences", "samples", "level"), [(0, 10, 0.9), (3, 0, 0.9), (3, 10, 1.0)])
def test_what_cannot_be_drawn_is_refused(sentences, samples, level):
    with pytest.raises(ScoreError, match="Nothing can be drawn"):
        bootstrap(coin(sentences, 0.5), samples=samples, level=level)


def test_an_aligner_does_not_differ_from_itself():
    same = compare(coin(30, 0.5), coin(30, 0.5))
    assert (same.difference, same.interval.low, same.interval.high, same.p) == (0, 0, 0, 1)


def test_comparing_the_other_way_round_mirrors_everything():
    one, other = coin(50, 0.4), coin(50, 0.7, seed=3)
    there, back = compare(one, other), compare(other, one)
    assert there.difference == -back.difference == pytest.approx(0.3)
    assert (there.interval.low, there.interval.high) == pytest.approx((-back.interval.high, -back.interval.low))
    assert there.p == back.p


def test_six_sentences_all_better_happen_by_chance_twice_in_sixty_four():
    better, worse = coin(6, 1.0), coin(6, 0.0)
    assert compare(better, worse).p == pytest.approx(2 / 64, abs=0.006)
    assert compare(coin(200, 1.0), coin(200, 0.0)).p == 1 / 10_001


def test_p_is_the_share_of_all_swaps_that_differ_as_much():
    """Every one of the 2⁸ ways to swap, scored as two aligners of their own."""
    random = np.random.default_rng(5)
    wanted = [gold("0-0 1-1 2-2", "0-1")] * 8
    cells = [(s, t) for s in range(3) for t in range(3)]
    one, other = ([frozenset(c for c in cells if random.random() < 0.4) for _ in range(8)] for _ in range(2))
    gaps = [
        score([b if s else a for s, a, b in zip(swap, one, other, strict=True)], wanted).aer
        - score([a if s else b for s, a, b in zip(swap, one, other, strict=True)], wanted).aer
        for swap in itertools.product([False, True], repeat=8)
    ]
    exact = np.mean(np.abs(gaps) >= abs(gaps[0]) - 1e-12)
    got = compare(tally(one, wanted), tally(other, wanted))
    assert 0.1 < exact < 0.9
    assert got.difference == pytest.approx(gaps[0])
    assert got.p == pytest.approx(exact, abs=0.02)


def test_aligners_scored_on_different_gold_are_not_compared():
    with pytest.raises(ScoreError, match="different gold"):
        compare(coin(3, 0.5), coin(4, 0.5))
    with pytest.raises(ScoreError, match="different gold"):
        compare(tally([frozenset()], [gold("0-0")]), tally([frozenset()], [gold("0-0 1-1")]))


def test_links_read_wrongly_are_suspected_and_right_ones_are_not():
    wanted = [gold("0-3 1-2 2-4"), gold("0-1 3-2")]
    right = [one.sure for one in wanted]
    wrong = {
        "the other way round": [reverse(one) for one in right],
        "one word earlier": [frozenset((s + 1, t + 1) for s, t in one) for one in right],
        "one word later": [frozenset((s - 1, t - 1) for s, t in one) for one in right],
    }
    assert numbering_doubts([Alignment.of(one) for one in right], wanted) == []
    for said, found in wrong.items():
        (doubt,) = numbering_doubts([Alignment.of(one) for one in found], wanted)
        assert doubt.startswith("AER 100.0 % would be 0.0 %")
        assert said in doubt
